"""Marian itself, by pymarian, beside a model that was imported from its files.

Marian gives a file name that ends in | to a shell, and takes any option from special:model.yml in the model. So it
works in a folder that holds only files that we wrote, and no name and no option there comes from anyone else.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from nmt.config import UNK, DecodeConfig, require, shown
from nmt.errors import NMTError
from nmt.plugins.exchange.agreement import Scores, word_scores
from nmt.plugins.exchange.foreign import Weights
from nmt.search import Pair
from nmt.text import SOURCE, TARGET, MarianTokenizer

COMMAND = "import sys, _pymarian; sys.exit(_pymarian.main(sys.argv[1:]))"
SEARCH = """
import sys, _pymarian
marian = _pymarian.Translator(" ".join(sys.argv[1:]))
for line in sys.stdin:
    factor, _, text = line.rstrip("\\n").partition(" ")
    print(marian.translate(text, **{"max-length-factor": factor}).partition("\\n")[0])
"""
"""Marian's search with a limit for each line; its command has one for all."""
ERROR = re.compile(r"Error: (.+)")
MOST_TOKENS = 10**6
"""Marian leaves out longer lines."""


@dataclass
class Marian:
    """Marian with a model. It reads and writes the pieces of our tokenizer."""

    where: Path
    options: dict[str, Any]
    """special:model.yml."""
    weights: Weights
    tokenizer: MarianTokenizer
    decode: DecodeConfig
    name: str = "Marian"

    def run(self, program: str, *arguments: str, files: dict[str, Iterable[str]], lines: Iterable[str] = ()) -> str:
        """What a program prints that gets these options of Marian, finds these files, and reads these lines."""
        model = ["-m", "model.npz", "-v", "source.yml", "target.yml", "--max-length", str(MOST_TOKENS)]
        words = [*arguments, *model, "--log-level", "err", "--cpu-threads", "1"]
        with TemporaryDirectory() as folder:
            self.write(Path(folder))
            for name, content in files.items():
                Path(folder, name).write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
            done = subprocess.run(
                [sys.executable, "-X", "utf8", "-c", program, *words],
                cwd=folder,
                input="".join(f"{line}\n" for line in lines),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
            )
        if done.returncode:
            error, last = ERROR.search(done.stderr), (done.stderr.strip() or "no reason given").splitlines()[-1]
            reason = shown(error[1] if error else last)
            raise NMTError(f"{self.where}: Marian ended with code {done.returncode}: {reason}")
        return done.stdout

    def write(self, folder: Path) -> None:
        """Write model and vocabularies."""
        sides = {"source.yml": self.tokenizer.tables[0], "target.yml": self.tokenizer.tables[-1]}
        special = json.dumps({**self.options, "dim-vocabs": list(map(len, sides.values()))}).encode() + b"\0"
        arrays: dict[str, Any] = {**self.weights, "special:model.yml": np.frombuffer(special, np.int8)}
        np.savez(folder / "model.npz", **arrays)
        for name, table in sides.items():
            numbers = {entry: number for number, entry in enumerate(table)}
            (folder / name).write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")

    def pieces(self, sentences: Iterable[list[int]], side: int) -> list[str]:
        """Sentences of our ids as Marian reads them."""
        return [" ".join(self.tokenizer.subwords(ids, side)) for ids in sentences]

    def scores(self, pairs: Sequence[Pair]) -> Iterator[tuple[str, Scores]]:
        """The log probabilities of Marian's scorer."""
        names = {"source": SOURCE, "target": TARGET}
        files = {name: self.pieces((pair[side] for pair in pairs), side) for name, side in names.items()}
        printed = self.run(COMMAND, "score", "--word-scores", "-t", *names, files=files)
        yield "that of Marian", word_scores(printed, "pymarian")

    def translate(self, lines: Sequence[str]) -> list[str | None]:
        """The best translation of each line by Marian's search, with our limit of its length."""
        sentences, decode = self.tokenizer.encode(lines), self.decode
        most = (decode.max_length or MOST_TOKENS) + 1
        limits = [min(len(ids) + 1 + decode.max_extra_length, most) for ids in sentences]
        # Marian stops after factor x (tokens of the source) steps, rounded up: one more than ours.
        factors = ((limit + 0.5) / (len(ids) + 1) for ids, limit in zip(sentences, limits, strict=True))
        texts = [f"{factor} {text}" for factor, text in zip(factors, self.pieces(sentences, SOURCE), strict=True)]
        arguments = ["--beam-size", str(decode.beam_size), "--normalize", str(decode.length_penalty)]
        rows = self.run(SEARCH, *arguments, "--n-best", "--word-scores", files={}, lines=texts).split("\n")
        require(len(rows) == len(texts) + 1, f"{self.where}: its vocabulary has an entry with a line break")
        return [self.text(row, limit) for row, limit in zip(rows, limits, strict=False)]

    def text(self, row: str, limit: int) -> str | None:
        """The translation in a line of Marian's n-best list, which is empty for an empty sentence; None if cut."""
        if not row:
            return ""
        pieces, scores, *_ = row.partition(" ||| ")[2].rsplit(" ||| ", 3)
        if len(scores.split()) - 1 > limit:  # scores of the tokens and of the end symbol, after their name
            return None
        ids = [self.tokenizer.ids[TARGET].get(piece, UNK) for piece in pieces.split(" ") if piece]
        return " ".join(self.tokenizer.decode(ids).split())
