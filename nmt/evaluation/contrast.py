"""Contrastive sets: is the right translation likelier than one with an error? As in LingEval97 (Sennrich 2017)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from nmt.errors import NMTError
from nmt.files import parse_json, printable
from nmt.text import MAGIC, decoded, is_text, read_lines

COLUMNS = ["source", "right", "wrong"]
CONFIDENCE = 0.95
"""Of the intervals."""


@dataclass
class ContrastivePair:
    """A source with a right translation and one that differs from it by an error of some category."""

    source: str
    right: str
    wrong: str
    category: str = ""


def fields_of_tsv(line: str) -> list[Any]:
    return line.split("\t")


def fields_of_json(line: str) -> list[Any]:
    try:
        record = parse_json(line)
    except ValueError:
        record = None
    return [record.get(key) or "" for key in (*COLUMNS, "category")] if isinstance(record, dict) else []


def read_contrast(name: str) -> Iterator[ContrastivePair]:
    """The pairs of a file: JSON lines if its name says so, else TSV, where a line may name the columns.

    Raises NMTError, which names the line, where there are none.
    """
    plain = name
    for suffix in MAGIC:
        plain = plain.removesuffix(suffix)
    is_json = plain.endswith((".jsonl", ".json"))
    keys = '{"source": ..., "right": ..., "wrong": ...}' if is_json else "source, tab, right, tab, wrong"
    for number, line in enumerate(decoded(read_lines(name), f"{name}, "), 1):
        found = (fields_of_json if is_json else fields_of_tsv)(line)
        if not is_json and number == 1 and found[:3] == COLUMNS:
            continue
        if not 3 <= len(found) <= 4 or not all(map(is_text, found)) or not all(each.strip() for each in found[:3]):
            raise NMTError(f"{name}, line {number}: no contrastive pair; {keys} and perhaps a category, please")
        source, right, wrong, *category = found
        yield ContrastivePair(source, right, wrong, printable("".join(category)))


def wilson(successes: int, total: int) -> tuple[float, float]:
    """The interval for a share at CONFIDENCE (Wilson 1927); 0 to 1."""
    if not total:
        return 0.0, 1.0
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    share, weight = successes / total, z * z / total
    middle = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / total + weight / total / 4)
    return max(middle - half, 0.0), min(middle + half, 1.0)


@dataclass
class Tally:
    """The pairs of a category, and of how many the right side is likelier."""

    category: str
    pairs: int = 0
    right: int = 0
    ties: int = 0
    """Pairs whose sides are the same to the model; they count as wrong."""

    def add(self, right: float, wrong: float) -> None:
        self.pairs, self.right, self.ties = self.pairs + 1, self.right + (right > wrong), self.ties + (right == wrong)

    def record(self) -> dict[str, Any]:
        low, high = wilson(self.right, self.pairs)
        return {**vars(self), "share": self.right / self.pairs if self.pairs else 0.0, "low": low, "high": high}

    def __str__(self) -> str:
        share, low, high = (100 * self.record()[key] for key in ("share", "low", "high"))
        ties = f", {self.ties:,} ties" if self.ties else ""
        return f"{share:6.2f} % ({low:.2f} to {high:.2f})  {self.right:,} of {self.pairs:,}{ties}  {self.category}"
