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
from nmt.data import TEXT_SCHEMA, arrow_blocks, arrow_writer
from nmt.errors import NMTError
from nmt.preparation.blocks import Clean, blocks, clean_and_filter, clean_pair, pair_hashes, shares_letters
from nmt.preparation.corpora import read_split
from nmt.text import Pair, letters, words

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
    """One source of a corpus, read by `read_held_out` and then `run`."""

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
    given: dict[str, NDArray[np.uint64]] = field(default_factory=dict)
    """Split -> hashes of its pairs, for a validation or test set that is not drawn from train."""
    held_out: dict[str, list[Pair]] = field(default_factory=dict)
    """The raw pairs of valid and test."""
    drawn: tuple[set[str], set[str]] = field(default_factory=lambda: (set(), set()))
    """The letters of both sides of the pairs that are drawn from train for these."""
    in_given: NDArray[np.uint64] = field(default_factory=lambda: EMPTY)
    """Hashes of the training pairs that are in a set that is given."""
    keep: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    """True for each pair of `text` that is trained on."""

    @property
    def is_treebank(self) -> bool:
        return self.data.kind == "treebank"

    def read_held_out(self) -> None:
        """Read all raw pairs of the validation and test sets that are given, unfiltered."""
        for split in ("valid", "test"):
            dropped: Counter[str] = Counter()
            pairs = read_split(self.data, split, dropped)
            if pairs is None:
                continue
            self.held_out[split] = list(pairs)
            if split == "valid" and not self.held_out[split]:
                raise NMTError("data.valid holds no pair: training needs some to be validated on")
            self.counts[split] = {"read": len(self.held_out[split]) + dropped.total(), "dropped": dropped}
            self.given[split] = pair_hashes([self.cleaned(pair) for pair in self.held_out[split]])

    def cleaned(self, pair: Pair) -> Pair:
        """A pair as the model reads it."""
        return clean_pair(pair, self.data, self.clean)

    def run(self, given: NDArray[np.uint64]) -> None:
        """Read train, and draw the sets that are not given from it; `given` are hashes of those of all sources."""
        self.keep = self.collect_train(given)
        missing = [split for split in ("valid", "test") if split not in self.given]
        drawn = self.hold_out(missing) if missing else {}
        for split, pairs in drawn.items():
            self.counts[split] = {"read": len(pairs), "dropped": Counter()}
        self.held_out |= drawn

    def collect_train(self, given: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Read, clean and filter the training pairs into `text`; returns True for each pair that is no duplicate."""
        broken: Counter[str] = Counter()
        dropped: Counter[str] = Counter()
        read = kept = 0
        hashes, in_given = [EMPTY], [EMPTY]
        deduplicate = self.data.filters.deduplicate
        pairs = read_split(self.data, "train", broken)
        assert pairs is not None
        hashed = deduplicate or len(given) > 0
        process = partial(clean_and_filter, data=self.data, clean=self.clean, hashed=hashed)
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
        self.in_given = np.concatenate(in_given)
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

    def hold_out(self, splits: list[str]) -> dict[str, list[Pair]]:
        """Draw the missing splits from the training pairs, and drop all pairs with the same letters.

        So no held-out line occurs in training on either side, not even with other digits, case or punctuation.
        """
        import datasets

        text = datasets.Dataset.from_file(str(self.text))
        order = iter(np.random.default_rng(self.seed).permutation(np.flatnonzero(self.keep)).tolist())
        sizes = {"valid": self.data.valid_size, "test": self.data.test_size}
        # The test set comes first, so that it is the same one whether or not data.valid is given.
        drawn = {split: self.draw(text, order, sizes[split]) for split in reversed(splits)}
        self.drop_alike(self.drawn, sum(map(len, drawn.values())))
        if any(len(drawn[split]) < sizes[split] for split in splits) or not self.keep.any():
            raise NMTError(
                f"the corpus has too few different pairs to draw data.valid_size={self.data.valid_size} and "
                f"data.test_size={self.data.test_size} from it: lower these, or give data.valid and data.test"
            )
        pairs = self.raw_pairs if self.is_treebank else lambda rows: [(row["source"], row["target"]) for row in rows]
        return {split: pairs([text[index] for index in drawn[split]]) for split in splits}

    def drop_alike(self, sides: tuple[set[str], set[str]], held_out: int = 0) -> None:
        """Drop the training pairs with these letters on either side; `held_out` of them are not lost."""
        alike = np.concatenate(list(self.map(partial(shares_letters, sides=sides), arrow_blocks(self.text))))
        if others := int((self.keep & alike).sum()) - held_out:
            self.counts["train"]["dropped"]["like a held-out line"] += others
        self.keep &= ~alike

    def draw(self, text: Any, order: Iterator[int], size: int) -> list[int]:
        """Take the next `size` indices of `order` whose letters are not drawn yet."""
        drawn: list[int] = []
        found = self.drawn
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
        """Read the original pairs of these rows again: linear trees in `text` do not hold all of them."""
        numbers = {row["line"] for row in rows}
        pairs = enumerate(read_split(self.data, "train", Counter()) or (), start=1)
        found = {number: pair for number, pair in pairs if number in numbers}
        return [found[row["line"]] for row in rows]
