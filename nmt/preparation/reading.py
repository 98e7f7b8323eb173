"""Reading one source of a corpus: its clean training pairs that pass the filters, and its validation and test sets.

Text passes through memory in blocks; only a hash and a flag are kept for each pair.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.config import DataConfig
from nmt.data import TEXT_SCHEMA, arrow_blocks, arrow_writer, text_block, text_pairs
from nmt.errors import NMTError
from nmt.preparation.corpora import Corpus, corpus_for
from nmt.text import Pair, letters, reason_to_drop, words

BLOCK_PAIRS = 5000
Item = TypeVar("Item")
Clean = Callable[[str], str]
Say = Callable[[str], None]
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""`map` over the worker processes, in order."""
Hashes = NDArray[np.uint64]
EMPTY = np.empty(0, np.uint64)
HELD_OUT = ("valid", "test")


def blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Consecutive lists of BLOCK_PAIRS items; the last may be shorter."""
    iterator = iter(items)
    while block := list(islice(iterator, BLOCK_PAIRS)):
        yield block


def chosen_blocks(path: Path, chosen: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    """The chosen pairs of an Arrow file, in order, as blocks."""
    start = 0
    for block in arrow_blocks(path):
        yield block.filter(pa.array(chosen[start : start + len(block)]))
        start += len(block)


def pair_hashes(pairs: Iterable[Pair]) -> Hashes:
    """64-bit hashes of pairs."""
    digests = (hashlib.blake2b("\t".join(pair).encode(), digest_size=8).digest() for pair in pairs)
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def first_of_equals(hashes: Hashes) -> NDArray[np.bool_]:
    """True at the first occurrence of every value; large inputs are sorted in parts, to save memory."""
    keep = np.zeros(len(hashes), dtype=bool)
    parts = len(hashes) // 4_000_000 + 1
    for part in range(parts):
        indices = np.flatnonzero(hashes % np.uint64(parts) == part)
        keep[indices[np.unique(hashes[indices], return_index=True)[1]]] = True
    return keep


def clean_and_filter(
    numbered: list[tuple[int, Pair]], corpus: Corpus, clean: Clean, hashed: bool
) -> tuple[pa.RecordBatch, Hashes, Counter[str]]:
    """Raw pairs with line numbers -> the clean pairs that pass the filters, their hashes, and counts of dropped pairs.

    There are no hashes unless `hashed`.
    """
    kept, lines, dropped = [], [], Counter[str]()
    for line, raw in numbered:
        pair = corpus.as_read(raw, clean)
        if reason := reason_to_drop(pair, corpus.data.filters):
            dropped[reason] += 1
        else:
            kept.append(pair)
            lines.append(line)
    return text_block(kept, lines), pair_hashes(kept if hashed else []), dropped


def shares_letters(block: pa.RecordBatch, sides: tuple[set[str], set[str]]) -> NDArray[np.bool_]:
    """True for each pair with a side whose letters are among those of that side."""
    pairs = text_pairs(block)
    return np.array([letters(source) in sides[0] or letters(target) in sides[1] for source, target in pairs], bool)


@dataclass
class Reading:
    """One source of a corpus, read by `read_held_out` and then `read_train`."""

    data: DataConfig
    seed: int
    text: Path
    """The file of clean training pairs that pass the filters."""
    say: Say
    map: Map
    clean: Clean
    """The tokenizer's."""
    counts: dict[str, Any] = field(default_factory=dict)
    """For each split, pairs read and dropped, by reason."""
    given: dict[str, Hashes] = field(default_factory=dict)
    """Split -> hashes of its pairs, for a validation or test set that is not drawn from train."""
    held_out: dict[str, list[Pair]] = field(default_factory=dict)
    """The raw pairs of valid and test."""
    drawn: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """The letters of both sides of the pairs that are drawn from train for these."""
    in_given: Hashes = field(default_factory=lambda: EMPTY)
    """Hashes of the training pairs that are in a set that is given."""
    keep: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """True for each pair of `text` that is trained on."""

    def __post_init__(self) -> None:
        self.corpus = corpus_for(self.data)

    def read_held_out(self) -> None:
        """Read all raw pairs of the validation and test sets that are given, unfiltered."""
        for split in HELD_OUT:
            dropped: Counter[str] = Counter()
            pairs = self.corpus.read(split, dropped)
            if pairs is None:
                continue
            self.held_out[split] = list(pairs)
            if split == "valid" and not self.held_out[split]:
                raise NMTError("data.valid holds no pair: training needs some to be validated on")
            self.counts[split] = {"read": len(self.held_out[split]) + dropped.total(), "dropped": dropped}
            self.given[split] = pair_hashes(self.corpus.as_read(pair, self.clean) for pair in self.held_out[split])

    def read_train(self, given: Hashes) -> None:
        """Read train into `text`, and draw the sets that are not given; `given` are hashes of those of all sources."""
        broken, dropped = Counter[str](), Counter[str]()
        read, hashes, in_given, unique = 0, [EMPTY], [EMPTY], self.data.filters.deduplicate
        pairs = self.corpus.read("train", broken)
        assert pairs is not None
        process = partial(clean_and_filter, corpus=self.corpus, clean=self.clean, hashed=unique or len(given) > 0)
        kept = 0
        with arrow_writer(self.text, TEXT_SCHEMA) as write:
            for block, block_hashes, reasons in self.map(process, blocks(enumerate(pairs, start=1))):
                write(block)
                in_given.append(np.intersect1d(block_hashes, given))
                hashes += [block_hashes] if unique else []
                kept += len(block)
                read += len(block) + reasons.total()
                dropped += reasons
                self.say(f"read {read:,} pairs")
        self.counts["train"] = {"read": read + broken.total(), "dropped": broken + dropped}
        self.in_given = np.concatenate(in_given)
        self.keep = first_of_equals(np.concatenate(hashes)) if unique else np.ones(kept, dtype=bool)
        if repeated := int((~self.keep).sum()):
            self.counts["train"]["dropped"]["duplicates"] = repeated
        if not self.keep.any():
            raise self.nothing_left()
        if missing := [split for split in HELD_OUT if split not in self.given]:
            self.hold_out(missing)

    def nothing_left(self) -> NMTError:
        train = self.counts["train"]
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in train["dropped"].items()) or "none was read"
        return NMTError(f"no training pair is left of {train['read']:,} ({reasons}): check data.train and data.filters")

    def hold_out(self, splits: list[str]) -> None:
        """Draw these splits from the training pairs, and drop all pairs with the same letters.

        So no held-out line occurs in training on either side, not even with other digits, case or punctuation.
        """
        text = pa.ipc.open_stream(pa.memory_map(str(self.text))).read_all()
        order = iter(np.random.default_rng(self.seed).permutation(np.flatnonzero(self.keep)).tolist())
        sizes = {"valid": self.data.valid_size, "test": self.data.test_size}
        # The test set comes first, so that it is the same whether or not data.valid is given.
        drawn = {split: self.draw(text, order, sizes[split]) for split in reversed(splits)}
        self.drop_alike(self.drawn, sum(map(len, drawn.values())))
        if any(len(drawn[split]) < sizes[split] for split in splits) or not self.keep.any():
            raise NMTError(
                f"the corpus has too few different pairs to draw data.valid_size={self.data.valid_size} and "
                f"data.test_size={self.data.test_size} from it: lower these, or give data.valid and data.test"
            )
        for split in splits:
            rows = text.take(pa.array(drawn[split], pa.int64()))
            if self.corpus.structured:
                # Read the original pairs again, which `text` does not show.
                lines = rows.column("line").to_pylist()
                drawn_lines = set(lines)
                numbered = enumerate(self.corpus.read("train", Counter()) or (), start=1)
                originals = {number: pair for number, pair in numbered if number in drawn_lines}
                self.held_out[split] = [originals[line] for line in lines]
            else:
                self.held_out[split] = text_pairs(rows)
            self.counts[split] = {"read": len(rows), "dropped": Counter()}

    def drop_alike(self, sides: tuple[set[str], set[str]], held_out: int = 0) -> None:
        """Drop the training pairs with these letters on either side; `held_out` of them are not lost."""
        alike = np.concatenate(list(self.map(partial(shares_letters, sides=sides), arrow_blocks(self.text))))
        if others := int((self.keep & alike).sum()) - held_out:
            self.counts["train"]["dropped"]["like a held-out line"] += others
        self.keep &= ~alike

    def draw(self, text: pa.Table, order: Iterator[int], size: int) -> list[int]:
        """Take the next `size` indices of `order` whose letters are not drawn yet."""
        drawn: list[int] = []
        while len(drawn) < size and (index := next(order, None)) is not None:
            pair = [text.column(side)[index].as_py() for side in (0, 1)]
            new = not any(letters(line) in taken for line, taken in zip(pair, self.drawn, strict=True))
            if new and words(pair[0]) >= self.data.held_out_min_words:
                self.drawn[0].add(letters(pair[0]))
                if not self.corpus.structured:  # many sentences have the same tree
                    self.drawn[1].add(letters(pair[1]))
                drawn.append(index)
        return drawn
