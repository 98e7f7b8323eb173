"""From raw pairs of lines to a prepared corpus, in an empty folder.

read -> clean and filter -> deduplicate, hold out -> learn the vocabulary -> encode -> Arrow
"""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache, partial
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nmt.config import ExperimentConfig, held_out_name, require, sources_of
from nmt.data import IDS_SCHEMA, TOKENIZER, source_copies, transforms_for
from nmt.errors import NMTError
from nmt.files import check_direction, find_model_directory, read_description
from nmt.preparation.reading import EMPTY, HELD_OUT, Flags, Reading, Say, arrow_blocks, arrow_writer, blocks, text_pairs
from nmt.text import Encode, Tokenizer, fast_encode, load_tokenizer, read_tokenizer, train_tokenizer

SIDES = ("source", "target")
RECORDED_CHARACTERS = 20_000  # of a side; a corpus with more is taken to have all
LEARNT = 50  # times that a character occurs, which the vocabulary spells in bytes, before it is recorded


def learn_vocabulary(samples: list[tuple[Path, Flags]], sides: tuple[int, ...], *options: Any) -> Tokenizer:
    """Train a tokenizer on these sides of sampled pairs: files of text, and true for each pair in the sample."""
    pairs = (pair for text, sample in samples for block in arrow_blocks(text, sample) for pair in text_pairs(block))
    return train_tokenizer((pair[side] for block in blocks(pairs) for side in sides for pair in block), *options)


@lru_cache(maxsize=1)
def worker_tokenizer(path: Path) -> tuple[Tokenizer, Encode]:
    """A tokenizer and its encoding, read once in each process."""
    tokenizer = load_tokenizer(path)
    return tokenizer, fast_encode(tokenizer)


def encode_block(
    block: pa.RecordBatch, tokenizer_file: Path, limit: int | None, tag: str | None
) -> tuple[pa.RecordBatch, int, list[Counter[str]]]:
    """Ids of clean pairs with a tag before the source, except those of more than `limit` tokens on a side.

    Returns IDS_SCHEMA, the number of dropped pairs, and the characters of each side.
    """
    tokenizer, encode = worker_tokenizer(tokenizer_file)
    ids = [encode(block.column(side).to_pylist(), side) for side in (0, 1)]
    if tag:
        ids[0] = [[tokenizer.tag_id(tag), *line] for line in ids[0]]
    lengths = [np.fromiter(map(len, side), np.int32, len(side)) for side in ids]
    encoded = pa.record_batch([*ids, *(side + 1 for side in lengths), block.column("line")], schema=IDS_SCHEMA)
    short = pa.array(np.maximum(*lengths) <= (np.inf if limit is None else limit))
    characters = [Counter("".join(column.to_pylist())) for column in block.filter(short).columns[:2]]
    return encoded.filter(short), len(block) - short.true_count, characters


def usual_and_longest(lengths: Counter[int]) -> dict[str, int]:
    if not lengths:
        return {"p99": 0, "max": 0}
    ascending = sorted(lengths)
    so_far = np.cumsum([lengths[length] for length in ascending])
    return {"p99": ascending[np.searchsorted(so_far, ceil(0.99 * int(so_far[-1])))], "max": ascending[-1]}


class Preparation:
    """One run of `nmt preprocess`, which writes into `folder`."""

    def __init__(self, config: ExperimentConfig, folder: Path, say: Say, pool: ProcessPoolExecutor) -> None:
        self.config, self.folder, self.say, self.pool = config, folder, say, pool
        self.tokenizer_file, self.sources = folder / TOKENIZER, sources_of(config.data)
        self.tags = sorted({source.data.tag for source in self.sources if source.data.tag})
        self.counts: dict[str, Any] = {}
        self.characters: dict[str, str] | None = None  # side -> characters of the training pairs, unless very many
        self.initial: Tokenizer | None = None  # that of the model `init`
        if config.init is not None:
            model = find_model_directory(config.init, "init")
            check_direction(f"init={config.init}", read_description(model), config.data.source, config.data.target)
            self.initial = read_tokenizer(model)
            has = f"the vocabulary of init={config.init} has {', '.join(self.initial.tags) or 'no tags'}"
            for tag in self.tags:
                advice = "leave the tag out, or use a model that has it"
                require(tag in self.initial.tags, f"tag {tag}: {has}; {advice}")
        clean = (self.initial or Tokenizer).clean
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
        """Write everything but the manifest."""
        self.for_each_source(Reading.read_held_out)
        given = np.concatenate([EMPTY, *(hashes for reading in self.readings for hashes in reading.given.values())])
        self.for_each_source(lambda reading: reading.read_train(given))
        self.compare_sources()
        # NMTError where a source gets too small a share, or the vocabulary cannot do what a transform needs.
        source_copies(self.sources, [reading.keep.sum() for reading in self.readings], self.config.data.temperature)
        validated = any(reading.held_out["valid"] for reading in self.readings)
        require(validated, "data.valid_size=0: training needs some pairs to be validated on; give data.valid")
        (self.initial or self.learned()).save(self.tokenizer_file)
        transforms_for(self.tokenizer_file, self.sources, self.config.seed)
        self.write_ids("train")
        for split in HELD_OUT:
            self.write_texts(split)
            self.write_ids(split)
        for reading in self.readings:
            reading.text.unlink()

    def for_each_source(self, read: Callable[[Reading], None]) -> None:
        """Read each source; errors name it, if there are several."""
        for source, reading in zip(self.sources, self.readings, strict=True):
            try:
                read(reading)
            except NMTError as error:
                where = f"data.sources, {source.name}: " if self.config.data.sources else ""
                raise NMTError(f"{where}{error}") from error

    def compare_sources(self) -> None:
        """Drop lines like a held-out line of another source, count pairs of given sets in train, and add up counts."""
        in_train = np.concatenate([reading.in_given for reading in self.readings])
        sources, targets = (set[str]().union(*(reading.drawn[side] for reading in self.readings)) for side in (0, 1))
        for reading in self.readings:
            if len(self.readings) > 1 and (sources or targets):
                reading.drop_alike((sources, targets))
            reading.require_pairs(bool(reading.keep.any()))
            for split, hashes in reading.given.items():
                reading.counts[split]["in_train"] = int(np.isin(hashes, in_train).sum())
        for split in ("train", *HELD_OUT):
            counts = [reading.counts[split] for reading in self.readings]
            dropped = sum((count["dropped"] for count in counts), Counter[str]())
            self.counts[split] = {"read": sum(count["read"] for count in counts), "dropped": dropped}
            if any("in_train" in count for count in counts):
                self.counts[split]["in_train"] = sum(count.get("in_train", 0) for count in counts)

    def learned(self) -> Tokenizer:
        config, keep = self.config.tokenizer, np.concatenate([reading.keep for reading in self.readings])
        indices = np.flatnonzero(keep)
        if len(indices) > config.sample:
            keep = np.zeros_like(keep)
            keep[np.random.default_rng(self.config.seed).choice(indices, config.sample, replace=False)] = True
        self.say(f"learning a {config.kind} vocabulary from {int(keep.sum()):,} pairs")
        ends = np.cumsum([len(reading.keep) for reading in self.readings])
        samples = list(zip([reading.text for reading in self.readings], np.split(keep, ends[:-1]), strict=True))
        structured = [reading for reading in self.readings if reading.corpus.structured]
        blocks_of = ((reading.corpus, block) for reading in structured for block in reading.blocks_of("train"))
        targets = ((corpus, target) for corpus, block in blocks_of for target in block.column(1).to_pylist())
        entries = sorted({entry for corpus, target in targets for entry in corpus.entries(target)})
        # In a worker process, because the library ignores signals while it trains, and to free its memory.
        sides = (0,) if structured else (0, 1)
        return self.pool.submit(learn_vocabulary, samples, sides, config, entries, self.tags).result()

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

    def write_ids(self, split: str) -> None:
        """Encode, write and count clean pairs and their tokens; a split without pairs has no folder."""
        lengths, characters = [Counter[int](), Counter[int]()], [Counter[str](), Counter[str]()]
        file, counts, kept_of = self.folder / split / "pairs.arrow", self.counts[split], list[int]()
        file.parent.mkdir()
        with arrow_writer(file, IDS_SCHEMA) as write:
            for reading in self.readings:
                limit, before = reading.data.filters.max_tokens if split == "train" else None, lengths[0].total()
                encode = partial(encode_block, tokenizer_file=self.tokenizer_file, limit=limit, tag=reading.data.tag)
                for ids, dropped, block_characters in self.map(encode, reading.blocks_of(split)):
                    write(ids)
                    counts["dropped"] += Counter({"too long (tokens)": dropped})
                    for side in (0, 1):
                        lengths[side].update((ids.column(f"{SIDES[side]}_length").to_numpy() - 1).tolist())
                        characters[side].update(block_characters[side])
                    self.say(f"encoded {lengths[0].total():,} pairs of {split}")
                kept_of.append(lengths[0].total() - before)
        kept = sum(kept_of)
        if not kept:
            file.unlink()
            file.parent.rmdir()
        if split == "train":
            for reading, source_kept in zip(self.readings, kept_of, strict=True):
                reading.counts["train"]["dropped"] = counts["dropped"]
                reading.require_pairs(source_kept > 0)
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
        tokenizer, recorded = load_tokenizer(self.tokenizer_file), {}
        for number, counts in enumerate(characters):
            spelled = {" ", *"".join(tokenizer.vocabulary(number))}
            recorded[SIDES[number]] = "".join(sorted(c for c in counts if c in spelled or counts[c] >= LEARNT))
        return recorded
