"""From raw pairs of lines to a prepared corpus, in an empty folder.

    read -> clean and filter -> deduplicate, hold out -> learn the vocabulary -> encode -> Arrow

Text and ids pass through memory in blocks; only a hash and a flag are kept for each pair.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nmt.config import DataConfig, ExperimentConfig, SourceConfig, held_out_name, sources_of
from nmt.data import IDS_SCHEMA, arrow_writer, stages, text_block
from nmt.errors import NMTError
from nmt.files import check_direction, find_model_directory, read_description, read_tokenizer
from nmt.plugins.augment.subword_sampling import subword_sampler
from nmt.preparation.blocks import (
    Item,
    Result,
    blocks,
    bounded_map,
    chosen_blocks,
    encode_block,
    learn_vocabulary,
)
from nmt.preparation.reading import EMPTY, Reading, Say
from nmt.text import Pair, Tokenizer, load_tokenizer

SIDES, SPLITS = ("source", "target"), ("train", "valid", "test")
RECORDED_CHARACTERS = 20_000
"""The manifest records the characters of a side up to this number; a corpus with more is taken to have all."""
LEARNT = 50
"""A character that the vocabulary does not have, and spells in bytes, is recorded if it stands there this often."""


def usual_and_longest(lengths: Counter[int]) -> dict[str, int]:
    """The 99th percentile and the maximum of counted lengths; 0 without lengths."""
    ascending = sorted(lengths)
    so_far = list(accumulate(lengths[length] for length in ascending))
    if not ascending:
        return {"p99": 0, "max": 0}
    return {"p99": ascending[bisect_left(so_far, ceil(0.99 * so_far[-1]))], "max": ascending[-1]}


def joined(counts: list[dict[str, Any]]) -> dict[str, Any]:
    """The counts of a split over all sources."""
    total = {
        "read": sum(each["read"] for each in counts),
        "dropped": sum((each["dropped"] for each in counts), Counter()),
    }
    found = sum(each.get("in_train", 0) for each in counts)
    return total | ({"in_train": found} if any("in_train" in each for each in counts) else {})


@dataclass
class Preparation:
    """One run of `nmt preprocess`, which writes into `folder`."""

    config: ExperimentConfig
    folder: Path
    say: Say
    pool: ProcessPoolExecutor
    readings: list[Reading] = field(default_factory=list)
    """The sources of the corpus."""
    tokenizer: Tokenizer | None = None
    """That of the model `init`."""
    counts: dict[str, Any] = field(default_factory=dict)
    characters: dict[str, str] | None = None
    """The characters of the training pairs by side; None if they are too many."""

    @property
    def data(self) -> DataConfig:
        return self.config.data

    @property
    def is_treebank(self) -> bool:
        return self.data.kind == "treebank"

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        return bounded_map(function, items, self.pool, 2 * self.config.workers)

    def run(self) -> None:
        """Read, hold out, learn the vocabulary, encode, and write everything but the manifest."""
        clean = Tokenizer.clean
        if self.config.init is not None:
            model = find_model_directory(self.config.init, "init")
            check_direction(f"init={self.config.init}", read_description(model), self.data.source, self.data.target)
            self.tokenizer = read_tokenizer(model)
            clean = self.tokenizer.clean
        sources = sources_of(self.data)
        for number, source in enumerate(sources):
            text = self.folder / f"text-{number}.arrow"
            self.readings.append(Reading(source.data, self.config.seed, text, self.say, self.map, clean))
            with self.naming(source):
                self.readings[-1].read_held_out()
        given = [hashes for reading in self.readings for hashes in reading.given.values()]
        for source, reading in zip(sources, self.readings, strict=True):
            with self.naming(source):
                reading.run(np.concatenate([EMPTY, *given]))
        self.compare_sources()
        stages(sources, [int(reading.keep.sum()) for reading in self.readings], self.data.temperature)
        self.counts = {split: joined([reading.counts[split] for reading in self.readings]) for split in SPLITS}
        if not any(reading.held_out["valid"] for reading in self.readings):
            raise NMTError("data.valid_size=0: training needs some pairs to be validated on; give data.valid")
        self.learn_vocabulary()
        tokenizer = load_tokenizer(self.folder / "tokenizer.model")
        for source in sources:
            subword_sampler(tokenizer, source.data.noise)  # NMTError if it cannot
        for split in ("valid", "test"):
            self.write_text(split, self.data, [pair for reading in self.readings for pair in reading.held_out[split]])
            for number, (source, reading) in enumerate(zip(sources, self.readings, strict=True)):
                name = held_out_name(self.data, number, source, split)
                if self.data.sources and reading.held_out[split] and name != "all":
                    self.write_text(f"{split}.{name}", reading.data, reading.held_out[split])
        for split in SPLITS:
            self.write_ids(split)
        for reading in self.readings:
            reading.text.unlink()

    @contextmanager
    def naming(self, source: SourceConfig) -> Iterator[None]:
        """Errors within the block name the source, if there are several."""
        try:
            yield
        except NMTError as error:
            if not self.data.sources:
                raise
            raise NMTError(f"data.sources, {source.name}: {error}") from error

    def compare_sources(self) -> None:
        """Drop what is like a held-out line of another source, and count what train has of the sets that are given."""
        in_train = np.concatenate([reading.in_given for reading in self.readings])
        sources, targets = (set[str]().union(*(reading.drawn[side] for reading in self.readings)) for side in (0, 1))
        for reading in self.readings:
            if len(self.readings) > 1 and (sources or targets):
                reading.drop_alike((sources, targets))
            if not reading.keep.any():
                raise reading.nothing_left()
            for split, own in reading.given.items():
                reading.counts[split]["in_train"] = int(np.isin(own, in_train).sum())

    def learn_vocabulary(self) -> None:
        """Train the tokenizer on a sample of the kept pairs, both sides, or copy that of `init`."""
        config = self.config.tokenizer
        tags = sorted({reading.data.tag for reading in self.readings if reading.data.tag})
        path = self.folder / "tokenizer.model"
        if self.tokenizer:
            if missing := [tag for tag in tags if tag not in self.tokenizer.tags]:
                there = ", ".join(self.tokenizer.tags) or "no tags"
                raise NMTError(
                    f"tag {missing[0]}: the vocabulary of init={self.config.init} has {there}; leave the tag out, or "
                    "begin with a model whose corpus had it"
                )
            self.tokenizer.save(path)
            return
        keep = np.concatenate([reading.keep for reading in self.readings])
        sample, indices = keep, np.flatnonzero(keep)
        if len(indices) > config.sample:
            sample = np.zeros_like(keep)
            sample[np.random.default_rng(self.config.seed).choice(indices, config.sample, replace=False)] = True
        self.say(f"learning a {config.kind} vocabulary from {int(sample.sum()):,} pairs")
        ends = np.cumsum([len(reading.keep) for reading in self.readings])
        texts = [reading.text for reading in self.readings]
        samples = list(zip(texts, np.split(sample, ends[:-1]), strict=True))
        sides = (0,) if self.is_treebank else (0, 1)
        # In a worker process, because the library ignores signals while it trains, and to free its memory.
        learning = self.pool.submit(learn_vocabulary, samples, sides, config, self.brackets(), tags)
        learning.result().save(path)

    def brackets(self) -> list[str]:
        """All different brackets of the kept trees; each becomes one entry of the vocabulary."""
        if not self.is_treebank:
            return []
        [reading] = self.readings
        trees = (tree for block in chosen_blocks(reading.text, reading.keep) for tree in block.column(1).to_pylist())
        return sorted({step for tree in trees for step in tree.split(" ") if step[0] in "()"})

    def write_text(self, name: str, data: DataConfig, pairs: list[Pair]) -> None:
        """Write the raw lines of a held-out set, for `nmt translate` and `nmt score`."""
        for side, language in enumerate((data.source, data.target)):
            # Texts from JSON and the hub may contain line ends; here a line is a sentence.
            lines = "".join(re.sub(r"[\r\n]+", " ", pair[side]) + "\n" for pair in pairs)
            (self.folder / f"{name}.{language}").write_text(lines, encoding="utf-8", newline="\n")

    def text_blocks(self, split: str, reading: Reading) -> Iterable[pa.RecordBatch]:
        """The clean pairs of a split of a source."""
        if split == "train":
            return chosen_blocks(reading.text, reading.keep)
        return (
            text_block([reading.cleaned(pair) for _, pair in block], [line for line, _ in block])
            for block in blocks(enumerate(reading.held_out[split], start=1))
        )

    def write_ids(self, split: str) -> None:
        """Encode, write and count clean pairs and their tokens; a split without pairs has no folder."""
        lengths = {side: Counter[int]() for side in SIDES}
        characters = {side: Counter[str]() for side in SIDES}
        folder, too_long, kept_before, kept_of = self.folder / split, 0, 0, list[int]()
        folder.mkdir()
        with arrow_writer(folder / "pairs.arrow", IDS_SCHEMA) as write:
            for reading in self.readings:
                limit = reading.data.filters.max_tokens if split == "train" else None
                encode = partial(
                    encode_block, tokenizer_file=self.folder / "tokenizer.model", limit=limit, tag=reading.data.tag
                )
                for ids, dropped, found in self.map(encode, self.text_blocks(split, reading)):
                    write(ids)
                    too_long += dropped
                    for side, own in zip(SIDES, found, strict=True):
                        lengths[side].update((ids.column(f"{side}_length").to_numpy() - 1).tolist())
                        characters[side].update(own)
                    self.say(f"encoded {lengths['source'].total():,} pairs of {split}")
                kept_of.append(lengths["source"].total() - kept_before)
                kept_before += kept_of[-1]
        kept = lengths["source"].total()
        if too_long:
            self.counts[split]["dropped"]["too long (tokens)"] += too_long
        if not kept:
            (folder / "pairs.arrow").unlink()
            folder.rmdir()
        if split == "train":
            for reading, own_kept in zip(self.readings, kept_of, strict=True):
                if not own_kept:
                    reading.counts["train"] |= {"dropped": self.counts["train"]["dropped"]}
                    raise reading.nothing_left()
            few = max(map(len, characters.values())) <= RECORDED_CHARACTERS
            tokenizer = load_tokenizer(self.folder / "tokenizer.model")
            spelled = [set("".join(tokenizer.vocabulary(side))) for side in range(len(SIDES))]
            self.characters = (
                {
                    side: "".join(sorted(c for c in found if c == " " or c in known or found[c] >= LEARNT))
                    for known, (side, found) in zip(spelled, characters.items(), strict=True)
                }
                if few
                else None
            )
        self.counts[split] |= {
            "kept": kept,
            # Each pair has one end symbol per side.
            "tokens": {side: kept + sum(length * count for length, count in lengths[side].items()) for side in SIDES},
            "lengths": {side: usual_and_longest(lengths[side]) for side in SIDES},
        }
        if self.data.sources:
            names = [source.name for source in sources_of(self.data)]
            self.counts[split]["sources"] = dict(zip(names, kept_of, strict=True))
