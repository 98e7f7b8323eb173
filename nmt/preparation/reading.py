"""The sources of a corpus, and the clean training pairs and held-out sets read from each.

Text passes through memory one Arrow block at a time; only a flag per pair stays in memory.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from nmt.config import DataConfig, require
from nmt.preparation.arrow_files import (
    TEXT_SCHEMA,
    Numbered,
    arrow_blocks,
    arrow_rows,
    arrow_writer,
    text_block,
    text_pairs,
    with_first_line,
)
from nmt.preparation.deduplication import EMPTY, Hashes, hash_file, pair_hashes, repeated_rows
from nmt.preparation.filters import Cleaning
from nmt.preparation.selection import Flags, Rows, nth_flagged, shuffled_range
from nmt.preparation.sources import corpus_for
from nmt.preparation.suspicions import NO_SAMPLE, Sample, Suspicions
from nmt.text import (
    BLOCK_PAIRS,
    Normalization,
    Pair,
    PairBlock,
    Tokenizer,
    letters,
    train_tokenizer,
    words,
)

HELD_OUT = ("valid", "test")
CANDIDATES = 1 << 16
"""The pairs that one pass over the training text collects to draw held-out sets from."""
log = logging.getLogger(__name__)
Item = TypeVar("Item")
Say = Callable[[str], None]
Map = Callable[
    [Callable[[Any], Any], Iterable[Any]], Iterator[Any]
]  # `map` in the worker processes, in order


def blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    iterator = iter(items)
    while block := list(islice(iterator, BLOCK_PAIRS)):
        yield block


def shares_letters(block: pa.RecordBatch, sides: tuple[set[str], set[str]]) -> Flags:
    pairs = text_pairs(block)
    return np.array(
        [letters(source) in sides[0] or letters(target) in sides[1] for source, target in pairs],
        bool,
    )


def learn_vocabulary(
    samples: list[tuple[Path, Rows]], sides: tuple[int, ...], *options: Any
) -> Tokenizer:
    """Train a tokenizer on the given sides of the sampled rows of each text file."""
    pairs = (
        pair
        for text, rows in samples
        for block in arrow_rows(text, rows)
        for pair in text_pairs(block)
    )
    return train_tokenizer(
        (pair[side] for block in blocks(pairs) for side in sides for pair in block), *options
    )


class Reading:
    """One source of a corpus. Call `read_held_out` first, then `read_train`, which writes clean pairs to `text`."""

    def __init__(
        self,
        data: DataConfig,
        seed: int,
        text: Path,
        say: Say,
        map: Map,
        normalization: Normalization,
    ) -> None:
        self.data = data
        self.seed = seed
        self.text = text
        self.say = say
        self.map = map
        self.normalization = normalization
        self.corpus = corpus_for(data)
        self.counts: dict[str, Any] = {}  # split -> pairs read, and pairs dropped by reason
        self.held_out: dict[str, list[Pair]] = {}  # split -> raw pairs
        self.given: dict[
            str, Hashes
        ] = {}  # split -> hashes of its pairs; only splits not drawn from train
        self.in_given = (
            EMPTY  # hashes of the training pairs that also occur in a given held-out set
        )
        self.drawn: tuple[set[str], set[str]] = (
            set(),
            set(),
        )  # per side, the letters of each line drawn from train
        self.keep = np.empty(0, np.bool_)  # for each pair in `text`, whether it stays in train

    def read_held_out(self) -> None:
        if not self.corpus.structured:
            Suspicions(self.data).languages.load_model()
        for split in HELD_OUT:
            dropped = Counter[str]()
            raw = self.corpus.read(split, dropped)
            if raw is not None:
                pairs = self.held_out[split] = list(raw)
                require(
                    split != "valid" or bool(pairs),
                    "data.valid has no pairs, but training needs some to validate on",
                )
                self.counts[split] = {"read": len(pairs) + dropped.total(), "dropped": dropped}
                suspicions = Suspicions(self.data)
                if not self.corpus.structured:
                    for number, block in enumerate(blocks(pairs)):
                        suspicions.inspect(
                            block, suspicions.next_sample(), 1 + number * BLOCK_PAIRS
                        )
                self.report(split, suspicions)
                self.given[split] = pair_hashes(
                    self.corpus.as_read(pair, self.normalization) for pair in pairs
                )

    def report(self, split: str, suspicions: Suspicions) -> None:
        entries = ", ".join(getattr(self.data, split))
        where = f"data.{split} ({entries:.200})" if entries else f"data.{split}"
        for text in suspicions.notices():
            log.warning(f"notice: {where}: {text}")

    def read_train(self, given: Hashes) -> None:
        """Write the training set to `text` and draw missing held-out sets.

        `given` contains the hashes of the pairs of all given held-out sets, ascending and distinct.
        """
        is_unique = self.data.filters.deduplicate
        suspicions = Suspicions(self.data)
        skipped = Counter[str]()
        dropped = Counter[str]()
        read = 0
        written = 0
        is_in_train = np.zeros(len(given), bool)
        # Hashes go to a file, because those of a large corpus do not fit in memory.
        hash_path = self.text.with_suffix(".hashes")
        with arrow_writer(self.text, TEXT_SCHEMA) as write, hash_file(hash_path) as hashes:
            cleaning = Cleaning(
                self.corpus,
                self.normalization,
                is_hashed=is_unique or len(given) > 0,
                is_unique=is_unique,
            )
            for block in self.map(cleaning, self.blocks_to_clean(suspicions, skipped)):
                write(with_first_line(block.text, read + 1))
                suspicions.merge(block.suspicions, shift=read)
                if len(given):
                    places = np.searchsorted(given, block.hashes).clip(max=len(given) - 1)
                    is_in_train[places[given[places] == block.hashes]] = True
                if is_unique:
                    hashes.add(block.hashes)
                read += block.pairs
                written += len(block.text)
                skipped += block.skipped
                dropped += block.dropped
                self.say(f"read {read:,} pairs")
            self.keep = np.ones(written, np.bool_)
            for rows in self.map(partial(repeated_rows, path=hash_path), hashes.tasks()):
                self.keep[rows] = False
        self.report("train", suspicions)
        self.in_given = given[is_in_train]
        repeated = read - dropped.total() - self.pairs_left
        if repeated:
            dropped["duplicates"] = repeated
        self.counts["train"] = {"read": read + skipped.total(), "dropped": skipped + dropped}
        self.require_pairs(self.pairs_left > 0)
        if missing := [split for split in HELD_OUT if split not in self.given]:
            self.hold_out(missing)

    def blocks_to_clean(
        self, suspicions: Suspicions, skipped: Counter[str]
    ) -> Iterator[tuple[PairBlock, Sample]]:
        """The blocks of the training text, each with the part to inspect."""
        blocks = self.corpus.read_blocks("train", skipped)
        assert blocks is not None
        for block in blocks:
            yield block, NO_SAMPLE if self.corpus.structured else suspicions.next_sample()

    @property
    def pairs_left(self) -> int:
        """The number of pairs that stay in train."""
        return int(np.count_nonzero(self.keep))

    def require_pairs(self, left: bool) -> None:
        train = self.counts["train"]
        reasons = (
            ", ".join(f"{count:,} {reason}" for reason, count in train["dropped"].items())
            or "none were read"
        )
        message = f"no training pairs are left of {train['read']:,} ({reasons}): check data.train and data.filters"
        require(left, message)

    def hold_out(self, splits: list[str]) -> None:
        """Draw splits from train, and drop the remaining pairs in which a line has the same letters as a drawn line."""
        sizes = {"valid": self.data.valid_size, "test": self.data.test_size}
        candidates = self.in_random_order()
        # Draw the test set first, so that it does not depend on whether data.valid is given.
        drawn = {split: self.draw(candidates, sizes[split]) for split in reversed(splits)}
        self.drop_alike(self.drawn, sum(map(len, drawn.values())))
        is_complete = all(len(drawn[split]) == sizes[split] for split in splits)
        # With fewer, hardly any pairs are left to train on.
        is_enough = is_complete and 2 * self.pairs_left > sum(map(len, drawn.values()))
        keys = " and ".join(f"data.{split}_size={sizes[split]}" for split in splits)
        files = " and ".join(f"data.{split}" for split in splits)
        problem = f"the corpus has too few distinct pairs to draw {keys} from it"
        require(is_enough, f"{problem}: lower the size, or pass {files}")
        for split in splits:
            self.held_out[split] = [pair for _, pair in drawn[split]]
            self.counts[split] = {"read": len(drawn[split]), "dropped": Counter()}
            if (
                self.corpus.structured
            ):  # `text` holds the pairs as the model reads them, not the originals
                originals = dict.fromkeys((line for line, _ in drawn[split]), ("", ""))
                pairs = enumerate(self.corpus.read("train", Counter()) or (), start=1)
                originals |= {line: pair for line, pair in pairs if line in originals}
                self.held_out[split] = list(originals.values())

    def in_random_order(self) -> Iterator[tuple[int, Pair]]:
        """The training pairs in the order that the seed decides, each with its line number."""
        for numbers in shuffled_range(self.pairs_left, self.seed):
            # The lines are far apart in the file, so one pass over it collects a large part of them.
            for start in range(0, len(numbers), CANDIDATES):
                rows = nth_flagged(self.keep, numbers[start : start + CANDIDATES])
                order = np.argsort(rows)
                found: list[tuple[int, Pair]] = []
                for block in arrow_rows(self.text, rows[order]):
                    found += zip(block.column("line").to_pylist(), text_pairs(block), strict=True)
                for place in np.argsort(order).tolist():
                    yield found[place]

    def draw(self, candidates: Iterator[tuple[int, Pair]], size: int) -> Numbered:
        """Take the next `size` candidates in which no line has the letters of a drawn line."""
        drawn: Numbered = []
        while len(drawn) < size and (candidate := next(candidates, None)):
            pair = candidate[1]
            is_new = not any(
                letters(line) in taken for line, taken in zip(pair, self.drawn, strict=True)
            )
            if is_new and words(pair[0]) >= self.data.held_out_min_words:
                self.drawn[0].add(letters(pair[0]))
                if (
                    not self.corpus.structured
                ):  # trees may recur, because many sentences have the same tree
                    self.drawn[1].add(letters(pair[1]))
                drawn.append(candidate)
        return drawn

    def drop_alike(self, sides: tuple[set[str], set[str]], held_out: int = 0) -> None:
        """Drop training pairs with these letters on either side; count all but the `held_out` that are held out."""
        kept = self.pairs_left
        start = 0
        for alike in self.map(partial(shares_letters, sides=sides), arrow_blocks(self.text)):
            self.keep[start : start + len(alike)] &= ~alike
            start += len(alike)
        if lost := kept - self.pairs_left - held_out:
            self.counts["train"]["dropped"]["like a held-out line"] += lost

    def blocks_of(self, split: str) -> Iterable[pa.RecordBatch]:
        if split == "train":
            return arrow_blocks(self.text, self.keep)
        pairs = (
            (line, self.corpus.as_read(raw, self.normalization))
            for line, raw in enumerate(self.held_out[split], start=1)
        )
        return map(text_block, blocks(pairs))
