"""From raw sentence pairs to the files of a prepared corpus.

read -> clean and filter -> deduplicate, hold out -> train the tokenizer -> encode -> Arrow
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from nmt import files
from nmt.config import DataConfig, ExperimentConfig, NMTError, held_out_name, require, sources_of
from nmt.data import TOKENIZER, Manifest, source_copies, transforms_for
from nmt.preparation import split_writer
from nmt.preparation.arrow_files import text_block
from nmt.preparation.characters import lacking_characters, recorded_characters
from nmt.preparation.deduplication import EMPTY
from nmt.preparation.encoding import SplitStatistics, encode_block, usual_and_longest
from nmt.preparation.reading import HELD_OUT, Reading, Say
from nmt.preparation.selection import nth_flagged, random_rows
from nmt.preparation.split_writer import SplitWriter
from nmt.preparation.vocabulary import Sample, learn_vocabulary
from nmt.preparation.workers import map_in_order, worker_pool
from nmt.text import NORMALIZATIONS, Pair, Tokenizer, load_encoder, load_tokenizer

log = logging.getLogger(__name__)
LIBRARIES = ("nmt-toolkit", "sentencepiece", "tokenizers", "pyarrow")
"""The packages whose versions the manifest records."""


class Preparation:
    """One run of `nmt preprocess`, which writes to `folder`."""

    def __init__(
        self,
        config: ExperimentConfig,
        folder: Path,
        say: Say,
        pool: ProcessPoolExecutor,
        initial: Tokenizer | None,
    ) -> None:
        self.config = config
        self.folder = folder
        self.say = say
        self.pool = pool
        self.initial = initial
        # The workers read the tokenizer from this file: sending it with each block would cost more.
        self.tokenizer_file = folder / TOKENIZER
        # A corpus without data.sources has one source, so nothing below needs a case for it.
        self.sources = sources_of(config.data)
        self.counts: dict[str, Any] = {}
        self.characters: dict[str, str] | None = None  # see `Manifest`
        normalization = NORMALIZATIONS[config.tokenizer.normalization]
        self.readings: list[Reading] = []
        for number, source in enumerate(self.sources):
            # Clean pairs wait in files, because they are read again to draw held-out sets, to
            # learn the vocabulary and to encode them.
            text = folder / f"text-{number}"
            self.readings.append(
                Reading(source.data, config.seed, text, say, self.map, normalization)
            )

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Like `map`, but in the worker processes."""
        # Twice as many items as workers: a worker that finishes finds its next item in the queue.
        return map_in_order(self.pool, 2 * self.config.workers, function, items)

    def run(self, content: dict[str, Any]) -> Manifest:
        """Write everything except the manifest, and return the manifest."""
        self.read_sources()
        self.compare_sources()
        self.check_sources()
        # With init=, the pairs must have the ids that the model's embeddings have.
        tokenizer = self.initial or self.learned()
        tokenizer.save(self.tokenizer_file)
        # Check now what training would refuse: a vocabulary that a transform cannot use.
        transforms_for(self.tokenizer_file, self.sources, self.config.seed)
        # Train comes first: if it loses all pairs to the token limit, nothing else need be encoded.
        self.write_ids("train")
        for split in HELD_OUT:
            self.write_texts(split)
            self.write_ids(split)
        return Manifest.of(
            content,
            self.counts,
            load_tokenizer(self.tokenizer_file).vocabulary_size,
            files.sha256(self.tokenizer_file),
            {name: version(name) for name in LIBRARIES},
            self.characters,
        )

    def read_sources(self) -> None:
        """Read the held-out sets of all sources, and then all training pairs."""
        self.for_each_source(Reading.read_held_out)
        # All given held-out sets are known before any training pair is read, so that one pass over
        # each source finds the training pairs that also occur in a held-out set. EMPTY is there
        # because numpy cannot concatenate an empty list.
        hashes = [EMPTY]
        for reading in self.readings:
            hashes += reading.given.values()
        given = np.unique(np.concatenate(hashes))
        given_file = self.folder / "given.npy"
        np.save(given_file, given)
        # For its first list, pyarrow imports pandas if it is installed. If this process does that,
        # the workers need not, and share the memory.
        text_block([])
        # The first task starts the workers. Now, because later this process has other threads,
        # which decompress files, and a process that forks should have none.
        self.pool.submit(os.getpid).result()
        # All workers have been forked with the sentence encoder, if a filter needs it.
        load_encoder.cache_clear()
        self.for_each_source(lambda reading: reading.read_train(given, given_file))
        given_file.unlink()

    def for_each_source(self, read: Callable[[Reading], None]) -> None:
        """Call `read` for each source; errors name the source if there are several."""
        for source, reading in zip(self.sources, self.readings, strict=True):
            try:
                read(reading)
            except NMTError as error:
                if not self.config.data.sources:
                    raise
                raise error.within(f"data.sources, {source.name}") from error

    def compare_sources(self) -> None:
        """Drop training pairs like other sources' held-out lines, and sum the counts."""
        # Training pairs that are also in a given held-out set are only counted: the user chose both
        # files. Lines like those of a drawn set are dropped.
        in_train = np.concatenate([reading.in_given for reading in self.readings])
        drawn_sources: set[str] = set()
        drawn_targets: set[str] = set()
        for reading in self.readings:
            drawn_sources |= reading.drawn[0]
            drawn_targets |= reading.drawn[1]
        for reading in self.readings:
            # A single source has dropped them while it drew its sets.
            if len(self.readings) > 1 and (drawn_sources or drawn_targets):
                reading.drop_alike((drawn_sources, drawn_targets))
            reading.require_pairs(reading.pairs_left > 0)
            for split, hashes in reading.given.items():
                reading.counts[split]["in_train"] = int(np.isin(hashes, in_train).sum())
        for split in ("train", *HELD_OUT):
            self.counts[split] = self.summed_counts(split)

    def summed_counts(self, split: str) -> dict[str, Any]:
        """The counts of a split over all sources."""
        of_sources = [reading.counts[split] for reading in self.readings]
        dropped: Counter[str] = Counter()
        for counts in of_sources:
            dropped += counts["dropped"]
        total: dict[str, Any] = {
            "read": sum(counts["read"] for counts in of_sources),
            "dropped": dropped,
        }
        if any("in_train" in counts for counts in of_sources):
            # A source that draws a set from its own train has no such count.
            total["in_train"] = sum(counts.get("in_train", 0) for counts in of_sources)
        if split == "train":
            total["borders"] = self.borders()
        return total

    def check_sources(self) -> None:
        """Raise NMTError, before the slow work, for a corpus that training would refuse."""
        sizes = [reading.pairs_left for reading in self.readings]
        source_copies(self.sources, sizes, self.config.data.temperature)
        require(
            any(reading.held_out["valid"] for reading in self.readings),
            "data.valid_size=0: training needs some pairs to validate on; pass data.valid",
        )

    def learned(self) -> Tokenizer:
        """Learn the vocabulary from a random sample of the training pairs."""
        samples = self.samples()
        # Both sides, because the languages share one vocabulary (section 5.1). The targets of a
        # structured corpus are not text: their words become entries as they are.
        sides: tuple[int, ...] = (0, 1)
        entries: set[str] = set()
        for reading in self.readings:
            if reading.corpus.structured:
                sides = (0,)
                entries |= reading.target_entries()
        tags = {source.data.tag for source in self.sources if source.data.tag}
        # Train in a worker process: the library ignores signals while training, and its memory is
        # freed afterwards.
        future = self.pool.submit(
            learn_vocabulary,
            samples,
            sides,
            self.config.tokenizer,
            # The order of a set of strings differs between processes, but it decides the ids.
            sorted(entries),
            sorted(tags),
        )
        return future.result()

    def samples(self) -> list[Sample]:
        """The blocks of each source, and the rows from which to learn the vocabulary."""
        config = self.config.tokenizer
        sizes = [reading.pairs_left for reading in self.readings]
        total = sum(sizes)
        # The sample is drawn from all sources together, so each contributes in proportion to its
        # size.
        numbers = random_rows(total, min(total, config.sample), self.config.seed)
        self.say(f"training a {config.kind} vocabulary on {len(numbers):,} pairs")
        # Pairs are numbered through all sources: those of source i begin at begins[i].
        begins = np.cumsum([0, *sizes])
        edges = np.searchsorted(numbers, begins)
        samples = []
        for i, reading in enumerate(self.readings):
            of_source = numbers[edges[i] : edges[i + 1]] - begins[i]
            samples.append((reading.places, nth_flagged(reading.keep, of_source)))
        return samples

    def write_texts(self, split: str) -> None:
        """Write the raw lines of a held-out set, for the set as a whole and for each source."""
        data = self.config.data
        pairs: list[Pair] = []
        for reading in self.readings:
            pairs += reading.held_out[split]
        self.write_lines(split, data, pairs)
        if not data.sources:
            return
        for number, (source, reading) in enumerate(zip(self.sources, self.readings, strict=True)):
            # "all" is the set that has just been written for the corpus as a whole.
            name = held_out_name(data, number, source, split)
            if reading.held_out[split] and name != "all":
                self.write_lines(f"{split}.{name}", reading.data, reading.held_out[split])

    def write_lines(self, name: str, data: DataConfig, pairs: list[Pair]) -> None:
        """Write a file for each side, with a pair's sentences in the same line of both."""
        for side, language in enumerate((data.source, data.target)):
            # Strings from JSON may contain line breaks, but here each line must be one sentence.
            lines = [re.sub(r"[\r\n]+", " ", pair[side]) for pair in pairs]
            text = "".join(f"{line}\n" for line in lines)
            (self.folder / f"{name}.{language}").write_text(text, encoding="utf-8", newline="\n")

    def write_ids(self, split: str) -> None:
        """Encode a split, write it, and count its pairs and tokens.

        A split without pairs gets no folder.
        """
        folder = self.folder / split
        folder.mkdir()
        # Held-out sets fit in memory, so each is one file.
        pairs = SplitWriter(folder, split_writer.FILE_PAIRS if split == "train" else None)
        statistics = self.encode(split, pairs)
        kept = statistics.pairs
        if not kept:
            folder.rmdir()
        counts = self.counts[split]
        if split == "train":
            for reading, source_kept in zip(self.readings, statistics.of_sources, strict=True):
                # Only encoding shows which pairs are too long in tokens, so look again whether
                # pairs are left.
                reading.counts["train"]["dropped"] = counts["dropped"]
                reading.require_pairs(source_kept > 0)
            tokenizer = load_tokenizer(self.tokenizer_file)
            # The model description lists these characters; translation copies unknown ones to its
            # output.
            self.characters = recorded_characters(tokenizer, statistics.characters)
            self.report_lacking(statistics.characters)
            # Only the text of train is in files.
            for reading in self.readings:
                reading.remove_text()
        source_lengths, target_lengths = statistics.lengths
        counts["kept"] = kept
        counts["tokens"] = {
            "source": tokens_of(source_lengths),
            "target": tokens_of(target_lengths),
        }
        counts["lengths"] = {
            "source": usual_and_longest(source_lengths),
            "target": usual_and_longest(target_lengths),
        }
        if self.config.data.sources:
            names = [source.name for source in self.sources]
            counts["sources"] = dict(zip(names, statistics.of_sources, strict=True))
        if len(pairs.pairs) > 1:
            counts["files"] = pairs.pairs

    def borders(self) -> dict[str, list[int]]:
        """The borders of each source, see `Counts`."""
        borders = {}
        for source, reading in zip(self.sources, self.readings, strict=True):
            borders[source.name] = reading.borders.ranges
        return borders

    def encode(self, split: str, files_of_split: SplitWriter) -> SplitStatistics:
        """Encode the pairs of all sources in worker processes, and write them to files."""
        statistics = SplitStatistics()
        with files_of_split:
            for reading in self.readings:
                encode = partial(
                    encode_block,
                    tokenizer_file=self.tokenizer_file,
                    # Filters are only for training pairs: held-out sets stay whole.
                    limit=reading.data.filters.max_tokens if split == "train" else None,
                    tag=reading.data.tag,
                )
                before = statistics.pairs
                is_train = split == "train"
                blocks = reading.train_parts() if is_train else reading.blocks_of(split)
                for encoded in self.map(encode, blocks):
                    # The workers count, because counting in the main process would keep them
                    # waiting.
                    if encoded.ids:
                        files_of_split.append(encoded.ids)
                    self.counts[split]["dropped"] += Counter({"too long (tokens)": encoded.dropped})
                    statistics.add(encoded)
                    self.say(f"encoded {statistics.pairs:,} {split} pairs")
                statistics.of_sources.append(statistics.pairs - before)
        return statistics

    def report_lacking(self, characters: Sequence[Counter[str]]) -> None:
        """Report the characters that the vocabulary of the initial model lacks."""
        if not self.initial:
            return
        for side, counts in enumerate(characters):
            tags = [source.data.tag or "" for source in self.sources]
            blocks = self.training_blocks()
            notice = lacking_characters(self.initial, counts, side, tags, blocks)
            if notice:
                log.warning(f"notice: init={self.config.init}: {notice}")

    def training_blocks(self) -> Iterator[pa.RecordBatch]:
        for reading in self.readings:
            for part in reading.train_parts():
                yield part.block()


def tokens_of(lengths: Counter[int]) -> int:
    """The tokens of one side of all pairs, each with its end symbol."""
    return sum((length + 1) * count for length, count in lengths.items())


def prepare(
    config: ExperimentConfig,
    folder: Path,
    say: Say,
    initial: Tokenizer | None,
    content: dict[str, Any],
) -> Manifest:
    """Write a corpus to `folder` with worker processes, and return its manifest."""
    with worker_pool(config.workers) as pool:
        return Preparation(config, folder, say, pool, initial).run(content)
