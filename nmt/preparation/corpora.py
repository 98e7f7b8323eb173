"""Kinds of corpora, each registered under kind "corpus" by the name that `data.kind` chooses."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from nmt.config import DataConfig, require
from nmt.files import sha256
from nmt.registry import entries_of
from nmt.text import Pair, read_files, resolve


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
