"""The sentence pairs of a corpus, in blocks that fit in memory and are quick to pass on.

Worker processes decode the lines of a block, because one process alone cannot decode as fast as
many workers use the pairs.
"""

import codecs
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from nmt.config import DataConfig, NMTError
from nmt.extensions import PairsEntry
from nmt.registry import entries_of
from nmt.text.files import MalformedLine, bounded_lines, decode, open_bytes, without_end
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
    """Consecutive lines of two parallel files, or of a JSONL file, in bytes."""

    paths: tuple[Path, ...]
    first: int
    """The number of the first line, counted from 1."""
    sides: tuple[list[bytes], ...]
    """The lines of each file, with their ends, from `bounded_lines`."""

    def pairs(self, config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
        """The sentence pairs; with data.errors=skip, malformed lines are only counted."""
        for number, lines in enumerate(zip(*self.sides, strict=True), self.first):
            texts = list[str]()
            try:
                for line in lines:
                    texts.append(decode(without_end(line)))
                yield pair_of(texts, config)
            except MalformedLine as error:
                if config.errors == "strict":
                    # A line that cannot be decoded, or the last one, which cannot be parsed.
                    path = self.paths[min(len(texts), len(self.paths) - 1)]
                    advice = "fix it, or pass data.errors=skip"
                    raise NMTError(f"{path}, line {number}: {error}; {advice}") from error
                counts[error.counted_as] += 1


PairBlock = LineBlock | list[Pair]


def next_lines(readers: Sequence[Iterator[bytes]]) -> tuple[list[bytes], ...]:
    """The next block of lines from each reader."""
    sides = tuple(list[bytes]() for _ in readers)
    size = 0
    is_last = False
    # Both files advance by the same number of lines, so the sides stay parallel.
    while len(sides[0]) < BLOCK_PAIRS and size < BLOCK_BYTES and not is_last:
        for side, reader in zip(sides, readers, strict=True):
            lines = list(islice(reader, LINES_AT_ONCE))
            side += lines
            size += sum(map(len, lines))
            # Fewer lines than asked for: this file has ended.
            is_last = is_last or len(lines) < LINES_AT_ONCE
    return sides


def without_mark(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of a file without the byte order mark that it may begin with."""
    # `islice` takes the first line from the same iterator that `chain` continues with.
    first = (line.removeprefix(codecs.BOM_UTF8) for line in islice(lines, 1))
    return chain(first, lines)


def line_blocks(paths: tuple[Path, ...]) -> Iterator[LineBlock]:
    """The lines of two parallel files or of a JSONL file.

    NMTError after the last pair if the line counts differ.
    """
    with ExitStack() as stack:
        readers = []
        for path in paths:
            file = stack.enter_context(open_bytes(str(path)))
            readers.append(without_mark(bounded_lines(file, path)))
        lines_before = 0
        # An empty block of both files is their end.
        while any(sides := next_lines(readers)):
            # Pairs before the end of the shorter file are good. The error follows them.
            count = min(map(len, sides))
            if count:
                shared = tuple(side[:count] for side in sides)
                yield LineBlock(paths, lines_before + 1, shared)
            # One file has ended. The error has the numbers of lines of both.
            if any(len(side) > count for side in sides):
                counts = []
                for side, reader in zip(sides, readers, strict=True):
                    counts.append(lines_before + len(side) + number_of(reader))
                raise not_parallel(paths, counts)
            lines_before += count


def number_of(lines: Iterator[bytes]) -> int:
    """The number of remaining lines."""
    return sum(1 for _ in lines)


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


def pairs_of_block(block: PairBlock, config: DataConfig, counts: Counter[str]) -> Iterable[Pair]:
    return block.pairs(config, counts) if isinstance(block, LineBlock) else block


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
        yield from pair_blocks(read_pairs(paths[0], config, counts))


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
