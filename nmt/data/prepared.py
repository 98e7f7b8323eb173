"""A prepared corpus: the folder that `nmt preprocess` writes and that training reads.

manifest.json       sources, configuration, counts and checksums
tokenizer.model     the vocabulary
train/pairs.arrow   token ids of the training pairs; also valid/ and test/
valid.en, valid.de  raw lines of the validation set; also test.en and test.de
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from nmt.config import UNK, DataConfig, build, held_out_name, sources_of
from nmt.data.batches import Batch, padded_batch
from nmt.data.columns import MappedColumns, MappedLists, map_file
from nmt.data.lengths import Ints, MappedLengths
from nmt.data.manifest import Manifest, read_manifest
from nmt.data.schema import IDS_SCHEMA, TOKENIZER
from nmt.errors import NMTError, one_line
from nmt.files import check_regular, remembered, sha256, within
from nmt.text import load_tokenizer, parallel, read_texts

CHECK = "valid pairs, version 1"
"""Change the number whenever `PreparedSplit.examine` finds other faults."""

VALID = "yes"

PARENT_LEVELS = 4
"""How many levels above a run folder its configuration's relative paths may be based."""


class PreparedSplit:
    """One memory-mapped split. `source_lengths` and `target_lengths` include the end symbol."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        file = folder / "pairs.arrow"
        self.file = file
        # A corpus may come from other people. A link in it could make nmt read any file.
        if folder.is_symlink() or not file.exists():
            raise NMTError(f"{folder} is a link or lacks pairs.arrow; prepare it again")
        check_regular(file)
        try:
            self.content = map_file(file)
            schema = pa.ipc.open_stream(self.content).schema.remove_metadata()
            names = [name for name in IDS_SCHEMA.names if name != "line"]
            columns = None
            if schema == IDS_SCHEMA:
                columns = MappedColumns.open(self.content, names)
        except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
            raise self.damaged(error) from error
        # The schema allows nulls, but an id or a length must be a number.
        if columns is None or columns.has_nulls:
            raise NMTError(f"{file} does not have a prepared corpus's columns; prepare it again")
        self.source_lengths = MappedLengths(file, "source_length", columns)
        self.target_lengths = MappedLengths(file, "target_length", columns)
        self.sources = MappedLists(columns, "source")
        self.targets = MappedLists(columns, "target")

    @property
    def table(self) -> pa.Table:
        """The whole split, for a small one."""
        return pa.ipc.open_stream(self.content).read_all().replace_schema_metadata(None)

    def __len__(self) -> int:
        return len(self.source_lengths)

    def __reduce__(self) -> tuple[type, tuple[Path]]:
        # A worker process reopens the files instead of receiving the lengths of all sentences.
        return type(self), (self.folder,)

    def damaged(self, error: Exception) -> NMTError:
        return NMTError(
            f"{self.folder}: damaged or not a prepared corpus ({one_line(error)}); prepare it again"
        )

    def check(self, vocabulary_sizes: tuple[int, int]) -> None:
        """Raise NMTError for invalid offsets, lengths or ids.

        Invalid values would otherwise cause a traceback or a crash. A large file that has been
        valid for these vocabularies, and has not changed since, is not read again.
        """

        def examine() -> str:
            self.examine(*vocabulary_sizes)
            return VALID

        remembered(self.file, f"{CHECK} {vocabulary_sizes}", examine)

    def examine(self, source_size: int, target_size: int) -> None:
        """Look at all values for `check`."""
        try:
            for block in pa.ipc.open_stream(self.content):
                # Without `full`, pyarrow trusts offsets, and invalid ones lead outside of the
                # buffers.
                block.validate(full=True)
                check_side(block, "source", source_size)
                check_side(block, "target", target_size)
        except (ValueError, pa.ArrowException) as error:
            raise self.damaged(error) from error

    def rows(self, indices: Ints) -> tuple[pa.ListArray, pa.ListArray]:
        """The sources and targets of these rows.

        Unlike pyarrow's `take`, this never copies whole columns.
        """
        return self.sources.take(indices), self.targets.take(indices)

    def batch(self, indices: Ints) -> Batch:
        return padded_batch(*self.rows(indices))


def check_side(block: pa.RecordBatch, side: str, vocabulary_size: int) -> None:
    """Raise ValueError for invalid lengths or ids of one side."""
    # Planning reads only the recorded lengths. If they were wrong, batches would not fit their
    # plan.
    lengths = block.column(side).value_lengths().to_numpy()
    recorded_lengths = block.column(f"{side}_length").to_numpy()
    if not np.array_equal(lengths + 1, recorded_lengths):
        raise ValueError(f"its {side}_length is not the length of {side}")
    ids = block.column(side).flatten()
    is_valid = ids.null_count == 0
    if is_valid and len(ids):
        numbers = ids.to_numpy()
        # `padded_batch` adds the symbols below <unk>. Stored ones would end or hide part of a
        # sentence.
        is_valid = numbers.min() >= UNK and numbers.max() < vocabulary_size
    if not is_valid:
        raise ValueError(f"an id in {side} is outside the vocabulary")


class Domain(NamedTuple):
    """The part of a held-out set that comes from one source."""

    name: str
    rows: range
    tag: str = ""
    """Prefix of each source line, ending in a space."""


@dataclass
class PreparedCorpus:
    """A prepared corpus. Its splits are checked when they are opened."""

    folder: Path
    manifest: Manifest
    source_vocabulary_size: int | None = None
    """The number of source entries; None if both sides share a vocabulary."""

    @property
    def source_language(self) -> str:
        return str(self.manifest.content["data"]["source"])

    @property
    def target_language(self) -> str:
        return str(self.manifest.content["data"]["target"])

    @property
    def tokenizer_file(self) -> Path:
        return self.folder / TOKENIZER

    def split(self, name: str) -> PreparedSplit:
        """Open train, valid or test; NMTError if it is missing or damaged."""
        # Checked first, because the message says how to get a split that was not prepared.
        kept = self.kept(name)
        target_size = self.manifest.vocabulary_size
        source_size = self.source_vocabulary_size or target_size
        split = PreparedSplit(self.folder / name)
        split.check((source_size, target_size))
        self.compare(split.folder, len(split), kept)
        return split

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """Raw source and target lines of valid or test, without the tags that preparation adds.

        NMTError if they are missing or damaged.
        """
        kept = self.kept(split)
        languages = (self.source_language, self.target_language)
        paths = [self.folder / f"{split}.{language}" for language in languages]
        # A corpus may come from other people: a link could lead to any file, and a pipe would
        # block.
        for path in paths:
            check_regular(path)
        pairs = list(parallel(paths, [read_texts(path) for path in paths]))
        self.compare(paths[0], len(pairs), kept)
        return [source for source, _ in pairs], [target for _, target in pairs]

    def tags(self, split: str) -> list[str]:
        """The tag of each line of valid or test, with a blank; empty for lines without a tag."""
        data = build(DataConfig, self.manifest.content["data"], str(self.folder))
        tags = []
        for domain in self.domains(split, data):
            tags += [domain.tag] * len(domain.rows)
        return tags

    def tagged(self, split: str, sources: list[str]) -> list[str]:
        """The first sources of valid or test after their tags, as a model reads them."""
        tags = self.tags(split)[: len(sources)]
        return [tag + source for tag, source in zip(tags, sources, strict=True)]

    def kept(self, split: str) -> int:
        """The number of pairs in a split; NMTError if there are none."""
        counts = self.manifest.counts.get(split, {})
        kept = int(counts.get("kept", 0))
        if kept <= 0:
            raise NMTError(
                f"{self.folder} has no {split} set: "
                f"prepare it with data.{split} or data.{split}_size, or use another corpus"
            )
        return kept

    def compare(self, path: Path, pairs: int, kept: int) -> None:
        """Raise NMTError unless a file has as many pairs as the manifest says."""
        if pairs != kept:
            raise NMTError(
                f"{path} has {pairs:,} pairs, but the manifest says {kept:,}: prepare it again"
            )

    def bounds(self, split: str) -> Ints:
        """Each source's first row in a split, then the end of the last source.

        Raises NMTError if the counts are wrong.
        """
        counts = self.manifest.counts.get(split, {})
        kept = counts.get("kept", 0)
        sources = counts.get("sources")
        # A corpus with a single source does not list it.
        sizes = list(sources.values()) if sources else [kept]
        if sum(sizes) != counts.get("kept"):
            raise NMTError(
                f"{self.folder}: the sources' pairs do not add up to {split}; prepare it again"
            )
        return np.cumsum([0, *sizes])

    def domains(self, split: str, data: DataConfig) -> list[Domain]:
        """The domains of a held-out set that have pairs, in row order."""
        bounds = self.bounds(split).tolist()
        domains = []
        spans = zip(sources_of(data), pairwise(bounds), strict=False)
        for number, (source, (start, end)) in enumerate(spans):
            if start < end:
                name = held_out_name(data, number, source, split)
                tag = f"{source.data.tag} " if source.data.tag else ""
                domains.append(Domain(name, range(start, end), tag))
        return domains


def open_corpus(folder: Path) -> PreparedCorpus:
    """The corpus in `folder`; NMTError if there is none, or if its tokenizer was replaced."""
    manifest = read_manifest(folder)
    path = folder / TOKENIZER
    # With another vocabulary, the stored ids would silently stand for other subwords.
    if path.is_file() and sha256(path) == manifest.tokenizer:
        tokenizer = load_tokenizer(path)
        if tokenizer.vocabulary_size == manifest.vocabulary_size:
            return PreparedCorpus(folder, manifest, tokenizer.source_vocabulary_size)
    raise NMTError(
        f"{path} is not the tokenizer that {folder} was prepared with: "
        "prepare the corpus again with overwrite=true"
    )


def corpus_of(
    folder: Path, training: Mapping[str, Any], prepared: str | None = None
) -> PreparedCorpus:
    """The corpus in `prepared`, or the corpus on which the model in `folder` was trained.

    `training` is a model's or checkpoint's training record, with the `config` and the fingerprint
    of the `corpus`. Raises NMTError if the corpus is missing or has another fingerprint.
    """
    name = prepared or within(training, "config", "prepared")
    if not isinstance(name, str):
        raise NMTError(f"{folder} does not record its corpus; pass prepared=FOLDER")
    # A path that the user gives is relative to the working directory, as in all commands.
    corpus_folder = Path(name)
    if not prepared:
        corpus_folder = place_of_corpus(folder, name)
    corpus = open_corpus(corpus_folder)
    # The folder may since have been prepared again, from other files.
    if training.get("corpus") not in (None, corpus.manifest.fingerprint):
        raise NMTError(
            f"{corpus.folder} is not the corpus that {folder} was trained on; pass prepared=FOLDER"
        )
    return corpus


def place_of_corpus(folder: Path, name: str) -> Path:
    """The corpus `name`, relative to the working directory or to a folder above `folder`."""
    parents = folder.resolve().parents[:PARENT_LEVELS]
    places = [Path(name), *(parent / name for parent in parents)]
    for place in places:
        if (place / "manifest.json").is_file():
            return place
    # The message about the missing corpus then names the path that was recorded.
    return places[0]
