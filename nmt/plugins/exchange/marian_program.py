"""Marian itself, by pymarian, beside a model that was imported from its files.

Marian gives a file name that ends in | to a shell, and takes any option from special:model.yml in the model. So it
works in a folder that holds only files that we wrote, and no name and no option there comes from anyone else.
"""

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nmt.config import UNK, DecodeConfig, require, shown
from nmt.errors import NMTError
from nmt.plugins.exchange.certificate import Scores, certificate, word_scores
from nmt.plugins.exchange.foreign_model import Foreign
from nmt.plugins.exchange.marian import write_marian
from nmt.search import Engine, Pair, penalty
from nmt.text import SOURCE, TARGET

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
ROUNDING = 1e-3
"""A larger difference of log P of a token, or of a translation's score, is more than rounding."""


@dataclass
class Found:
    """A translation by Marian's search."""

    tokens: list[int]
    log_probabilities: list[float]
    """Those of the search, of the tokens and the end symbol."""
    cut: bool
    """True where the search was stopped by the limit of the length."""


@dataclass
class Marian:
    """Marian with a model. It reads and writes the pieces of our tokenizer."""

    model: Foreign
    folder: Path
    """Where it works: an empty folder."""

    def __post_init__(self) -> None:
        self.tokenizer = self.model.tokenizer
        self.vocabularies = write_marian(self.model, self.folder)

    def run(self, program: str, *arguments: str, lines: Iterable[str] = ()) -> str:
        """What a program prints that gets these options of Marian, and reads these lines."""
        model = ["-m", "model.npz", "-v", *self.vocabularies, "--max-length", str(MOST_TOKENS)]
        words = [*arguments, *model, "--log-level", "err", "--cpu-threads", "1"]
        done = subprocess.run(
            [sys.executable, "-X", "utf8", "-c", program, *words],
            cwd=self.folder,
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            encoding="utf-8",
            errors="replace",
        )
        if done.returncode:
            error, lines_of_error = ERROR.search(done.stderr), done.stderr.split("\n")
            reason = error[1] if error else next(filter(str.strip, reversed(lines_of_error)), "no reason given")
            raise NMTError(f"{self.model.where}: Marian ended with code {done.returncode}: {shown(reason)}")
        return done.stdout

    def pieces(self, sentences: Iterable[list[int]], side: int) -> list[str]:
        """Sentences of our ids as Marian reads them."""
        return [" ".join(self.tokenizer.subwords(ids, side)) for ids in sentences]

    def scores(self, pairs: Sequence[Pair]) -> Scores:
        """The log probabilities that Marian's scorer gives to pairs of our ids."""
        for side, name in enumerate(("source", "target")):
            text = "".join(f"{line}\n" for line in self.pieces((pair[side] for pair in pairs), side))
            (self.folder / name).write_text(text, encoding="utf-8")
        return word_scores(self.run(COMMAND, "score", "--word-scores", "-t", "source", "target"), "pymarian")

    def search(self, sentences: Sequence[list[int]], decode: DecodeConfig) -> list[Found]:
        """The best translation of each sentence, with our limit of its length."""
        limits = [most_tokens(ids, decode) for ids in sentences]
        # Marian stops after factor x (tokens of the source) steps, rounded up: one more than ours.
        factors = ((limit + 0.5) / (len(ids) + 1) for ids, limit in zip(sentences, limits, strict=True))
        lines = [f"{factor} {text}" for factor, text in zip(factors, self.pieces(sentences, SOURCE), strict=True)]
        options = ["--beam-size", str(decode.beam_size), "--normalize", str(decode.length_penalty)]
        rows = self.run(SEARCH, *options, "--n-best", "--word-scores", lines=lines).split("\n")
        require(len(rows) == len(lines) + 1, f"{self.model.where}: its vocabulary has an entry with a line break")
        return [self.read_best(row, limit) for row, limit in zip(rows, limits, strict=False)]

    def read_best(self, row: str, limit: int) -> Found:
        """The translation in a line of Marian's n-best list, which is empty for an empty sentence."""
        if not row:
            return Found([], [], False)
        text, scores, *_ = row.partition(" ||| ")[2].rsplit(" ||| ", 3)
        log_probabilities = [float(score) for score in scores.split()[1:]]
        tokens = [self.tokenizer.ids[TARGET].get(piece, UNK) for piece in text.split(" ") if piece]
        return Found(tokens, log_probabilities, len(log_probabilities) > limit)


def most_tokens(ids: list[int], decode: DecodeConfig) -> int:
    """The most tokens of a sentence's translation, with the end symbol."""
    return min(len(ids) + 1 + decode.max_extra_length, (decode.max_length or MOST_TOKENS) + 1)


def judge(
    marian: Marian, engine: Engine, sentences: list[list[int]], found: list[Found], same: set[int]
) -> Iterator[str]:
    """Which translations of the sentences that are not the `same` are better, and whether Marian agrees with itself."""
    whole = [index for index, each in enumerate(found) if each.tokens and not each.cut]
    others = [index for index in whole if index not in same]
    ours = [row[0].tokens for row in engine.search([sentences[index] for index in others], [[]] * len(others))]
    pairs = [(sentences[index], found[index].tokens) for index in whole]
    pairs += [(sentences[index], tokens) for index, tokens in zip(others, ours, strict=True)]
    if not pairs:
        return
    programs = [marian.scores(pairs), [each.log_probabilities for each in engine.token_scores(pairs)]]
    certificate("Marian", programs[1], programs[0])  # of the same lines and tokens
    if others:
        means = [[sum(row) / penalty(len(row), engine.config) for row in scores] for scores in programs]
        # By each program: how much better ours is.
        gains = [
            [scores[at] - scores[whole.index(index)] for at, index in enumerate(others, len(whole))] for scores in means
        ]
        better, worse = (
            sum(min(sign * gain for gain in pair) > ROUNDING for pair in zip(*gains, strict=True)) for sign in (1, -1)
        )
        yield (
            f"where they differ, nmt's translation has the higher score of both programs in {better:,}, Marian's in"
            f" {worse:,}, neither in {len(others) - better - worse:,}"
        )
    searched = [found[index].log_probabilities for index in whole]
    if (gap := certificate("Marian", searched, programs[0][: len(whole)]).largest) > ROUNDING:
        yield (
            f"Marian's search gives its own translations other log probabilities than Marian's scorer, by up to"
            f" {gap:.1e} a token; nmt's search has those of the scorer, so nmt is right where they differ"
        )
