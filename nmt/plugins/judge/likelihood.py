"""log P of translations by a model; and of contrastive pairs, as in LingEval97 (Sennrich 2017).

In a contrastive pair, is the right translation likelier than one with an error?
"""

import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from statistics import NormalDist
from typing import Any

from rich.console import Console
from rich.status import Status

from nmt.errors import NMTError
from nmt.files import parse_json, printable
from nmt.search import TorchEngine, forced_decoding
from nmt.text import MAGIC, decoded, is_text, parallel, read_lines, read_texts
from nmt.translation import Translator, encode_tagged, score_pairs, warn

COLUMNS = ["source", "right", "wrong"]
CONFIDENCE = 0.95
"""Of the intervals."""


def perplexity(log_probability: float, tokens: int) -> float:
    """exp(-log P(Y|X) / |Y|), at most e^700; |Y| counts the end symbol."""
    return math.exp(min(-log_probability / tokens, 700.0))


def scored_blocks(translator: Translator, pairs: Iterator[Any], buffer: int, score: Any) -> Iterator[tuple[Any, Any]]:
    """Pairs with their scores by `score(translator, block)`, and the number of pairs on standard error."""
    count = 0
    with Status("scoring", console=Console(stderr=True, quiet=sys.stdout.isatty())) as status:
        while block := list(islice(pairs, buffer)):
            yield from zip(block, score(translator, block), strict=True)
            sys.stdout.buffer.flush()
            status.update(f"scored {(count := count + len(block)):,} pairs")


def write_scores(translator: Translator, files: tuple[str, str], format: str, buffer: int) -> None:
    """Write the score of each pair of lines to standard output, and the total to standard error."""
    lines = parallel(files, (read_texts(files[0], warn), read_texts(files[1], warn)))
    pairs = chain(list(islice(lines, 1)), lines)  # a missing file is an error before the status line
    count, tokens, total = 0, 0, 0.0
    for _, score in scored_blocks(translator, pairs, buffer, score_pairs):
        log_probability, length = score.log_probability, len(score.token_log_probabilities)
        count, tokens, total = count + 1, tokens + length, total + log_probability
        per_token = perplexity(log_probability, length)
        if format == "text":
            row = f"{log_probability:10.4f}  perplexity {per_token:.4f}  {length} tokens"
        elif format == "tsv":
            row = f"{count}\t{log_probability:.4f}\t{per_token:.4f}\t{length}"
        else:
            numbers = {"log_probability": log_probability, "perplexity": per_token, "length": length}
            row = json.dumps({"line": count, **numbers, **vars(score)}, ensure_ascii=False)
        sys.stdout.buffer.write(f"{row}\n".encode())
    if not count:
        warn("nothing to score: both files are empty")
        return
    words = f"log probability {total:.4f}, perplexity {perplexity(total, tokens):.4f}"
    warn(f"{count:,} pairs, {tokens:,} tokens, {words}")


@dataclass
class ContrastivePair:
    """A source with a right translation and one that differs from it by an error of some category."""

    source: str
    right: str
    wrong: str
    category: str = ""


def fields_of_json(line: str) -> list[Any]:
    try:
        record = parse_json(line)
    except ValueError:
        return []
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
        values = fields_of_json(line) if is_json else line.split("\t")
        if not is_json and number == 1 and values[:3] == COLUMNS:
            continue
        if not 3 <= len(values) <= 4 or not all(map(is_text, values)) or not all(map(str.strip, values[:3])):
            raise NMTError(f"{name}, line {number}: no contrastive pair; {keys} and perhaps a category, please")
        source, right, wrong, *category = values
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
    """The pairs of a category, and the number of those whose right side is likelier."""

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


def contrast_scores(translator: Translator, pairs: Sequence[ContrastivePair]) -> list[tuple[float, float]]:
    """log P of the right and of the wrong side of each pair; the same where both have the same tokens."""
    engine = translator.engine
    assert isinstance(engine, TorchEngine)
    sides = [(pair.source, side) for pair in pairs for side in (pair.right, pair.wrong)]
    encoded = encode_tagged(translator, sides)
    keys = [(tuple(source), tuple(target)) for source, target in encoded]
    # Each once: log P differs by rounding from batch to batch, and often the right side stands against several others.
    unique = dict(zip(keys, encoded, strict=True))
    scores = forced_decoding(engine.models, list(unique.values()), engine.config.batch_tokens)
    by_key = dict(zip(unique, (sum(score.log_probabilities) for score in scores), strict=True))
    return [(by_key[right], by_key[wrong]) for right, wrong in zip(keys[::2], keys[1::2], strict=True)]


def write_contrast(translator: Translator, name: str, format: str, buffer: int) -> None:
    """Write the share of pairs whose right side is likelier, by category, or with tsv the log P of each pair."""
    total, tallies = Tally("all pairs"), dict[str, Tally]()
    for pair, (right, wrong) in scored_blocks(translator, read_contrast(name), buffer, contrast_scores):
        for tally in (tallies.setdefault(pair.category, Tally(pair.category)), total):
            tally.add(right, wrong)
        if format == "tsv":
            row = f"{total.pairs}\t{int(right > wrong)}\t{right:.4f}\t{wrong:.4f}\t{pair.category}\n"
            sys.stdout.buffer.write(row.encode())
    if not total.pairs:
        raise NMTError(f"{name}: no contrastive pairs: the file is empty")
    rows = [*(tally for category, tally in sorted(tallies.items()) if category), total]
    if format == "json":
        print(json.dumps([tally.record() for tally in rows], indent=2, ensure_ascii=False))
        return
    for tally in rows:
        print(tally, file=sys.stderr if format == "tsv" else sys.stdout)
