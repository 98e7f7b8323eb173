"""Reading one source of a corpus: its clean training pairs that pass the filters, and its validation and test sets.

Text passes through memory in blocks; only a hash and a flag are kept for each pair.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nmt.config import DataConfig
from nmt.data.arrow import TEXT_SCHEMA, arrow_blocks, arrow_writer
from nmt.errors import NMTError
from nmt.preparation.blocks import blocks, clean_and_filter, clean_pair, pair_hashes, shares_letters
from nmt.preparation.corpora import read_split
from nmt.text.files import Pair
from nmt.text.filters import letters, words

Say = Callable[[str], None]
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""`map` over the worker processes, in order."""
EMPTY = np.empty(0, np.uint64)


def first_of_equals(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True at the first occurrence of every value; large inputs are sorted in parts, to save memory."""
    keep = np.zeros(len(hashes), dtype=bool)
    parts = len(hashes) // 4_000_000 + 1
    for part in range(parts):
        indices = np.flatnonzero(hashes % np.uint64(parts) == part)
        keep[indices[np.unique(hashes[indices], return_index=True)[1]]] = True
    return keep


@dataclass
class Reading:
    """One source of a corpus, read by `run`."""

    data: DataConfig
    seed: int
    text: Path
    """The file of clean training pairs that pass the filters."""
    say: Say
    map: Map
    counts: dict[str, Any] = field(default_factory=dict)
    """For each split, pairs read and dropped, by reason."""
    given: dict[str, NDArray[np.uint64]] = field(default_factory=dict)
    """Split -> hashes of its pairs, for a validation or test set that is not drawn from train."""
    held_out: dict[str, list[Pair]] = field(default_factory=dict)
    """The raw pairs of valid and test."""
    keep: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """True for each pair of `text` that is trained on."""

    @property
    def is_treebank(self) -> bool:
        return self.data.kind == "treebank"

    def run(self) -> None:
        """Read everything, and draw the validation and test sets that are not given."""
        self.counts["train"] = {}
        found = {split: self.read_held_out(split) for split in ("valid", "test")}
        self.keep = self.collect_train()
        missing = [split for split, pairs in found.items() if pairs is None]
        drawn = self.hold_out(self.keep, missing) if missing else {}
        for split, pairs in drawn.items():
            self.counts[split] = {"read": len(pairs), "dropped": Counter()}
        self.held_out = {split: drawn.get(split, pairs or []) for split, pairs in found.items()}

    def read_held_out(self, split: str) -> list[Pair] | None:
        """All raw pairs of a validation or test set, unfiltered; None if it is to be drawn from train."""
        dropped: Counter[str] = Counter()
        pairs = read_split(self.data, split, dropped)
        if pairs is None:
            return None
        kept = list(pairs)
        if split == "valid" and not kept:
            raise NMTError("data.valid holds no pair: training needs some to be validated on")
        self.counts[split] = {"read": len(kept) + dropped.total(), "dropped": dropped}
        self.given[split] = pair_hashes([clean_pair(pair, self.data) for pair in kept])
        return kept

    def collect_train(self) -> NDArray[np.bool_]:
        """Read, clean and filter the training pairs into `text`; returns True for each pair that is no duplicate."""
        broken: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        read = kept = 0
        hashes, in_given = [EMPTY], [EMPTY]
        deduplicate = self.data.filters.deduplicate
        given = np.concatenate([EMPTY, *self.given.values()])
        pairs = read_split(self.data, "train", broken)
        assert pairs is not None
        process = partial(clean_and_filter, data=self.data, hashed=deduplicate or len(given) > 0)
        with arrow_writer(self.text, TEXT_SCHEMA) as write:
            for block, block_hashes, reasons in self.map(process, blocks(enumerate(pairs, start=1))):
                write(block)
                in_given.append(np.intersect1d(block_hashes, given))
                hashes += [block_hashes] if deduplicate else []
                kept += len(block)
                read += len(block) + reasons.total()
                dropped += reasons
                self.say(f"read {read:,} pairs")
        self.counts["train"] = {"read": read + broken.total(), "dropped": broken + dropped}
        for split, own in self.given.items():
            self.counts[split]["in_train"] = int(np.isin(own, np.concatenate(in_given)).sum())
        keep = first_of_equals(np.concatenate(hashes)) if deduplicate else np.ones(kept, dtype=bool)
        if repeated := int((~keep).sum()):
            self.counts["train"]["dropped"]["duplicates"] = repeated
        if not keep.any():
            raise self.nothing_left()
        return keep

    def nothing_left(self) -> NMTError:
        train = self.counts["train"]
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in train["dropped"].items()) or "none was read"
        return NMTError(f"no training pair is left of {train['read']:,} ({reasons}): check data.train and data.filters")

    def hold_out(self, keep: NDArray[np.bool_], splits: list[str]) -> dict[str, list[Pair]]:
        """Draw the missing splits from the pairs in `keep`, and drop all pairs with the same letters from it.

        So no held-out line occurs in training on either side, not even with other digits, case or punctuation.
        """
        import datasets

        text = datasets.Dataset.from_file(str(self.text))
        order = iter(np.random.default_rng(self.seed).permutation(np.flatnonzero(keep)).tolist())
        sizes = {"valid": self.data.valid_size, "test": self.data.test_size}
        found: tuple[set[str], set[str]] = (set(), set())
        # The test set comes first, so that it is the same one whether or not data.valid is given.
        drawn = {split: self.draw(text, order, sizes[split], found) for split in reversed(splits)}
        flags = self.map(partial(shares_letters, sides=found), arrow_blocks(self.text))
        alike = np.concatenate(list(flags))
        if others := int((keep & alike).sum()) - sum(map(len, drawn.values())):
            self.counts["train"]["dropped"]["like a held-out line"] = others
        keep &= ~alike
        if any(len(drawn[split]) < sizes[split] for split in splits) or not keep.any():
            raise NMTError(
                f"the corpus has too few different pairs to draw data.valid_size={self.data.valid_size} and "
                f"data.test_size={self.data.test_size} from it: lower these, or give data.valid and data.test"
            )
        pairs = self.raw_pairs if self.is_treebank else lambda rows: [(row["source"], row["target"]) for row in rows]
        return {split: pairs([text[index] for index in drawn[split]]) for split in splits}

    def draw(self, text: Any, order: Iterator[int], size: int, found: tuple[set[str], set[str]]) -> list[int]:
        """Take the next `size` indices of `order` whose letters are not in `found` yet, and add their letters to it."""
        drawn: list[int] = []
        while len(drawn) < size and (index := next(order, None)) is not None:
            source, target = text[index]["source"], text[index]["target"]
            new = letters(source) not in found[0] and letters(target) not in found[1]
            if new and words(source) >= self.data.held_out_min_words:
                found[0].add(letters(source))
                if not self.is_treebank:  # many sentences have the same tree
                    found[1].add(letters(target))
                drawn.append(index)
        return drawn

    def raw_pairs(self, rows: list[dict[str, Any]]) -> list[Pair]:
        """Read the original pairs of these rows again: the linear trees in `text` do not hold all of them."""
        numbers = {row["line"] for row in rows}
        pairs = enumerate(read_split(self.data, "train", Counter()) or (), start=1)
        found = {number: pair for number, pair in pairs if number in numbers}
        return [found[row["line"]] for row in rows]
