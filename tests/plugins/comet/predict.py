"""Score lines with COMET's Python API, in COMET's environment.

`python predict.py CHECKPOINT PRECISION` reads rows with `src`, `mt` and `ref` as JSON from standard
input, and writes the scores and the system score as JSON.
"""

import json
import sys

from comet import load_from_checkpoint

checkpoint, precision = sys.argv[1:]
model = load_from_checkpoint(checkpoint)
model.eval()
if precision == "float16":
    model.half()
prediction = model.predict(json.load(sys.stdin), batch_size=16, gpus=0, progress_bar=False)
# Lightning prints to standard output, too.
print("\n" + json.dumps({"scores": prediction.scores, "system": prediction.system_score}))
