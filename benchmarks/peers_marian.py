"""Translate with Marian, in Marian's environment; peers.py starts this script. See translate.py for the protocol.

python benchmarks/peers_marian.py MODEL VOCABULARY TOKENS LINES
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

from pymarian import Translator


def main(model: str, vocabulary: str, tokens: str, lines: int) -> None:
    """For each line of standard input, a beam, translate, and say how long it took."""
    source = Path(tokens).read_text(encoding="utf-8").splitlines()[:lines]
    options = (
        f"--models {model} --vocabs {vocabulary} {vocabulary} --cpu-threads {os.cpu_count()} --quiet --normalize 0.6 "
        "--mini-batch 32 --maxi-batch 100 --maxi-batch-sort src --max-length-factor 3 --workspace 512"
    )
    translators = {beam: Translator(f"{options} --beam-size {beam}") for beam in (4, 1)}
    for translator in translators.values():
        translator.translate(source[: lines // 4])
    print("ready", flush=True)
    for word in sys.stdin:
        start = time.perf_counter()
        translations = translators[int(word)].translate(source)
        seconds, made = time.perf_counter() - start, sum(len(line.split()) for line in translations)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(json.dumps({"seconds": seconds, "tokens": made, "memory": memory}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:4], int(sys.argv[4]))
