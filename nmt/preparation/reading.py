"""The sources of a corpus, and the clean training pairs and held-out sets read from each.

Text passes through memory one Arrow block at a time; only a flag per pair stays in memory.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from nmt.config import DataConfig, FilterConfig, facts_of_kind, require
from nmt.files import sha256
from nmt.preparation.deduplication import EMPTY, Hashes, hash_file, pair_hashes, repeated_rows
from nmt.preparation.selection import Flags, Rows, nth_flagged, shuffled_range
from nmt.preparation.suspicions import Suspicions
from nmt.registry import entries_of
from nmt.text import (
    WITHOUT_BLANKS,
    Normalization,
    Pair,
    Tokenizer,
    letters,
    read_files,
    resolve,
    train_tokenizer,
    words,
)

SLACK = 1.0
"""The words by which an estimated length may exceed the maximum ratio."""
HELD_OUT = ("valid", "test")
BLOCK_PAIRS = 5000
CANDIDATES = 1 << 16
"""The pairs that one pass over the training text collects to draw held-out sets from."""
TEXT_SCHEMA = pa.schema({"source": pa.string(), "target": pa.string(), "line": pa.int64()})
log = logging.getLogger(__name__)
Item = TypeVar("Item")
Numbered = list[tuple[int, Pair]]  # pairs with their line numbers in the corpus
Say = Callable[[str], None]
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]  # `map` in the worker processes, in order


class Corpus:
    """A source of sentence pairs. Plugins subclass it. It is sent to worker processes and must not hold open files."""

    def __init__(self, data: DataConfig) -> None:
        self.data = data
        # Targets are structures, not text: the vocabulary is trained on the sources and `entries`.
        self.structured = bool(facts_of_kind(data.kind).get("structured"))

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        """The raw pairs of a split, or None to draw it from train. `dropped` counts what `data.errors=skip` skips."""
        raise NotImplementedError

    def digests(self) -> dict[str, str]:
        """File -> SHA-256, or whatever else identifies the content."""
        raise NotImplementedError

    def as_read(self, pair: Pair, normalization: Normalization) -> Pair:
        """A raw pair as the model reads it."""
        return normalization.source(pair[0]), normalization.target(pair[1])

    def entries(self, target: str) -> list[str]:
        """The words of a target that each become a vocabulary entry."""
        return []


class Files(Corpus):
    """Parallel text files, or files of pairs."""

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        entries = getattr(self.data, split)
        suffixes = ", ".join(entries_of("pairs"))
        forms = f"data.train=PREFIX (PREFIX.en and PREFIX.de), SOURCE:TARGET, or a file of pairs ({suffixes})"
        require(split != "train" or bool(entries), f"data=files needs {forms}")
        return read_files(entries, self.data, dropped) if entries else None

    def digests(self) -> dict[str, str]:
        entries = [*self.data.train, *self.data.valid, *self.data.test]
        return file_digests(path for entry in entries for paths in resolve(entry, self.data) for path in paths)


def corpus_for(data: DataConfig) -> Corpus:
    corpus: Corpus = entries_of("corpus")[data.kind].load()(data)
    return corpus


def file_digests(paths: Iterable[Path]) -> dict[str, str]:
    return {str(path): sha256(path.resolve()) for path in paths}


@contextmanager
def arrow_writer(path: Path, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Open an Arrow stream file and yield a function that appends blocks to it, except empty ones."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
        yield lambda block: writer.write_batch(block) if len(block) else None


def arrow_blocks(path: Path, chosen: Flags | None = None) -> Iterator[pa.RecordBatch]:
    """The blocks of an Arrow stream file, with only the `chosen` pairs if given. Not memory-mapped, to save memory."""
    start = 0
    with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
        for block in reader:
            yield block if chosen is None else block.filter(pa.array(chosen[start : start + len(block)]))
            start += len(block)


def arrow_rows(path: Path, rows: Rows) -> Iterator[pa.RecordBatch]:
    """For each block of an Arrow stream file, its part of these ascending rows."""
    start = 0
    for block in arrow_blocks(path):
        begin, end = np.searchsorted(rows, [start, start + len(block)])
        yield block.take(pa.array(rows[begin:end] - start))
        start += len(block)


def text_block(numbered: Numbered) -> pa.RecordBatch:
    sides = ([pair[side] for _, pair in numbered] for side in (0, 1))
    return pa.record_batch([*sides, [line for line, _ in numbered]], schema=TEXT_SCHEMA)


def text_pairs(block: pa.RecordBatch | pa.Table) -> list[Pair]:
    return list(zip(block.column(0).to_pylist(), block.column(1).to_pylist(), strict=True))


def blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    iterator = iter(items)
    while block := list(islice(iterator, BLOCK_PAIRS)):
        yield block


def has_length_ratio(pair: Pair, max_ratio: float) -> bool:
    """Whether one side of a clean pair has at most `max_ratio` times as many words as the other.

    In scripts without blanks, the number of words is only estimated from the characters, so the
    ratio of short lines is uncertain: lines of two words or more may exceed it by SLACK words, and
    a line that the other side contains, such as a name with an explanation, may have twice the
    ratio. Other lines of one word get no slack, because shifted lines of a corpus often have one.
    """
    fewest, most = sorted(map(words, pair))
    if most <= max_ratio * fewest:
        return True
    if not any(map(WITHOUT_BLANKS.search, pair)):
        return False
    shorter, longer = sorted(pair, key=words)
    if shorter in longer:
        return most <= 2 * max_ratio * fewest
    return fewest >= 2 and most <= max_ratio * fewest + SLACK


def reason_to_drop(pair: Pair, config: FilterConfig) -> str | None:
    """Why a filter drops a clean pair; None if none does. Token limits and duplicates are checked elsewhere."""
    source, target = pair
    if not source or not target:
        return "empty side"
    fewest, most = sorted((words(source), words(target)))
    if fewest < config.min_words:
        return "too short"
    if config.max_words is not None and most > config.max_words:
        return "too long (words)"
    if config.max_ratio is not None and not has_length_ratio(pair, config.max_ratio):
        return "length ratio"
    return "identical sides" if config.drop_identical and source == target else None


def clean_and_filter(
    numbered: Numbered, corpus: Corpus, normalization: Normalization, hashed: bool
) -> tuple[pa.RecordBatch, Hashes, Counter[str]]:
    """The clean pairs that pass the filters, their hashes if `hashed`, and counts of dropped pairs by reason."""
    pairs = [(line, corpus.as_read(raw, normalization)) for line, raw in numbered]
    reasons = [reason_to_drop(pair, corpus.data.filters) for _, pair in pairs]
    kept = [pair for pair, reason in zip(pairs, reasons, strict=True) if not reason]
    return text_block(kept), pair_hashes(pair for _, pair in kept if hashed), Counter(filter(None, reasons))


def shares_letters(block: pa.RecordBatch, sides: tuple[set[str], set[str]]) -> Flags:
    pairs = text_pairs(block)
    return np.array([letters(source) in sides[0] or letters(target) in sides[1] for source, target in pairs], bool)


def learn_vocabulary(samples: list[tuple[Path, Rows]], sides: tuple[int, ...], *options: Any) -> Tokenizer:
    """Train a tokenizer on the given sides of the sampled rows of each text file."""
    pairs = (pair for text, rows in samples for block in arrow_rows(text, rows) for pair in text_pairs(block))
    return train_tokenizer((pair[side] for block in blocks(pairs) for side in sides for pair in block), *options)


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
        self.given: dict[str, Hashes] = {}  # split -> hashes of its pairs; only splits not drawn from train
        self.in_given = EMPTY  # hashes of the training pairs that also occur in a given held-out set
        self.drawn: tuple[set[str], set[str]] = (set(), set())  # per side, the letters of each line drawn from train
        self.keep = np.empty(0, np.bool_)  # for each pair in `text`, whether it stays in train

    def read_held_out(self) -> None:
        for split in HELD_OUT:
            dropped = Counter[str]()
            raw = self.corpus.read(split, dropped)
            if raw is not None:
                pairs = self.held_out[split] = list(raw)
                require(
                    split != "valid" or bool(pairs), "data.valid has no pairs, but training needs some to validate on"
                )
                self.counts[split] = {"read": len(pairs) + dropped.total(), "dropped": dropped}
                suspicions = Suspicions(self.data)
                if not self.corpus.structured:
                    for block in blocks(enumerate(pairs, start=1)):
                        suspicions.inspect(block)
                self.report(split, suspicions)
                self.given[split] = pair_hashes(self.corpus.as_read(pair, self.normalization) for pair in pairs)

    def report(self, split: str, suspicions: Suspicions) -> None:
        entries = ", ".join(getattr(self.data, split))
        where = f"data.{split} ({entries:.200})" if entries else f"data.{split}"
        for text in suspicions.notices():
            log.warning(f"notice: {where}: {text}")

    def read_train(self, given: Hashes) -> None:
        """Write the training set to `text` and draw missing held-out sets.

        `given` contains the hashes of the pairs of all given held-out sets, ascending and distinct.
        """
        dropped = Counter[str]()
        reasons = Counter[str]()
        kept = 0
        is_in_train = np.zeros(len(given), bool)
        pairs = self.corpus.read("train", dropped)
        assert pairs is not None
        unique = self.data.filters.deduplicate
        process = partial(
            clean_and_filter,
            corpus=self.corpus,
            normalization=self.normalization,
            hashed=unique or len(given) > 0,
        )
        read_blocks: Iterable[Numbered] = blocks(enumerate(pairs, start=1))
        suspicions = Suspicions(self.data)
        if not self.corpus.structured:
            read_blocks = suspicions.inspected_blocks(read_blocks)
        # Hashes go to a file, because those of a large corpus do not fit in memory.
        hash_path = self.text.with_suffix(".hashes")
        with arrow_writer(self.text, TEXT_SCHEMA) as write, hash_file(hash_path) as hashes:
            for block, block_hashes, block_reasons in self.map(process, read_blocks):
                write(block)
                if len(given):
                    places = np.searchsorted(given, block_hashes).clip(max=len(given) - 1)
                    is_in_train[places[given[places] == block_hashes]] = True
                if unique:
                    hashes.add(block_hashes)
                kept += len(block)
                reasons += block_reasons
                self.say(f"read {kept + reasons.total():,} pairs")
            self.keep = np.ones(kept, np.bool_)
            for rows in self.map(partial(repeated_rows, path=hash_path), hashes.tasks()):
                self.keep[rows] = False
        self.report("train", suspicions)
        dropped += reasons
        self.counts["train"] = {"read": kept + dropped.total(), "dropped": dropped}
        self.in_given = given[is_in_train]
        if repeated := kept - self.pairs_left:
            dropped["duplicates"] = repeated
        self.require_pairs(self.pairs_left > 0)
        if missing := [split for split in HELD_OUT if split not in self.given]:
            self.hold_out(missing)

    @property
    def pairs_left(self) -> int:
        """The number of pairs that stay in train."""
        return int(np.count_nonzero(self.keep))

    def require_pairs(self, left: bool) -> None:
        train = self.counts["train"]
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in train["dropped"].items()) or "none were read"
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
            if self.corpus.structured:  # `text` holds the pairs as the model reads them, not the originals
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
            is_new = not any(letters(line) in taken for line, taken in zip(pair, self.drawn, strict=True))
            if is_new and words(pair[0]) >= self.data.held_out_min_words:
                self.drawn[0].add(letters(pair[0]))
                if not self.corpus.structured:  # trees may recur, because many sentences have the same tree
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
