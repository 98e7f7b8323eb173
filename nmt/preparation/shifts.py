"""Parts of a corpus where the lines of one side belong to other lines of the other side."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from nmt.preparation.places import Where, in_words
from nmt.text import Pair

CHUNK_PAIRS = 100
"""Consecutive pairs that are compared together: few enough to say where a shift begins."""
LEAST_PAIRS = 40
"""Fewer pairs in a row are not judged: their lines may agree by chance."""
FEW_PAIRS = 400
"""Up to this number of pairs, chunks are half as long."""
LARGEST_SHIFT = 3
"""The most lines, up or down, by which shifts are tried."""
LEAST_AGREEMENT = 0.5
"""How well shifted lines must agree: a correlation of lengths, or a share of equal anchors."""
LEAST_ADVANTAGE = 0.3
"""By how much shifted lines must agree better. In good corpora, neighboring lines hardly agree."""
OF_FEW = 0.45
"""The same for fewer than CHUNK_PAIRS pairs, whose agreement is uncertain."""
LEAST_ANCHORED = 8
"""The minimum number of lines with anchors; with fewer, anchors are not compared."""
LEAST_SHIFTED = 0.005
"""The share of chunks whose shift is reported."""
LEAST_CHUNKS = 5
"""With fewer, nothing is said about whether the sides belong together."""
UNRELATED = 0.2
"""The largest mean agreement of sides that do not belong together."""
ANCHOR = re.compile(r"https?://\S+|\d+(?:[.,:]\d+)*")
"""Text that translations usually keep: addresses and numbers."""


@dataclass
class Shift:
    """Consecutive pairs whose targets agree with the source `lines` lines further up."""

    lines: int
    first: int  # pair, counted from 1
    last: int


def of_shift(sides: Sequence[NDArray[np.float64]], lines: int) -> tuple[NDArray[np.float64], ...]:
    """Both sides without the lines that have no partner `lines` lines further down.

    Line i of the first result and line i of the second one are partners.
    """
    source, target = sides
    if lines >= 0:
        return source[: len(source) - lines], target[lines:]
    return source[-lines:], target[:lines]


def length_agreement(lengths: Sequence[NDArray[np.float64]], lines: int) -> float:
    """The correlation of line lengths; 0 if all lines have the same length."""
    source, target = of_shift(lengths, lines)
    # Not numpy.corrcoef, which warns and returns NaN if all lines have the same length.
    spread = float(source.std() * target.std())
    if spread < 1e-9:
        return 0.0
    products = (source - source.mean()) * (target - target.mean())
    return float(products.mean() / spread)


def anchor_agreement(anchors: Sequence[list[frozenset[str]]], lines: int) -> float:
    """The share of anchored lines whose partners have the same anchors; 0 if few lines have any."""
    source, target = anchors
    # A shift leaves lines without partners at one end of each side; zip drops those at the far end.
    partners = zip(source[max(0, -lines) :], target[max(0, lines) :], strict=False)
    # Most lines have no anchors. Their agreement would say nothing.
    anchored = [(one, other) for one, other in partners if one or other]
    if len(anchored) < LEAST_ANCHORED:
        return 0.0
    return sum(one == other for one, other in anchored) / len(anchored)


@dataclass
class Agreement:
    """How well the sides of consecutive pairs agree, for each number of lines between them."""

    by_length: dict[int, float]
    by_anchor: dict[int, float]
    pairs: int

    def shift(self) -> int:
        """The number of lines that the targets are further down; 0 if they are not shifted."""
        least_advantage = LEAST_ADVANTAGE if self.pairs >= CHUNK_PAIRS else OF_FEW
        # Either measure suffices: many texts have no anchors, and all lines may have the same
        # length. But the other measure must not speak clearly for the place where the lines are.
        for agreement, counterpart in (
            (self.by_length, self.by_anchor),
            (self.by_anchor, self.by_length),
        ):
            best = max(agreement, key=lambda lines: agreement[lines])
            is_better = agreement[best] - agreement[0] >= least_advantage
            is_contradicted = counterpart[best] < counterpart[0] - LEAST_ADVANTAGE / 3
            if agreement[best] >= LEAST_AGREEMENT and is_better and not is_contradicted:
                return best
        return 0


def agreement_of(pairs: Sequence[Pair]) -> Agreement:
    anchors = []
    lengths = []
    for side in (0, 1):
        lines = [pair[side] for pair in pairs]
        # Sets, because a translation may change the order of numbers.
        anchors.append([frozenset(ANCHOR.findall(line)) for line in lines])
        # Logarithms, so that a few very long lines do not decide the correlation. `log1p` accepts
        # empty lines.
        lengths.append(np.log1p([len(line) for line in lines]))
    shifts = range(-LARGEST_SHIFT, LARGEST_SHIFT + 1)
    by_length = {shift: length_agreement(lengths, shift) for shift in shifts}
    by_anchor = {shift: anchor_agreement(anchors, shift) for shift in shifts}
    return Agreement(by_length, by_anchor, len(pairs))


def chunks(pairs: Sequence[Pair]) -> Iterator[tuple[int, Sequence[Pair]]]:
    """Chunks of consecutive pairs, and where they begin; the last one may be longer."""
    size = CHUNK_PAIRS if len(pairs) > FEW_PAIRS else CHUNK_PAIRS // 2
    begins = list(range(0, len(pairs), size))
    if len(begins) > 1 and len(pairs) - begins[-1] < LEAST_PAIRS:
        # The last pairs are too few to be judged alone, so the chunk before them takes them.
        begins.pop()
    for begin, end in pairwise([*begins, len(pairs)]):
        if end - begin >= LEAST_PAIRS:
            yield begin, pairs[begin:end]


class Shifts:
    """The shifted parts of a corpus, and whether its sides agree at all."""

    def __init__(self) -> None:
        self.chunks = 0
        self.ends = list[int]()
        """The last pair of each chunk, counted from 1."""
        self.shifted = list[Shift]()
        self.by_length = 0.0  # sum over all chunks
        self.most_by_anchor = 0.0

    def add(self, pairs: Sequence[Pair], first: int) -> None:
        """Inspect consecutive pairs. The number is that of the first pair."""
        for begin, chunk in chunks(pairs):
            agreement = agreement_of(chunk)
            lines = agreement.shift()
            first_of_chunk = first + begin
            last_of_chunk = first_of_chunk + len(chunk) - 1
            self.ends.append(last_of_chunk)
            if lines:
                self.shifted.append(Shift(lines, first_of_chunk, last_of_chunk))
            self.chunks += 1
            self.by_length += agreement.by_length[0]
            # The maximum, not the sum: chunks without anchors have an agreement of 0.
            self.most_by_anchor = max(self.most_by_anchor, agreement.by_anchor[0])

    def merge(self, later: "Shifts", shift: int) -> None:
        """Add the chunks of later pairs, whose numbers are too low by `shift`."""
        self.chunks += later.chunks
        self.by_length += later.by_length
        self.ends += [end + shift for end in later.ends]
        self.most_by_anchor = max(self.most_by_anchor, later.most_by_anchor)
        for part in later.shifted:
            self.shifted.append(Shift(part.lines, part.first + shift, part.last + shift))

    @property
    def are_frequent(self) -> bool:
        """Whether parts of the corpus are shifted."""
        # In a large corpus, a single chunk may be chance.
        return bool(self.shifted) and len(self.shifted) >= LEAST_SHIFTED * self.chunks

    def may_be_shifted(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each of these pairs, counted from 1, is in a shifted part or near one."""
        shifted = {part.last for part in self.shifted}
        is_shifted = np.array([end in shifted for end in self.ends], np.bool_)
        # A shift begins or ends within a chunk, and not every chunk shows it.
        is_near = is_shifted.copy()
        for distance in (1, 2):
            is_near[distance:] |= is_shifted[:-distance]
            is_near[:-distance] |= is_shifted[distance:]
        chunks_of_pairs = np.searchsorted(self.ends, numbers)
        return is_near[np.minimum(chunks_of_pairs, len(self.ends) - 1)]

    def notices(self, inspected: int, where: Where = in_words) -> list[str]:
        if self.are_frequent:
            return [self.shift_notice(inspected, where)]
        differ_in_length = self.by_length < UNRELATED * self.chunks
        # Languages of very different writing may not agree in length, but one chunk whose anchors
        # agree shows that the sides belong together.
        are_unrelated = differ_in_length and self.most_by_anchor < UNRELATED
        if self.chunks >= LEAST_CHUNKS and are_unrelated:
            return [
                "the lengths of sources and targets have nothing in common: check that line N of "
                "one file is the translation of line N of the other"
            ]
        return []

    def end_of_first(self) -> int:
        """The last pair of the first shifted part."""
        end = self.shifted[0].last
        for part in self.shifted[1:]:
            if part.first == end + 1:
                end = part.last
        return end

    def shift_notice(self, inspected: int, where: Where) -> str:
        shift = self.shifted[0]
        end = self.end_of_first()
        number = abs(shift.lines)
        lines = "1 line" if number == 1 else f"{number} lines"
        direction = "down" if shift.lines > 0 else "up"
        pairs = sum(part.last - part.first + 1 for part in self.shifted)
        more = "first " if end < self.shifted[-1].last else ""
        return (
            f"in {pairs:,} of {inspected:,} pairs, {more}from about {where(shift.first)} to "
            f"{where(end)}, targets belong to other sources; there, the target side is shifted "
            f"{lines} {direction}: find the missing or additional line at either end"
        )
