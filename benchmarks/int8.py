"""Measure what int8 costs with CTranslate2, depending on the largest number in its matrices.

    python benchmarks/int8.py MODEL SOURCE REFERENCE [LINES]

MODEL is a run or model directory. The script scores the references of the first LINES (1000) lines by forced decoding.
For each largest number, it prints the mean loss per token, its increase over float32 with the standard error, and the
mean absolute difference of a token's log probability from float32.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np

from nmt.config import DecodeConfig
from nmt.files import find_model_directory
from nmt.plugins.exchange import ctranslate2
from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine
from nmt.text import SOURCE, TARGET, read_tokenizer


def scores(
    model: Path, folder: Path, pairs: list[tuple[list[int], list[int]]], precision: str
) -> np.ndarray:
    """The log probability of each token."""
    ctranslate2.write(model, folder, precision)
    return np.concatenate(CTranslate2Engine(model, folder, DecodeConfig()).forced_decoding(pairs))


def main(model: Path, texts: list[Path], lines: int) -> None:
    tokenizer = read_tokenizer(model)
    source, target = (
        tokenizer.encode(
            [
                tokenizer.clean(line)
                for line in path.read_text(encoding="utf-8").split("\n")[:lines]
            ],
            side,
        )
        for path, side in zip(texts, (SOURCE, TARGET), strict=True)
    )
    pairs = [pair for pair in zip(source, target, strict=True) if all(pair)]
    with tempfile.TemporaryDirectory() as temporary:
        exact = scores(model, Path(temporary, "float32"), pairs, "float32")
        print(f"{len(exact):,} tokens, loss in float32 {-exact.mean():.4f}")
        for ctranslate2.LEVELS in (127, 112, 104, 96, 88, 80, 64, 48):
            found = scores(model, Path(temporary, "int8"), pairs, "int8")
            change = exact - found
            error = change.std() / len(change) ** 0.5
            print(
                f"{ctranslate2.LEVELS:3}: loss {-found.mean():.4f} ({change.mean():+.4f}, +-{error:.4f}), "
                f"mean distance {np.abs(change).mean():.4f}",
                flush=True,
            )


if __name__ == "__main__":
    _, name, *paths = sys.argv
    main(
        Path(find_model_directory(name)),
        [Path(path) for path in paths[:2]],
        int((*paths[2:], 1000)[0]),
    )
