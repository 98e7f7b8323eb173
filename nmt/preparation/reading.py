"""Read a source of a corpus: its clean training pairs and its held-out sets.

Worker processes read and write the text. In the main process, there is only a flag for each pair,
and the place of each block of pairs.
"""

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from nmt.config import DataConfig, NMTError, require
from nmt.preparation.arrow_files import Numbered, text_block, text_pairs
from nmt.preparation.borders import Borders
from nmt.preparation.deduplication import EMPTY, Hashes, hash_file, pair_hashes, repeated_rows
from nmt.preparation.filters import Cleaning
from nmt.preparation.meanings import (
    HELD_OUT_SAMPLED,
    LEAST_SAMPLED,
    PART_PAIRS,
    inspect_pairs,
    spread_rows,
)
from nmt.preparation.places import Places, origin_of
from nmt.preparation.selection import Rows, nth_flagged, shuffled_range
from nmt.preparation.sources import Corpus, corpus_for
from nmt.preparation.spools import (
    Part,
    Place,
    flagged_parts,
    parts_of_rows,
    read_part,
    remove_files,
)
from nmt.preparation.suspicions import NO_SAMPLE, Sample, Suspicions
from nmt.text import (
    BLOCK_PAIRS,
    Normalization,
    Pair,
    PairBlock,
    letters,
    pairs_of_block,
    sentence_vectors,
    words,
)

HELD_OUT = ("valid", "test")
CANDIDATES = 1 << 16
"""The pairs that one pass over the training text collects to draw held-out sets from."""
Item = TypeVar("Item")
Say = Callable[[str], None]
Map = Callable[[Callable[[Any], Any], Iterable[Any]], Iterator[Any]]
"""`map` in the worker processes, in order."""
Letters = tuple[set[str], set[str]]
"""For each side, the letters of lines: what is left of a line without case and punctuation."""
log = logging.getLogger(__name__)


def blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Lists of BLOCK_PAIRS items; the last one may be shorter."""
    iterator = iter(items)
    while block := list(islice(iterator, BLOCK_PAIRS)):
        yield block


@lru_cache(maxsize=1)
def worker_letters(file: Path) -> Letters:
    """Read letters once per worker process, because sending them with each block costs more."""
    sources, targets = json.loads(file.read_bytes())
    return set(sources), set(targets)


def rows_with_letters(place: Place, letters_file: Path) -> Rows:
    """The rows of a block's pairs in which one of the lines has letters from the file."""
    sources, targets = worker_letters(letters_file)
    # Letters are compared, not lines: a line that differs only in case, digits or punctuation from
    # a held-out one would still give the translation away.
    flags = []
    for source, target in text_pairs(place.block()):
        flags.append(letters(source) in sources or letters(target) in targets)
    return np.flatnonzero(flags)


def entries_of_part(part: Part, corpus: Corpus) -> set[str]:
    """The vocabulary entries that the targets of some pairs need."""
    entries: set[str] = set()
    for target in part.block().column(1).to_pylist():
        entries.update(corpus.entries(target))
    return entries


class Reading:
    """One source of a corpus.

    Call `read_held_out` first, then `read_train`, which writes clean pairs to files whose names
    begin with `text`.
    """

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
        self.counts: dict[str, Any] = {}
        """Split -> pairs read, and pairs dropped by reason."""
        self.held_out: dict[str, list[Pair]] = {}
        """Split -> raw pairs."""
        self.given: dict[str, Hashes] = {}
        """Split -> hashes of its pairs; only for splits that are not drawn from train."""
        self.suspicions: dict[str, Suspicions] = {}
        """Split -> suspicions; the same splits as in `given`."""
        self.in_given = EMPTY
        """The hashes of the training pairs that also occur in a given held-out set."""
        self.drawn: Letters = (set(), set())
        """The letters of the lines drawn from train."""
        self.places: list[Place] = []
        """The blocks of clean pairs."""
        self.keep = np.empty(0, np.bool_)
        """For each clean pair, whether it stays in train."""
        self.borders = Borders()
        """Where the lines of train do not continue the lines before them."""

    def read_held_out(self) -> None:
        """Read the held-out sets that are not drawn from train."""
        if not self.corpus.structured:
            # Before the first task, with which the pool forks its workers.
            Suspicions(self.data).languages.load_model()
        if self.data.filters.similarity is not None:
            sentence_vectors([""])
        for split in HELD_OUT:
            dropped = Counter[str]()
            blocks_of_split = self.corpus.read_blocks(split, dropped)
            if blocks_of_split is None:
                continue
            places = Places()
            pairs = list[Pair]()
            for block in blocks_of_split:
                skipped = list[int]()
                first = len(pairs) + 1
                pairs += pairs_of_block(block, self.data, dropped, skipped)
                places.add(origin_of(block), first, skipped)
            self.add_given(split, pairs, dropped, places)

    def add_given(
        self, split: str, pairs: list[Pair], dropped: Counter[str], places: Places
    ) -> None:
        """Inspect and keep a held-out set of the corpus."""
        # An empty file is a mistake. Without data.valid, valid_size pairs are drawn instead.
        require(
            split != "valid" or bool(pairs),
            "data.valid has no pairs, but training needs some to validate on",
        )
        self.held_out[split] = pairs
        self.counts[split] = {"read": len(pairs) + dropped.total(), "dropped": dropped}
        # In this process, not in workers: a held-out set is held in memory anyway.
        suspicions = Suspicions(self.data)
        self.set_places(suspicions, places, dropped)
        if not self.corpus.structured:
            for number, block in enumerate(blocks(pairs)):
                first = 1 + number * BLOCK_PAIRS
                suspicions.inspect(block, suspicions.next_sample(), first)
        self.report(split, suspicions)
        self.suspicions[split] = suspicions
        # Raw pairs are kept for scoring, but training pairs are hashed as the model reads them.
        as_read = (self.corpus.as_read(pair, self.normalization) for pair in pairs)
        self.given[split] = pair_hashes(as_read)

    def set_places(self, suspicions: Suspicions, places: Places, skipped: Counter[str]) -> None:
        """Let notices say where pairs are; `skipped` are the rows that were not read as pairs."""
        suspicions.where = places
        suspicions.remark = places.remark(skipped.total())

    def report(self, split: str, suspicions: Suspicions) -> None:
        for text in suspicions.notices():
            log.warning(f"notice: {self.where(split)}: {text}")

    def report_damage(self, of_train: Suspicions) -> None:
        """Report problems of train, and damaged pairs of all splits."""
        self.report("train", of_train)
        self.report_damaged_pairs("train", of_train, len(self.keep))
        for split, suspicions in self.suspicions.items():
            self.report_damaged_pairs(split, suspicions)

    def where(self, split: str) -> str:
        """The key and the files of a split."""
        entries = ", ".join(getattr(self.data, split))
        return f"data.{split} ({entries:.200})" if entries else f"data.{split}"

    def report_damaged_pairs(
        self, split: str, suspicions: Suspicions, clean: int | None = None
    ) -> None:
        """Report damage in a part of the pairs of a split.

        `clean` is the number of pairs of train that passed the filters.
        """
        self.compare_meanings(split, suspicions)
        notice = suspicions.damage_notice(clean)
        if notice:
            text = f"notice: {self.where(split)}: {notice.text}{suspicions.remark}"
            # Only a front end knows how to show pairs.
            log.warning(text, extra={"worst_pairs": notice.worst})
        # Held-out sets are not filtered.
        swapped = suspicions.notice_of_swapped_part(notice, is_filtered=clean is not None)
        if swapped:
            log.warning(f"notice: {self.where(split)}: {swapped}")

    def compare_meanings(self, split: str, suspicions: Suspicions) -> None:
        """Compare the meanings of a sample of a split."""
        meanings = suspicions.meanings
        if self.corpus.structured or not meanings.is_possible():
            return
        inspect = partial(inspect_pairs, source=self.data.source, target=self.data.target)
        parts = self.parts_to_compare(split)
        compared = 0
        # In parts that do not depend on the number of workers, and so their vectors do not either.
        for part, inspected in zip(parts, self.map(inspect, parts), strict=True):
            meanings.merge(inspected)
            compared += len(part)
            self.say(f"compared the meanings of {compared:,} {split} pairs")

    def parts_to_compare(self, split: str) -> list[Numbered]:
        """The parts of a sample of the clean pairs of train, or of the pairs of a held-out set."""
        sample: Numbered = []
        if split == "train":
            rows = spread_rows(sum(place.pairs for place in self.places))
            for block in self.map(read_part, parts_of_rows(self.places, rows)):
                lines = block.column("line").to_pylist()
                sample += zip(lines, text_pairs(block), strict=True)
        else:
            pairs = self.held_out[split]
            for row in spread_rows(len(pairs), HELD_OUT_SAMPLED).tolist():
                sample.append((row + 1, pairs[row]))
        # A few pairs are not judged, so the encoder need not be loaded for them.
        if len(sample) < LEAST_SAMPLED:
            return []
        starts = range(0, len(sample), PART_PAIRS)
        return [sample[start : start + PART_PAIRS] for start in starts]

    def read_train(self, given: Hashes, given_file: Path) -> None:
        """Write the clean training pairs, and draw missing held-out sets.

        `given` contains the hashes of the pairs of all given held-out sets, ascending and distinct,
        and so does the file.
        """
        suspicions = Suspicions(self.data)
        dropped = Counter[str]()
        read = 0
        is_in_train = np.zeros(len(given), bool)
        cleaning = Cleaning(
            self.corpus,
            self.normalization,
            is_unique=self.data.filters.deduplicate,
            given=given_file if len(given) else None,
            spool=self.text,
        )
        # Hashes go to a file, because those of a large corpus do not fit in memory.
        hash_path = self.text.with_suffix(".hashes")
        with hash_file(hash_path) as hashes:
            for block in self.map(cleaning, self.blocks_to_clean(suspicions)):
                # `read` still counts only earlier blocks, and so does `shift` below.
                self.borders.add_block(read + 1, block.pairs, block.skipped, block.skipped_lines)
                if block.place:
                    self.places.append(block.place._replace(first_line=read + 1))
                if block.suspicions:
                    suspicions.merge(block.suspicions, shift=read)
                is_in_train[block.given] = True
                if len(block.hashes):
                    hashes.add(block.hashes)
                read += block.pairs
                dropped += block.dropped
                self.say(f"read {read:,} pairs")
            # Only after the last block, because any two blocks may contain equal pairs.
            repeated = self.map(partial(repeated_rows, path=hash_path), hashes.tasks())
            self.drop_rows(repeated)
        self.set_places(suspicions, self.borders.places, self.borders.skipped)
        self.report_damage(suspicions)
        self.in_given = given[is_in_train]
        # By subtraction: workers drop pairs that repeat within a block, and do not count them.
        duplicates = read - dropped.total() - self.pairs_left
        if duplicates:
            dropped["duplicates"] = duplicates
        skipped = self.borders.skipped
        self.counts["train"] = {"read": read + skipped.total(), "dropped": skipped + dropped}
        self.require_pairs(self.pairs_left > 0)
        # Drawn last: only pairs that pass the filters and are not duplicates may be drawn.
        missing = [split for split in HELD_OUT if split not in self.given]
        if missing:
            self.hold_out(missing)

    def drop_rows(self, groups: Iterable[Rows]) -> None:
        """Keep all rows of the places except these."""
        self.keep = np.ones(sum(place.pairs for place in self.places), np.bool_)
        for rows in groups:
            self.keep[rows] = False

    def blocks_to_clean(self, suspicions: Suspicions) -> Iterator[tuple[PairBlock, Sample]]:
        """The blocks of the training text, each with the part to inspect."""
        blocks = self.corpus.read_blocks("train", self.borders.skipped_by_reader)
        assert blocks is not None
        for block in self.borders.watched(blocks):
            yield block, NO_SAMPLE if self.corpus.structured else suspicions.next_sample()

    @property
    def pairs_left(self) -> int:
        """The number of pairs that stay in train."""
        return int(np.count_nonzero(self.keep))

    def require_pairs(self, left: bool) -> None:
        """Raise NMTError, with the reasons for dropping pairs, unless some pairs are left."""
        if left:
            return
        train = self.counts["train"]
        reasons = [f"{count:,} {reason}" for reason, count in train["dropped"].items()]
        raise NMTError(
            f"no training pairs are left of {train['read']:,} "
            f"({', '.join(reasons) or 'none were read'}): check data.train and data.filters"
        )

    def hold_out(self, splits: list[str]) -> None:
        """Draw splits from train.

        Then drop the remaining pairs in which a line has the same letters as a drawn line.
        """
        sizes = {"valid": self.data.valid_size, "test": self.data.test_size}
        # One stream for all sets, so that no pair is in two of them.
        candidates = self.in_random_order()
        drawn: dict[str, Numbered] = {}
        # Draw the test set first, so that it does not depend on whether data.valid is given.
        for split in reversed(splits):
            drawn[split] = self.draw(candidates, sizes[split])
        held_out = sum(map(len, drawn.values()))
        # This also drops the drawn pairs themselves, because their lines have these letters.
        self.drop_alike(self.drawn, held_out)
        is_complete = all(len(drawn[split]) == sizes[split] for split in splits)
        # With fewer, hardly any pairs are left to train on.
        is_enough = 2 * self.pairs_left > held_out
        if not is_complete or not is_enough:
            raise NMTError(too_few_pairs(sizes, splits, self.pairs_left + held_out))
        for split in splits:
            self.counts[split] = {"read": len(drawn[split]), "dropped": Counter()}
            if self.corpus.structured:
                # `places` have the linear form of the trees that the model reads, but a score needs
                # the trees.
                lines = [line for line, _ in drawn[split]]
                self.held_out[split] = self.originals(lines)
            else:
                self.held_out[split] = [pair for _, pair in drawn[split]]

    def originals(self, lines: list[int]) -> list[Pair]:
        """The raw pairs of these lines of train; clean pairs are as the model reads them."""
        # The dict keeps the order of `lines`, although the file is read in its own order.
        originals = dict.fromkeys(lines, ("", ""))
        # Skipped lines were counted when the corpus was read first.
        pairs = self.corpus.read("train", Counter()) or ()
        for line, pair in enumerate(pairs, start=1):
            if line in originals:
                originals[line] = pair
        return list(originals.values())

    def in_random_order(self) -> Iterator[tuple[int, Pair]]:
        """The training pairs in the order that the seed decides, each with its line number."""
        for numbers in shuffled_range(self.pairs_left, self.seed):
            # The lines are far apart in the file, so one pass over it collects many of them.
            for start in range(0, len(numbers), CANDIDATES):
                rows = nth_flagged(self.keep, numbers[start : start + CANDIDATES])
                order = np.argsort(rows)  # as in the file
                candidates: list[tuple[int, Pair]] = []
                parts = parts_of_rows(self.places, rows[order])
                for block in self.map(read_part, parts):
                    lines = block.column("line").to_pylist()
                    candidates += zip(lines, text_pairs(block), strict=True)
                for place in np.argsort(order).tolist():  # as drawn
                    yield candidates[place]

    def draw(self, candidates: Iterator[tuple[int, Pair]], size: int) -> Numbered:
        """Take the next `size` candidates in which no line has the letters of a drawn line."""
        drawn: Numbered = []
        # The size is checked first: `next` would take a candidate from the set that is drawn later.
        while len(drawn) < size and (candidate := next(candidates, None)):
            _, (source, target) = candidate
            # Similar lines within a set would count several times in a score.
            is_new = letters(source) not in self.drawn[0] and letters(target) not in self.drawn[1]
            if is_new and words(source) >= self.data.held_out_min_words:
                self.drawn[0].add(letters(source))
                # Trees may recur, because many sentences have the same tree.
                if not self.corpus.structured:
                    self.drawn[1].add(letters(target))
                drawn.append(candidate)
        return drawn

    def drop_alike(self, sides: Letters, held_out: int = 0) -> None:
        """Drop training pairs with these letters on either side.

        Count all of them except `held_out` pairs, which are held out.
        """
        kept = self.pairs_left
        file = self.text.with_suffix(f".{held_out}.letters")
        file.write_text(json.dumps(list(map(list, sides))), encoding="utf-8")
        alike = partial(rows_with_letters, letters_file=file)
        start = 0
        for place, rows in zip(self.places, self.map(alike, self.places), strict=True):
            self.keep[start + rows] = False
            start += place.pairs
        file.unlink()
        lost = kept - self.pairs_left - held_out
        if lost:
            self.counts["train"]["dropped"]["like a held-out line"] += lost

    def target_entries(self) -> set[str]:
        """The vocabulary entries that the training targets of a structured corpus need."""
        entries: set[str] = set()
        of_part = partial(entries_of_part, corpus=self.corpus)
        for entries_of_block in self.map(of_part, self.train_parts()):
            entries |= entries_of_block
        return entries

    def train_parts(self) -> Iterator[Part]:
        """The pairs that stay in train, as the model reads them."""
        return flagged_parts(self.places, self.keep)

    def blocks_of(self, split: str) -> Iterator[pa.RecordBatch]:
        """The pairs of a held-out set, as the model reads them."""
        # They are not in `places`: they are kept raw, and converted here.
        pairs = (
            (line, self.corpus.as_read(raw, self.normalization))
            for line, raw in enumerate(self.held_out[split], start=1)
        )
        return map(text_block, blocks(pairs))

    def remove_text(self) -> None:
        """Remove the files of clean pairs."""
        remove_files(self.places)


def too_few_pairs(sizes: dict[str, int], splits: Sequence[str], pairs: int) -> str:
    """Say that held-out sets of these sizes cannot be drawn from this number of distinct pairs."""
    keys = " and ".join(f"data.{split}_size={sizes[split]}" for split in splits)
    files = " and ".join(f"data.{split}" for split in splits)
    tenth = pairs // 10
    smaller = " ".join(f"data.{split}_size={tenth}" for split in splits)
    advice = f"pass smaller sizes, such as {smaller}, or pass {files}" if tenth else f"pass {files}"
    return f"{pairs:,} distinct pairs are too few to draw {keys} from them: {advice}"
