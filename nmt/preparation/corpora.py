"""Kinds of corpora, each registered under kind "corpus" by the name that `data.kind` chooses."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from nmt.config import DataConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import sha256
from nmt.registry import entries_of
from nmt.text import MalformedLine, Pair, read_files, resolve, texts_of

HUB_SPLITS = {"train": "train", "valid": "validation", "test": "test"}


class Corpus:
    """A source of pairs of lines. Plugins subclass it; worker processes receive it, so it holds no open file."""

    structured = False
    """True if a target is a structure of its source and no text: the vocabulary is of the sources and `entries`."""

    def __init__(self, data: DataConfig) -> None:
        self.data = data

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        """The raw pairs of a split; None where it is to be drawn from train. `data.errors=skip` counts in `dropped`."""
        raise NotImplementedError

    def digests(self) -> dict[str, str]:
        """File -> SHA-256, or what else identifies the content."""
        raise NotImplementedError

    def as_read(self, pair: Pair, clean: Callable[[str], str]) -> Pair:
        """A raw pair as the model reads it; `clean` is the tokenizer's."""
        return clean(pair[0]), clean(pair[1])

    def entries(self, target: str) -> list[str]:
        """The words of a target that become one entry of the vocabulary each."""
        return []


def corpus_for(data: DataConfig) -> Corpus:
    corpus: Corpus = entries_of("corpus")[data.kind].load()(data)
    return corpus


def file_digests(paths: Iterable[Path]) -> dict[str, str]:
    return {str(path): sha256(path.resolve()) for path in paths}


class Files(Corpus):
    """Text files: two parallel ones, TSV or JSONL."""

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        entries = getattr(self.data, split)
        forms = "data.train=PREFIX (PREFIX.en and PREFIX.de), SOURCE:TARGET, a .tsv or a .jsonl"
        require(split != "train" or bool(entries), f"data=files needs {forms}")
        return read_files(entries, self.data, dropped) if entries else None

    def digests(self) -> dict[str, str]:
        entries = [*self.data.train, *self.data.valid, *self.data.test]
        return file_digests(path for entry in entries for path in resolve(entry, self.data))


class Hub(Corpus):
    """A dataset of the Hugging Face hub, or a local copy of one, with a column `translation`."""

    def load(self, split: str) -> Any:
        data, where = self.data, str(self.data.hub)
        options: dict[str, Any] = {"name": data.subset, "split": HUB_SPLITS[split]}
        if data.path:
            # datasets would read any file that the README.md of the folder names, also outside of it.
            pattern = f"{data.subset}/{HUB_SPLITS[split]}-*.parquet"
            files = sorted(map(str, Path(data.path).glob(pattern)))
            require(bool(files), f"data.path={data.path}: no {pattern} there")
            where, options = "parquet", {"data_files": files, "split": "train"}
        import datasets

        try:
            return datasets.load_dataset(where, **options)
        except Exception as error:  # datasets, huggingface_hub, httpx and fsspec each raise their own
            raise NMTError(
                f"cannot load {data.path or where} ({data.subset}, {HUB_SPLITS[split]}): {one_line(error)}; "
                "pass data.path=FOLDER of a local copy, or use data=files or data=quickstart"
            ) from error

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair]:
        import pyarrow as pa

        data, dataset = self.data, self.load(split)
        where = f"{data.path or data.hub} ({data.subset})"
        try:
            rows = (row for rows in dataset.iter(batch_size=1000) for row in rows["translation"])
            for number, row in enumerate(rows, 1):
                try:
                    yield texts_of(row, data)
                except MalformedLine as error:
                    if data.errors == "strict":
                        advice = "check data.source and data.target, or pass data.errors=skip"
                        raise NMTError(f"{where}, {split}, row {number}: {error}; {advice}") from error
                    dropped[error.counted_as] += 1
        except (pa.ArrowException, KeyError, ValueError, TypeError) as error:
            raise NMTError(f"{where}: cannot be read ({one_line(error)})") from error

    def digests(self) -> dict[str, str]:
        """Those of a local copy; for a dataset of the hub its subset instead."""
        if not self.data.path:
            return {str(self.data.hub): str(self.data.subset)}
        folder = Path(self.data.path)
        files = sorted(folder.glob(f"{self.data.subset}/*.parquet")) or sorted(folder.rglob("*"))
        return file_digests(path for path in files if path.is_file())
