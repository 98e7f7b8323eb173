"""The sentence pairs of a corpus, in blocks that fit in memory and are quick to pass on.

Worker processes decode the lines of a block, because one process alone cannot decode as fast as
many workers use the pairs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Sized
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from math import ceil
from pathlib import Path

import numpy as np

from nmt.config import DataConfig, NMTError
from nmt.extensions import PairsEntry
from nmt.registry import entries_of
from nmt.text.files import (
    LINE_BYTES,
    LINES_TO_CHECK,
    MalformedLine,
    bounded_lines,
    decode,
    open_bytes,
    reading,
    without_end,
)
from nmt.text.line_ends import FileRange, LineEnds, changed, line_ends
from nmt.text.pairs import Pair, not_parallel, pair_of, resolve, table_format

BLOCK_PAIRS = 5000
"""The most pairs in a block, which one worker process cleans at a time."""
BLOCK_BYTES = 2**24
"""A block with this many bytes or characters is full, so that long lines do not fill memory."""
LINES_AT_ONCE = 100
"""Lines to read from one file before the next, so that blocks of few pairs stay small."""
JSON_LINES = ".jsonl"


@dataclass(frozen=True)
class LineBlock:
    """Consecutive lines of two parallel files, or of a JSONL file, which are not decoded yet."""

    paths: tuple[Path, ...]
    first: int
    """The number of the first line, counted from 1."""
    count: int
    """The number of lines of each file."""
    sides: tuple[FileRange | bytes, ...]
    """The lines of each file, with their ends but without a byte order mark."""

    def pairs(
        self, config: DataConfig, counts: Counter[str], skipped: list[int] | None = None
    ) -> Iterable[Pair]:
        """The sentence pairs; with data.errors=skip, malformed lines are only counted.

        Their numbers are added to `skipped`.
        """
        if len(self.sides) == 2:
            texts = self.decoded_sides()
            if texts:
                return zip(*texts, strict=True)
        return self.checked_pairs(config, counts, [] if skipped is None else skipped)

    def decoded_sides(self) -> list[list[str]] | None:
        """The text of each line; None if one of them may be malformed."""
        texts = []
        for path, side in zip(self.paths, self.sides, strict=True):
            # Decoding a whole block takes a fraction of the time of decoding its lines.
            lines = decoded_lines(side) if side_bytes(side) <= BLOCK_BYTES else None
            if lines is None:
                return None
            self.check_count(path, lines)
            texts.append(lines)
        return texts

    def checked_pairs(
        self, config: DataConfig, counts: Counter[str], skipped: list[int]
    ) -> Iterator[Pair]:
        """The same as `pairs`, one by one."""
        sides = []
        for path, side in zip(self.paths, self.sides, strict=True):
            lines = self.lines_of(side)
            self.check_count(path, lines)
            sides.append(lines)
        for number, lines_of_pair in enumerate(zip(*sides, strict=True), self.first):
            texts = list[str]()
            try:
                for line in lines_of_pair:
                    texts.append(decode(line))
                yield pair_of(texts, config)
            except MalformedLine as error:
                if config.errors == "strict":
                    # A line that cannot be decoded, or the last one, which cannot be parsed.
                    path = self.paths[min(len(texts), len(self.paths) - 1)]
                    advice = "fix it, or pass data.errors=skip"
                    raise NMTError(f"{path}, line {number}: {error}; {advice}") from error
                counts[error.counted_as] += 1
                skipped.append(number)

    def lines_of(self, side: FileRange | bytes) -> list[bytes]:
        """The lines of a side without their ends; long lines are cut, but stay too long."""
        if isinstance(side, FileRange) and side.size > BLOCK_BYTES:
            # A file may have lines of gigabytes.
            with reading(side.path), side.path.open("rb") as file:
                file.seek(side.begin)
                # The number says that these are not the first lines, which have been checked.
                lines = bounded_lines(file, side.path, first=LINES_TO_CHECK + 1)
                return list(map(without_end, islice(lines, self.count)))
        content = side.read() if isinstance(side, FileRange) else side
        return [line.removesuffix(b"\r") for line in content.removesuffix(b"\n").split(b"\n")]

    def check_count(self, path: Path, lines: Sized) -> None:
        """Raise NMTError if a file has changed since its lines were counted."""
        if len(lines) != self.count:
            raise changed(path)


class FirstPairs(list[Pair]):
    """The first block of a table's pairs."""

    def __init__(self, pairs: Iterable[Pair], path: Path) -> None:
        super().__init__(pairs)
        self.path = path


PairBlock = LineBlock | list[Pair]


def begins_file(block: PairBlock) -> bool:
    """Whether the block has the first pairs of a file."""
    if isinstance(block, LineBlock):
        return block.first == 1
    return isinstance(block, FirstPairs)


def side_bytes(side: FileRange | bytes) -> int:
    return side.size if isinstance(side, FileRange) else len(side)


def decoded_lines(side: FileRange | bytes) -> list[str] | None:
    """The text of each line; None if a line may be too long or not UTF-8."""
    content = side.read() if isinstance(side, FileRange) else side
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    lines = text.removesuffix("\n").split("\n")
    if "\r" in text:
        lines = [line.removesuffix("\r") for line in lines]
    # A character has up to four bytes.
    return lines if max(map(len, lines)) <= LINE_BYTES // 4 else None


def steps_of_block(files: Sequence[LineEnds]) -> int:
    """The number of steps of LINES_AT_ONCE lines that fill the next block.

    The last step is shorter in a file that ends in it.
    """
    # In steps, because all files must advance by the same number of lines.
    most_steps = ceil(BLOCK_PAIRS / LINES_AT_ONCE)
    steps = most_steps
    for file in files:
        file.find(most_steps * LINES_AT_ONCE, LINES_AT_ONCE, BLOCK_BYTES)
        # A step that a file cannot fill is the last one.
        steps = min(steps, len(file.ends) // LINES_AT_ONCE + 1)
    sizes = sum(file.sizes(steps, LINES_AT_ONCE) for file in files)
    full = np.flatnonzero(sizes >= BLOCK_BYTES)
    return int(full[0]) + 1 if len(full) else steps


def line_blocks(paths: tuple[Path, ...]) -> Iterator[LineBlock]:
    """The lines of two parallel files or of a JSONL file.

    NMTError after the last pair if the line counts differ.
    """
    with ExitStack() as stack:
        files = []
        for path in paths:
            check_beginning(path)
            file = stack.enter_context(open_bytes(str(path)))
            files.append(stack.enter_context(line_ends(path, file)))
        lines_before = 0
        while True:
            lines = steps_of_block(files) * LINES_AT_ONCE
            lines_of_files = [min(lines, len(file.ends)) for file in files]
            # Pairs before the end of the shorter file are good. The error follows them.
            count = min(lines_of_files)
            if count:
                sides = tuple(file.take(count) for file in files)
                yield LineBlock(paths, lines_before + 1, count, sides)
            lines_before += count
            # One file has ended. The error has the numbers of lines of both.
            if max(lines_of_files) > count:
                raise not_parallel(paths, [lines_before + file.count_rest() for file in files])
            if not count:
                break


def check_beginning(path: Path) -> None:
    """Raise NMTError if the first lines of a file are not text."""
    with open_bytes(str(path)) as file:
        for _ in islice(bounded_lines(file, path), LINES_TO_CHECK):
            pass


def pair_blocks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Pairs in blocks of up to BLOCK_PAIRS pairs and about BLOCK_BYTES characters."""
    block = list[Pair]()
    size = 0
    for pair in pairs:
        block.append(pair)
        # Characters, not bytes, because encoding a line only to measure it would take time.
        size += len(pair[0]) + len(pair[1])
        if len(block) == BLOCK_PAIRS or size >= BLOCK_BYTES:
            yield block
            block = []
            size = 0
    if block:
        yield block


def pairs_of_block(
    block: PairBlock,
    config: DataConfig,
    counts: Counter[str],
    skipped: list[int] | None = None,
) -> Iterable[Pair]:
    """The pairs of a block; the numbers of malformed lines are added to `skipped`."""
    return block.pairs(config, counts, skipped) if isinstance(block, LineBlock) else block


def read_blocks(
    entries: list[str],
    config: DataConfig,
    counts: Counter[str],
) -> Iterator[PairBlock]:
    """The sentence pairs of all entries, in blocks that do not cross files.

    Header rows are only counted, and so are malformed lines with data.errors=skip.
    """
    for entry in entries:
        for paths in resolve(entry, config):
            yield from blocks_of_files(paths, config, counts)


def blocks_of_files(
    paths: tuple[Path, ...],
    config: DataConfig,
    counts: Counter[str],
) -> Iterator[PairBlock]:
    """The sentence pairs of two parallel files, or of a file with both sides."""
    kind = table_format(paths[0])
    # Each line is a pair on its own, so workers can decode it. The rows of tables cannot be cut
    # without reading them: a quoted cell may contain line breaks.
    if len(paths) == 2 or kind == JSON_LINES:
        yield from line_blocks(paths)
    else:
        read_pairs = entries_of(PairsEntry)[kind].load()
        blocks = pair_blocks(read_pairs(paths[0], config, counts))
        for number, block in enumerate(blocks):
            yield block if number else FirstPairs(block, paths[0])


def read_files(
    entries: list[str],
    config: DataConfig,
    counts: Counter[str],
) -> Iterator[Pair]:
    """The sentence pairs of `read_blocks`, one by one."""
    for block in read_blocks(entries, config, counts):
        yield from pairs_of_block(block, config, counts)


def read_json_lines(path: Path, config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
    for block in line_blocks((path,)):
        yield from block.pairs(config, counts)
