"""A prepared corpus: the folder that `nmt preprocess` writes and that training reads.

manifest.json       sources, configuration, counts and checksums
tokenizer.model     the vocabulary
train/pairs.arrow   token ids of the training pairs; also valid/ and test/
valid.en, valid.de  raw lines of the validation set; also test.en and test.de

Shapes: B sentences, S source positions, T target positions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from nmt.config import (
    BOS,
    EOS,
    PAD,
    UNK,
    DataConfig,
    held_out_name,
    require,
    sources_of,
)
from nmt.data.lengths import MappedLengths, map_table
from nmt.data.manifest import Manifest, read_manifest
from nmt.data.planning import Ints, UpdateSize
from nmt.errors import NMTError, one_line
from nmt.files import check_regular, sha256, within
from nmt.text import load_tokenizer, parallel, read_texts

TOKENIZER = "tokenizer.model"
IDS = pa.list_(pa.int32())
IDS_SCHEMA = pa.schema(
    {
        "source": IDS,
        "target": IDS,
        "source_length": pa.int32(),
        "target_length": pa.int32(),
        "line": pa.int64(),
    }
)
"""Ids exclude the end symbol, but lengths include it; `line` is the pair's line number in its source, from 1."""
PARENT_LEVELS = (
    4  # how many levels above a run folder its configuration's relative paths may be based
)


class Batch(NamedTuple):
    """A padded micro-batch. It is a tuple because Lightning copies the tensors of a tuple asynchronously."""

    source: Tensor  # [B, S], each sentence followed by the end symbol
    target_in: Tensor  # [B, T], each sentence preceded by the start symbol
    target_out: Tensor  # [B, T], each sentence followed by the end symbol: the token to predict at each position
    target_indices: Tensor  # [M], the positions of the M real tokens in target_out.flatten()
    padded: bool = True  # whether `source` has padding; stored because checking the tensor would wait for the device
    update: int = 0
    micro_batch: int = 0
    size: UpdateSize = UpdateSize()  # of the whole update


def pad(sentences: pa.ListArray) -> Tensor:
    """Pad to [B, longest + 1], with an end symbol after each sentence."""
    lengths = sentences.value_lengths().to_numpy().astype(np.int64)
    padded = np.full((len(lengths), int(lengths.max(initial=0)) + 1), PAD, dtype=np.int64)
    padded[np.arange(padded.shape[1]) < lengths[:, None]] = sentences.flatten().to_numpy()
    padded[np.arange(len(lengths)), lengths] = EOS
    return torch.from_numpy(padded)


def padded_batch(sources: pa.ListArray, targets: pa.ListArray) -> Batch:
    """Build a batch from sentences that have no end symbols yet."""
    source, target_out = pad(sources), pad(targets)
    target_in = target_out.masked_fill(target_out == EOS, PAD).roll(1, dims=1)
    target_in[:, 0] = BOS
    real = (target_out.flatten() != PAD).nonzero()[:, 0]
    return Batch(source, target_in, target_out, real, padded=bool((source == PAD).any()))


def dummy_batch(rows: int, source_width: int, target_width: int) -> Batch:
    """A batch of <unk> tokens that needs as much memory as a full batch of this shape, including a padding mask."""
    source = torch.full((rows, source_width), UNK)
    target = torch.full((rows, target_width), UNK)
    return Batch(source, target, target, torch.arange(max(target.numel() - 1, 1)))


class PreparedSplit:
    """One memory-mapped split. `source_lengths` and `target_lengths` include the end symbol."""

    def __init__(self, folder: Path) -> None:
        self.folder, file = folder, folder / "pairs.arrow"
        require(
            not folder.is_symlink() and file.exists(),
            f"{folder} is a link or lacks pairs.arrow; prepare it again",
        )
        check_regular(file)
        try:
            content, table = map_table(file)
        except (OSError, ValueError, MemoryError, pa.ArrowException) as error:
            raise self.damaged(error) from error
        fits = table.schema == IDS_SCHEMA and not any(column.null_count for column in table.columns)
        require(fits, f"{file} does not have a prepared corpus's columns; prepare it again")
        self.table = table
        self.blocks = table.to_batches()
        self.starts = np.cumsum([0, *map(len, self.blocks)])
        try:
            self.source_lengths = MappedLengths(file, "source_length", content, table)
            self.target_lengths = MappedLengths(file, "target_length", content, table)
        except ValueError as error:
            raise self.damaged(error) from error

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
        """Raise NMTError for invalid offsets, lengths or ids, which would otherwise cause a traceback or worse."""
        try:
            for block in self.blocks:
                block.validate(full=True)
                for side, size in zip(("source", "target"), vocabulary_sizes, strict=True):
                    lengths, ids = (
                        block.column(side).value_lengths().to_numpy(),
                        block.column(side).flatten(),
                    )
                    if not np.array_equal(lengths + 1, block.column(f"{side}_length").to_numpy()):
                        raise ValueError(f"its {side}_length is not the length of {side}")
                    if ids.null_count or (
                        len(ids) and not UNK <= ids.to_numpy().min() <= ids.to_numpy().max() < size
                    ):
                        raise ValueError(f"an id in {side} is outside the vocabulary")
        except (ValueError, pa.ArrowException) as error:
            raise self.damaged(error) from error

    def rows(self, indices: Ints) -> list[pa.ListArray]:
        """The sources and targets of these rows; unlike pyarrow's `take`, this never copies whole columns."""
        places = zip(np.searchsorted(self.starts, indices, side="right") - 1, indices, strict=True)
        rows = [self.blocks[block].slice(row - self.starts[block], 1) for block, row in places]
        return [
            pa.Table.from_batches(rows).column(side).combine_chunks()
            for side in ("source", "target")
        ]

    def batch(self, indices: Ints) -> Batch:
        return padded_batch(*self.rows(indices))


class Domain(NamedTuple):
    """The part of a held-out set that comes from one source."""

    name: str
    rows: range
    tag: str = ""  # prefix of each source line, ending in a space


@dataclass
class PreparedCorpus:
    folder: Path
    manifest: Manifest
    source_vocabulary_size: int | None = None  # None if both sides share a vocabulary

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
        kept, size = self.kept(name), self.manifest.vocabulary_size
        split = PreparedSplit(self.folder / name)
        split.check((self.source_vocabulary_size or size, size))
        self.compare(split.folder, len(split), kept)
        return split

    def text(self, split: str) -> tuple[list[str], list[str]]:
        """Raw source and target lines of valid or test; NMTError if they are missing or damaged."""
        kept = self.kept(split)
        paths = [
            self.folder / f"{split}.{code}" for code in (self.source_language, self.target_language)
        ]
        for path in paths:
            check_regular(path)
        pairs = list(parallel(paths, [read_texts(path) for path in paths]))
        self.compare(paths[0], len(pairs), kept)
        return [source for source, _ in pairs], [target for _, target in pairs]

    def kept(self, split: str) -> int:
        """The number of pairs in a split; NMTError if there are none."""
        kept = int(self.manifest.counts.get(split, {}).get("kept", 0))
        advice = f"prepare it with data.{split} or data.{split}_size, or use another corpus"
        require(kept > 0, f"{self.folder} has no {split} set: {advice}")
        return kept

    def compare(self, path: Path, pairs: int, kept: int) -> None:
        require(
            pairs == kept,
            f"{path} has {pairs:,} pairs, but the manifest says {kept:,}: prepare it again",
        )

    def bounds(self, split: str) -> Ints:
        """Each source's first row in a split, then the end of the last source; NMTError if the counts are wrong."""
        counts = self.manifest.counts.get(split, {})
        sizes = list((counts.get("sources") or {"": counts.get("kept", 0)}).values())
        add_up = sum(sizes) == counts.get("kept")
        require(
            add_up, f"{self.folder}: the sources' pairs do not add up to {split}; prepare it again"
        )
        return np.cumsum([0, *sizes])

    def domains(self, split: str, data: DataConfig) -> list[Domain]:
        bounds = self.bounds(split).tolist()
        return [
            Domain(
                held_out_name(data, number, source, split),
                range(start, end),
                f"{source.data.tag or ''} ".lstrip(),
            )
            for number, (source, start, end) in enumerate(
                zip(sources_of(data), bounds, bounds[1:], strict=False)
            )
            if start < end
        ]


def open_corpus(folder: Path) -> PreparedCorpus:
    """The corpus in `folder`; NMTError if there is none, or if its tokenizer was replaced."""
    manifest, path = read_manifest(folder), folder / TOKENIZER
    advice = f"is not the tokenizer that {folder} was prepared with: prepare the corpus again with overwrite=true"
    require(path.is_file() and sha256(path) == manifest.tokenizer, f"{path} {advice}")
    tokenizer = load_tokenizer(path)
    require(tokenizer.vocabulary_size == manifest.vocabulary_size, f"{path} {advice}")
    return PreparedCorpus(folder, manifest, tokenizer.source_vocabulary_size)


def corpus_of(
    folder: Path, training: Mapping[str, Any], prepared: str | None = None
) -> PreparedCorpus:
    """The corpus in `prepared`, or the corpus on which the model in `folder` was trained; NMTError if it is missing.

    `training` is a model's or checkpoint's training record, with the `config` and the fingerprint of the `corpus`.
    """
    name = prepared or within(training, "config", "prepared")
    require(isinstance(name, str), f"{folder} does not record its corpus; pass prepared=FOLDER")
    places = [
        Path(name),
        *(parent / name for parent in folder.resolve().parents[:PARENT_LEVELS] if not prepared),
    ]
    corpus = open_corpus(
        next((place for place in places if (place / "manifest.json").is_file()), places[0])
    )
    other = f"{corpus.folder} is not the corpus that {folder} was trained on; pass prepared=FOLDER"
    require(training.get("corpus") in (None, corpus.manifest.fingerprint), other)
    return corpus
