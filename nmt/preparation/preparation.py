"""From raw pairs of lines to a prepared corpus, in an empty folder.

    read -> clean and filter -> deduplicate, hold out -> learn the vocabulary -> encode -> Arrow

Text and ids pass through memory in blocks; only a hash and a flag are kept for each pair.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.config import DataConfig, ExperimentConfig
from nmt.data.arrow import IDS_SCHEMA, TEXT_SCHEMA, arrow_blocks, arrow_writer, text_block
from nmt.errors import NMTError
from nmt.model_directory.description import find_model_directory, read_tokenizer
from nmt.preparation.blocks import (
    Item,
    Result,
    blocks,
    bounded_map,
    chosen_blocks,
    clean_and_filter,
    clean_pair,
    encode_block,
    learn_vocabulary,
    pair_hashes,
    shares_letters,
)
from nmt.preparation.corpora import read_split
from nmt.text.files import Pair
from nmt.text.filters import letters, words

Say = Callable[[str], None]
SIDES = ("source", "target")
RECORDED_CHARACTERS = 20_000
"""The manifest records the characters of a side up to this number; a corpus with more is taken to have all."""
EMPTY = np.empty(0, np.uint64)


def first_of_equals(hashes: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """True at the first occurrence of every value; large inputs are sorted in parts, to save memory."""
    keep = np.zeros(len(hashes), dtype=bool)
    parts = len(hashes) // 4_000_000 + 1
    for part in range(parts):
        indices = np.flatnonzero(hashes % np.uint64(parts) == part)
        keep[indices[np.unique(hashes[indices], return_index=True)[1]]] = True
    return keep


def usual_and_longest(lengths: Counter[int]) -> dict[str, int]:
    """The 99th percentile and the maximum of counted lengths; 0 without lengths."""
    ascending = sorted(lengths)
    so_far = list(accumulate(lengths[length] for length in ascending))
    if not ascending:
        return {"p99": 0, "max": 0}
    return {"p99": ascending[bisect_left(so_far, ceil(0.99 * so_far[-1]))], "max": ascending[-1]}


@dataclass
class Preparation:
    """One run of `nmt preprocess`, which writes into `folder`."""

    config: ExperimentConfig
    folder: Path
    say: Say
    pool: ProcessPoolExecutor
    counts: dict[str, Any] = field(default_factory=dict)
    given: dict[str, NDArray[np.uint64]] = field(default_factory=dict)
    """Split -> hashes of its pairs, for a validation or test set that is not drawn from train."""
    characters: dict[str, str] | None = None
    """The characters of the training pairs by side; None if they are too many."""

    @property
    def data(self) -> DataConfig:
        return self.config.data

    @property
    def is_treebank(self) -> bool:
        return self.data.kind == "treebank"

    @property
    def text(self) -> Path:
        """The file of clean training pairs that pass the filters."""
        return self.folder / "text.arrow"

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return bounded_map(function, items, self.pool, 2 * self.config.workers)

    def run(self) -> None:
        """Read, hold out, learn the vocabulary, encode, and write everything but the manifest."""
        self.counts["train"] = {}
        held_out = {split: self.read_held_out(split) for split in ("valid", "test")}
        keep = self.collect_train()
        missing = [split for split, pairs in held_out.items() if pairs is None]
        for split, drawn in self.hold_out(keep, missing).items() if missing else ():
            held_out[split] = drawn
            self.counts[split] = {"read": len(drawn), "dropped": Counter()}
        self.learn_vocabulary(keep)
        for split, pairs in held_out.items():
            assert pairs is not None
            self.write_text(split, pairs)
            clean_blocks = (
                text_block([clean_pair(pair, self.data) for _, pair in block], [line for line, _ in block])
                for block in blocks(enumerate(pairs, start=1))
            )
            self.write_ids(split, clean_blocks, None)
        self.write_ids("train", chosen_blocks(self.text, keep), self.data.filters.max_tokens)
        self.text.unlink()

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
        order = iter(np.random.default_rng(self.config.seed).permutation(np.flatnonzero(keep)).tolist())
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

    def learn_vocabulary(self, keep: NDArray[np.bool_]) -> None:
        """Train the tokenizer on a sample of the kept pairs, both sides, or copy that of `init`."""
        config = self.config.tokenizer
        if self.config.init is not None:
            read_tokenizer(find_model_directory(self.config.init, "init")).save(self.folder / "tokenizer.model")
            return
        sample = keep
        indices = np.flatnonzero(keep)
        if len(indices) > config.sample:
            sample = np.zeros_like(keep)
            sample[np.random.default_rng(self.config.seed).choice(indices, config.sample, replace=False)] = True
        self.say(f"learning a {config.kind} vocabulary from {int(sample.sum()):,} pairs")
        sides = (0,) if self.is_treebank else (0, 1)
        # In a worker process, because the library ignores signals while it trains, and to free its memory.
        learning = self.pool.submit(learn_vocabulary, self.text, sample, sides, config, self.brackets(keep))
        learning.result().save(self.folder / "tokenizer.model")

    def brackets(self, keep: NDArray[np.bool_]) -> list[str]:
        """All different brackets of the kept trees; each becomes one entry of the vocabulary."""
        if not self.is_treebank:
            return []
        trees = (tree for block in chosen_blocks(self.text, keep) for tree in block.column(1).to_pylist())
        return sorted({step for tree in trees for step in tree.split(" ") if step[0] in "()"})

    def write_text(self, split: str, pairs: list[Pair]) -> None:
        """Write the raw lines of a held-out set, for `nmt translate` and `nmt score`."""
        for side, language in enumerate((self.data.source, self.data.target)):
            # Texts from JSON and the hub may contain line ends; here a line is a sentence.
            lines = "".join(re.sub(r"[\r\n]+", " ", pair[side]) + "\n" for pair in pairs)
            (self.folder / f"{split}.{language}").write_text(lines, encoding="utf-8", newline="\n")

    def write_ids(self, split: str, text_blocks: Iterable[pa.RecordBatch], limit: int | None) -> None:
        """Encode, write and count clean pairs and their tokens; a split without pairs has no folder."""
        lengths = {side: Counter[int]() for side in SIDES}
        characters: dict[str, set[str]] = {side: set() for side in SIDES}
        folder, too_long = self.folder / split, 0
        folder.mkdir()
        encode = partial(encode_block, tokenizer_file=self.folder / "tokenizer.model", limit=limit)
        with arrow_writer(folder / "pairs.arrow", IDS_SCHEMA) as write:
            for ids, dropped, found in self.map(encode, text_blocks):
                write(ids)
                too_long += dropped
                for side, own in zip(SIDES, found, strict=True):
                    lengths[side].update((ids.column(f"{side}_length").to_numpy() - 1).tolist())
                    characters[side] |= own
                self.say(f"encoded {lengths['source'].total():,} pairs of {split}")
        kept = lengths["source"].total()
        if too_long:
            self.counts[split]["dropped"]["too long (tokens)"] += too_long
        if not kept:
            (folder / "pairs.arrow").unlink()
            folder.rmdir()
        if split == "train":
            if not kept:
                raise self.nothing_left()
            few = max(map(len, characters.values())) <= RECORDED_CHARACTERS
            self.characters = {side: "".join(sorted(found)) for side, found in characters.items()} if few else None
        self.counts[split] |= {
            "kept": kept,
            # Each pair has one end symbol per side.
            "tokens": {side: kept + sum(length * count for length, count in lengths[side].items()) for side in SIDES},
            "lengths": {side: usual_and_longest(lengths[side]) for side in SIDES},
        }
