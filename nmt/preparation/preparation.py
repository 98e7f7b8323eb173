"""From raw pairs of lines to a prepared corpus, in an empty folder.

read -> clean and filter -> deduplicate, hold out -> learn the vocabulary -> encode -> Arrow
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.config import ExperimentConfig, SourceConfig, TokenizerConfig, held_out_name, sources_of
from nmt.data import IDS_SCHEMA, TOKENIZER, stages, transforms_for
from nmt.errors import NMTError
from nmt.files import check_direction, find_model_directory, read_description
from nmt.preparation.reading import (
    EMPTY,
    HELD_OUT,
    Reading,
    Say,
    arrow_writer,
    blocks,
    chosen_blocks,
    list_column,
    text_block,
    text_pairs,
)
from nmt.text import Encode, Tokenizer, fast_encode, load_tokenizer, read_tokenizer, train_tokenizer

SIDES = ("source", "target")
RECORDED_CHARACTERS = 20_000
"""The manifest records the characters of a side up to this number; a corpus with more is taken to have all."""
LEARNT = 50
"""A character that the vocabulary does not have, and spells in bytes, is recorded if it stands there this often."""


def usual_and_longest(lengths: Counter[int]) -> dict[str, int]:
    """The 99th percentile and the maximum of counted lengths; 0 without lengths."""
    if not lengths:
        return {"p99": 0, "max": 0}
    ascending = sorted(lengths)
    so_far = np.cumsum([lengths[length] for length in ascending])
    return {"p99": ascending[np.searchsorted(so_far, ceil(0.99 * int(so_far[-1])))], "max": ascending[-1]}


def learn_vocabulary(
    samples: list[tuple[Path, NDArray[np.bool_]]],
    sides: tuple[int, ...],
    config: TokenizerConfig,
    entries: list[str],
    tags: list[str],
) -> Tokenizer:
    """Train a tokenizer on these sides of sampled pairs: files of text, and True for each pair in the sample."""
    pairs = (pair for text, sample in samples for block in chosen_blocks(text, sample) for pair in text_pairs(block))
    lines = (pair[side] for block in blocks(pairs) for side in sides for pair in block)
    return train_tokenizer(lines, config, entries, tags)


@lru_cache(maxsize=1)
def worker_tokenizer(path: Path) -> tuple[Tokenizer, Encode]:
    """A tokenizer and its encoding, read once in each process: sent with each block, it would be built each time."""
    tokenizer = load_tokenizer(path)
    return tokenizer, fast_encode(tokenizer)


def encode_block(
    block: pa.RecordBatch, tokenizer_file: Path, limit: int | None, tag: str | None
) -> tuple[pa.RecordBatch, int, list[Counter[str]]]:
    """Encode clean pairs, with a tag before the source, and drop those with a side of more than `limit` tokens.

    Returns ids with lengths, which count the end symbol, the number of dropped pairs, and the characters of each side.
    """
    tokenizer, encode = worker_tokenizer(tokenizer_file)
    ids = [encode(block.column(side).to_pylist(), side) for side in (0, 1)]
    if tag:
        tag_id = tokenizer.tag_id(tag)
        ids[0] = [[tag_id, *line] for line in ids[0]]
    lengths = [np.fromiter(map(len, side), np.int32, len(side)) for side in ids]
    columns = [*map(list_column, ids, lengths), *(pa.array(side + 1) for side in lengths), block.column("line")]
    short = pa.array(np.maximum(*lengths) <= (np.inf if limit is None else limit))
    kept = pa.record_batch(columns, schema=IDS_SCHEMA).filter(short)
    characters = [Counter("".join(column.to_pylist())) for column in block.filter(short).columns[:2]]
    return kept, len(block) - len(kept), characters


class Preparation:
    """One run of `nmt preprocess`, which writes into `folder`."""

    def __init__(self, config: ExperimentConfig, folder: Path, say: Say, pool: ProcessPoolExecutor) -> None:
        self.config, self.folder, self.say, self.pool = config, folder, say, pool
        self.tokenizer_file = folder / TOKENIZER
        self.counts: dict[str, Any] = {}
        self.characters: dict[str, str] | None = None
        """The characters of the training pairs by side; None if they are too many."""
        self.initial: Tokenizer | None = None
        """The tokenizer of the model `init`."""
        if config.init is not None:
            model = find_model_directory(config.init, "init")
            check_direction(f"init={config.init}", read_description(model), config.data.source, config.data.target)
            self.initial = read_tokenizer(model)
        clean = (self.initial or Tokenizer).clean
        self.sources = sources_of(config.data)
        self.readings = [
            Reading(source.data, config.seed, folder / f"text-{number}.arrow", say, self.map, clean)
            for number, source in enumerate(self.sources)
        ]

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """`map` over processes, in order; reads few items ahead of the results."""
        waiting: deque[Future[Any]] = deque()
        for item in items:
            waiting.append(self.pool.submit(function, item))
            if len(waiting) >= 2 * self.config.workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def run(self) -> None:
        """Read, hold out, learn the vocabulary, encode, and write everything but the manifest."""
        for source, reading in zip(self.sources, self.readings, strict=True):
            with self.naming(source):
                reading.read_held_out()
        given = np.concatenate([EMPTY, *(hashes for reading in self.readings for hashes in reading.given.values())])
        for source, reading in zip(self.sources, self.readings, strict=True):
            with self.naming(source):
                reading.read_train(given)
        self.compare_sources()
        # NMTError where a stage has no pairs, or the vocabulary cannot do what a transform needs.
        stages(self.sources, [int(reading.keep.sum()) for reading in self.readings], self.config.data.temperature)
        if not any(reading.held_out["valid"] for reading in self.readings):
            raise NMTError("data.valid_size=0: training needs some pairs to be validated on; give data.valid")
        if self.initial:
            self.initial.save(self.tokenizer_file)
        else:
            self.learn_vocabulary()
        transforms_for(self.tokenizer_file, self.sources, self.config.seed)
        for split in ("train", *HELD_OUT):
            if split in HELD_OUT:
                self.write_texts(split)
            self.write_ids(split)
        for reading in self.readings:
            reading.text.unlink()

    @contextmanager
    def naming(self, source: SourceConfig) -> Iterator[None]:
        """Errors within the block name the source, if there are several."""
        try:
            yield
        except NMTError as error:
            if not self.config.data.sources:
                raise
            raise NMTError(f"data.sources, {source.name}: {error}") from error

    def compare_sources(self) -> None:
        """Drop lines like a held-out line of another source, count pairs of given sets in train, and check the tags."""
        in_train = np.concatenate([reading.in_given for reading in self.readings])
        sources, targets = (set[str]().union(*(reading.drawn[side] for reading in self.readings)) for side in (0, 1))
        for reading in self.readings:
            if len(self.readings) > 1 and (sources or targets):
                reading.drop_alike((sources, targets))
            if not reading.keep.any():
                raise reading.nothing_left()
            for split, hashes in reading.given.items():
                reading.counts[split]["in_train"] = int(np.isin(hashes, in_train).sum())
        for split in ("train", *HELD_OUT):
            counts = [reading.counts[split] for reading in self.readings]
            dropped = sum((count["dropped"] for count in counts), Counter[str]())
            self.counts[split] = {"read": sum(count["read"] for count in counts), "dropped": dropped}
            if any("in_train" in count for count in counts):
                self.counts[split]["in_train"] = sum(count.get("in_train", 0) for count in counts)
        self.tags = sorted({source.data.tag for source in self.sources if source.data.tag})
        if self.initial and (missing := [tag for tag in self.tags if tag not in self.initial.tags]):
            raise NMTError(
                f"tag {missing[0]}: the vocabulary of init={self.config.init} has "
                f"{', '.join(self.initial.tags) or 'no tags'}; leave the tag out, or begin with a model whose "
                "corpus had it"
            )

    def learn_vocabulary(self) -> None:
        """Train the tokenizer on a sample of the kept pairs."""
        config, keep = self.config.tokenizer, np.concatenate([reading.keep for reading in self.readings])
        indices = np.flatnonzero(keep)
        if len(indices) > config.sample:
            keep = np.zeros_like(keep)
            keep[np.random.default_rng(self.config.seed).choice(indices, config.sample, replace=False)] = True
        self.say(f"learning a {config.kind} vocabulary from {int(keep.sum()):,} pairs")
        ends = np.cumsum([len(reading.keep) for reading in self.readings])
        samples = list(zip([reading.text for reading in self.readings], np.split(keep, ends[:-1]), strict=True))
        structured = [reading for reading in self.readings if reading.corpus.structured]
        entries = {
            entry
            for reading in structured
            for block in chosen_blocks(reading.text, reading.keep)
            for target in block.column(1).to_pylist()
            for entry in reading.corpus.entries(target)
        }
        sides = (0,) if structured else (0, 1)
        # In a worker process, because the library ignores signals while it trains, and to free its memory.
        training = self.pool.submit(learn_vocabulary, samples, sides, config, sorted(entries), self.tags)
        training.result().save(self.tokenizer_file)

    def write_texts(self, split: str) -> None:
        """Write the raw lines of a held-out set, and of its part from each source, for `nmt translate` and `score`."""
        data = self.config.data
        texts = [(split, data, [pair for reading in self.readings for pair in reading.held_out[split]])]
        for number, (source, reading) in enumerate(zip(self.sources, self.readings, strict=True)):
            name = held_out_name(data, number, source, split)
            if data.sources and reading.held_out[split] and name != "all":
                texts.append((f"{split}.{name}", reading.data, reading.held_out[split]))
        for name, languages, pairs in texts:
            for side, language in enumerate((languages.source, languages.target)):
                # Texts from JSON and the hub may contain line ends; here a line is a sentence.
                lines = "".join(re.sub(r"[\r\n]+", " ", pair[side]) + "\n" for pair in pairs)
                (self.folder / f"{name}.{language}").write_text(lines, encoding="utf-8", newline="\n")

    def text_blocks(self, split: str, reading: Reading) -> Iterable[pa.RecordBatch]:
        """The clean pairs of a split of a source."""
        if split == "train":
            return chosen_blocks(reading.text, reading.keep)
        return (
            text_block([reading.corpus.as_read(pair, reading.clean) for _, pair in block], [line for line, _ in block])
            for block in blocks(enumerate(reading.held_out[split], start=1))
        )

    def write_ids(self, split: str) -> None:
        """Encode, write and count clean pairs and their tokens; a split without pairs has no folder."""
        lengths, characters = [Counter[int](), Counter[int]()], [Counter[str](), Counter[str]()]
        file, too_long, kept_of = self.folder / split / "pairs.arrow", 0, list[int]()
        file.parent.mkdir()
        with arrow_writer(file, IDS_SCHEMA) as write:
            for reading in self.readings:
                limit, before = reading.data.filters.max_tokens if split == "train" else None, sum(kept_of)
                encode = partial(encode_block, tokenizer_file=self.tokenizer_file, limit=limit, tag=reading.data.tag)
                for ids, dropped, block_characters in self.map(encode, self.text_blocks(split, reading)):
                    write(ids)
                    too_long += dropped
                    for side in (0, 1):
                        lengths[side].update((ids.column(f"{SIDES[side]}_length").to_numpy() - 1).tolist())
                        characters[side].update(block_characters[side])
                    self.say(f"encoded {lengths[0].total():,} pairs of {split}")
                kept_of.append(lengths[0].total() - before)
        counts, kept = self.counts[split], sum(kept_of)
        if too_long:
            counts["dropped"]["too long (tokens)"] += too_long
        if not kept:
            file.unlink()
            file.parent.rmdir()
        if split == "train":
            for reading, source_kept in zip(self.readings, kept_of, strict=True):
                if not source_kept:
                    reading.counts["train"]["dropped"] = counts["dropped"]
                    raise reading.nothing_left()
            self.characters = self.recorded(characters)
        # Each pair has one end symbol per side.
        tokens = [kept + sum(length * count for length, count in side.items()) for side in lengths]
        counts |= {"kept": kept, "tokens": dict(zip(SIDES, tokens, strict=True))}
        counts["lengths"] = dict(zip(SIDES, map(usual_and_longest, lengths), strict=True))
        if self.config.data.sources:
            counts["sources"] = dict(zip([source.name for source in self.sources], kept_of, strict=True))

    def recorded(self, characters: list[Counter[str]]) -> dict[str, str] | None:
        """The characters that the model can learn, sorted, for each side; None if they are too many."""
        if max(map(len, characters)) > RECORDED_CHARACTERS:
            return None
        tokenizer = load_tokenizer(self.tokenizer_file)
        recorded = {}
        for number, counts in enumerate(characters):
            spelled = {" ", *"".join(tokenizer.vocabulary(number))}
            recorded[SIDES[number]] = "".join(sorted(c for c in counts if c in spelled or counts[c] >= LEARNT))
        return recorded
