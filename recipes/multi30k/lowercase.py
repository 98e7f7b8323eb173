"""Prepare text as for published Multi30k scores: lowercase, Moses punctuation and tokens, no escapes.

python recipes/multi30k/lowercase.py FOLDER OUTPUT     # .en and .de of train, val and test_2016_flickr
"""

import sys
from pathlib import Path

from sacremoses import MosesPunctNormalizer, MosesTokenizer

source, output = map(Path, sys.argv[1:])
output.mkdir(parents=True, exist_ok=True)
for language in ("en", "de"):
    normaliser, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)
    for split in ("train", "val", "test_2016_flickr"):
        lines = (source / f"{split}.{language}").read_text(encoding="utf-8").splitlines()
        tokens = (
            tokenizer.tokenize(normaliser.normalize(line.strip().lower()), escape=False)
            for line in lines
        )
        (output / f"{split}.{language}").write_text(
            "".join(" ".join(own) + "\n" for own in tokens), encoding="utf-8"
        )
