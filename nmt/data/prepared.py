"""A prepared corpus on disk: memory-mapped token ids through `datasets`.

Shapes: B sentences, S source positions, T target positions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import Tensor

from nmt.config import BOS, EOS, PAD, UNK, DataConfig, held_out_name, sources_of
from nmt.data.arrow import IDS_SCHEMA
from nmt.data.manifest import TOKENIZER, Manifest, read_manifest
from nmt.data.planning import UpdateSize
from nmt.errors import NMTError, one_line
from nmt.files import check_regular, sha256
from nmt.text import load_tokenizer, parallel, read_texts


class Batch(NamedTuple):
    """A padded micro-batch.

    It is a plain tuple because Lightning then copies its tensors asynchronously, but waits for a `to` method of ours.
    """

    source: Tensor
    """[B, S], each sentence closed by the end symbol."""
    target_in: Tensor
    """[B, T], each sentence after the start symbol."""
    target_out: Tensor
    """[B, T], each sentence closed by the end symbol: the token to predict at each position."""
    target_indices: Tensor
    """[M], the positions of the M real tokens in target_out.flatten()."""
    padded: bool = True
    """True if `source` holds padding. Known here without waiting for a device."""
    update: int = 0
    micro_batch: int = 0
    size: UpdateSize = UpdateSize()
    """Size of the whole update."""


def pad(sentences: pa.ListArray) -> Tensor:
    """[B, longest + 1], each sentence closed by the end symbol."""
    lengths = sentences.value_lengths().to_numpy().astype(np.int64)
    padded = np.full((len(lengths), int(lengths.max(initial=0)) + 1), PAD, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = sentences.flatten().to_numpy()
    padded[np.arange(len(lengths)), lengths] = EOS
    return torch.from_numpy(padded)


def shift(target_out: Tensor) -> Tensor:
    """Sentences closed by the end symbol -> the same after the start symbol, without the end symbol."""
    before = target_out[:, :-1]
    return torch.cat((torch.full_like(target_out[:, :1], BOS), before.masked_fill(before == EOS, PAD)), dim=1)


def padded_batch(sources: pa.ListArray, targets: pa.ListArray) -> Batch:
    """Sentences without end symbols, padded to the longest."""
    source, target_out = pad(sources), pad(targets)
    return Batch(
        source=source,
        target_in=shift(target_out),
        target_out=target_out,
        target_indices=(target_out.flatten() != PAD).nonzero()[:, 0],
        padded=bool((source == PAD).any()),
    )


def dummy_batch(rows: int, source_width: int, target_width: int) -> Batch:
    """A batch of unknown tokens that takes as much memory as any of this shape, including the mask for padding."""
    target = torch.full((rows, target_width), UNK)
    real_tokens = torch.arange(max(target.numel() - 1, 1))
    return Batch(torch.full((rows, source_width), UNK), target, target, real_tokens, padded=True)


class PreparedSplit:
    """One split, memory-mapped: `source_lengths` and `target_lengths` count the end symbol."""

    def __init__(self, folder: Path) -> None:
        import datasets
        from datasets.table import MemoryMappedTable, concat_tables

        self.folder = folder
        files = [] if folder.is_symlink() else sorted(folder.glob("*.arrow"))
        if not files:
            raise NMTError(f"{folder}: no prepared corpus (no .arrow file, or a link)")
        tables = []
        for file in files:
            check_regular(file)
            try:
                tables.append(MemoryMappedTable.from_file(str(file)).replace_schema_metadata(None))
            except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
                raise self.damaged(error) from error
            if tables[-1].schema != IDS_SCHEMA or any(column.null_count for column in tables[-1].columns):
                raise NMTError(f"{file}: not the columns of a prepared corpus; prepare it again")
        self.table = datasets.Dataset(concat_tables(tables)).with_format("arrow")
        self.source_lengths: NDArray[np.int32] = self.table.data.column("source_length").to_numpy()
        self.target_lengths: NDArray[np.int32] = self.table.data.column("target_length").to_numpy()

    def __len__(self) -> int:
        return len(self.source_lengths)

    def damaged(self, error: Exception) -> NMTError:
        return NMTError(f"{self.folder}: damaged, or no prepared corpus ({one_line(error)}); prepare it again")

    def check(self, vocabulary_sizes: tuple[int, int]) -> None:
        """NMTError where offsets, lengths or ids of any pair are invalid."""
        try:
            for block in self.table.data.to_batches():
                block.validate(full=True)
                for side, size in zip(("source", "target"), vocabulary_sizes, strict=True):
                    lengths, ids = block.column(side).value_lengths().to_numpy(), block.column(side).flatten()
                    if not np.array_equal(lengths + 1, block.column(f"{side}_length").to_numpy()):
                        raise ValueError(f"its {side}_length is not the length of {side}")
                    if ids.null_count or (len(ids) and not UNK <= ids.to_numpy().min() <= ids.to_numpy().max() < size):
                        raise ValueError(f"an id in {side} is outside the vocabulary")
        except (ValueError, pa.ArrowException) as error:
            raise self.damaged(error) from error

    def lines(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """The line numbers of the pairs at `indices` in the corpus, counted from 1 over all its files."""
        lines: NDArray[np.int64] = self.table[indices].column("line").to_numpy()
        return lines

    def __reduce__(self) -> tuple[type, tuple[Path]]:
        # A worker process reopens the files, instead of receiving the lengths of a whole corpus.
        return type(self), (self.folder,)

    def batch(self, indices: NDArray[np.int64]) -> Batch:
        """The sentences at `indices`, padded to the longest."""
        rows = self.table[indices]
        return padded_batch(*(rows.column(side).combine_chunks() for side in ("source", "target")))


@dataclass
class Domain:
    """The pairs of one source in a validation or test set."""

    name: str
    rows: range
    tag: str = ""
    """The tag before each of its sources, with a blank."""


@dataclass
class PreparedCorpus:
    """The folder that `nmt preprocess` wrote."""

    folder: Path
    manifest: Manifest
    source_vocabulary_size: int | None = None
    """Entries of the source's vocabulary; None where there is one for both sides."""

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
        """train, valid or test; NMTError where there is none."""
        if not (self.folder / name).is_dir():
            raise self.without(name)
        split = PreparedSplit(self.folder / name)
        if not len(split):
            raise NMTError(f"{split.folder}: it holds no pairs; prepare it again")
        size = self.manifest.vocabulary_size
        split.check((self.source_vocabulary_size or size, size))
        self.check_count(name, len(split), "pairs")
        return split

    def without(self, split: str) -> NMTError:
        return NMTError(
            f"{self.folder} holds no {split} set: prepare it with data.{split} or data.{split}_size, or take another"
        )

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """Raw source and target lines of valid or test; NMTError where there are none, or they are damaged."""
        if not self.manifest.counts.get(split, {}).get("kept"):
            raise self.without(split)
        paths = [self.folder / f"{split}.{code}" for code in (self.source_language, self.target_language)]
        for path in paths:
            check_regular(path)
        try:
            pairs = list(parallel(paths, [read_texts(path) for path in paths]))
        except NMTError as error:
            raise NMTError(f"{error}: the text of {split} is damaged; prepare it again") from error
        self.check_count(split, len(pairs), "lines")
        return [source for source, _ in pairs], [target for _, target in pairs]

    def domains(self, split: str, data: DataConfig) -> list[Domain]:
        """The sources that have pairs in a validation or test set."""
        bounds = self.bounds(split).tolist()
        parts = enumerate(zip(sources_of(data), map(range, bounds, bounds[1:]), strict=False))
        return [
            Domain(held_out_name(data, number, source, split), rows, f"{source.data.tag} " if source.data.tag else "")
            for number, (source, rows) in parts
            if rows
        ]

    def bounds(self, split: str) -> NDArray[np.int64]:
        """The first row of each source in a split, and the end of the last one; NMTError where they are unknown."""
        counts = self.manifest.counts.get(split, {})
        sizes = list((counts.get("sources") or {"": counts.get("kept", 0)}).values())
        if sum(sizes) != counts.get("kept"):
            raise NMTError(f"{self.folder}: the sources of {split} do not add up to it; prepare it again")
        return np.cumsum([0, *sizes])

    def check_count(self, split: str, number: int, unit: str) -> None:
        """NMTError where a split has another number of pairs or lines than the manifest says."""
        kept = self.manifest.counts.get(split, {}).get("kept", number)
        if kept != number:
            raise NMTError(
                f"{self.folder}: {split} has {number:,} {unit}, not {kept:,} as the manifest says: prepare it again"
            )


def open_corpus(folder: Path) -> PreparedCorpus:
    """The corpus prepared in `folder`; NMTError where there is none, or its tokenizer is another."""
    manifest = read_manifest(folder)
    path = folder / TOKENIZER
    same = path.is_file() and sha256(path) == manifest.tokenizer
    tokenizer = load_tokenizer(path) if same else None
    if tokenizer is None or tokenizer.vocabulary_size != manifest.vocabulary_size:
        raise NMTError(
            f"{path} is not the tokenizer that {folder} was prepared with, according to manifest.json there: "
            "prepare the corpus again with overwrite=true"
        )
    return PreparedCorpus(folder, manifest, tokenizer.source_vocabulary_size)


PARENT_LEVELS = 4
"""Folders above a run in which a relative path in its configuration may begin."""


def corpus_of(folder: Path, training: Mapping[str, Any], prepared: str | None = None) -> PreparedCorpus:
    """The corpus in the folder `prepared`, or the one that a model was trained on: report, compare, cite, export.

    `folder` is a run or a model directory, and `training` the record in its description or in a checkpoint: `config`
    with the folder's name, relative to here or to a folder above the run, and `corpus`, the fingerprint. Raises
    NMTError where no corpus is there, or another one.
    """
    config = training.get("config")
    name = prepared or (config.get("prepared") if isinstance(config, dict) else None)
    if not isinstance(name, str):
        raise NMTError(f"{folder} does not say what it was trained on; name the corpus")
    places = [Path(name), *(parent / name for parent in folder.resolve().parents[:PARENT_LEVELS] if not prepared)]
    place = next((place for place in places if (place / "manifest.json").is_file()), places[0])
    corpus = open_corpus(place)
    if training.get("corpus") not in (None, corpus.manifest.fingerprint):
        raise NMTError(f"{place} holds another corpus than the one that {folder} was trained on; pass prepared=FOLDER")
    return corpus
