"""The kinds of corpora that sentence pairs are read from."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nmt.config import DataConfig, NMTError, structured_targets
from nmt.extensions import CorpusEntry, PairsEntry
from nmt.files import Identity, identity_of, remembered_sha256
from nmt.hardware import usable_cores
from nmt.registry import entries_of
from nmt.text import Normalization, Pair, PairBlock, pair_blocks, read_blocks, read_files, resolve


class Corpus:
    """A source of sentence pairs.

    Plugins subclass it. It is sent to worker processes and must not hold open files.
    """

    def __init__(self, data: DataConfig) -> None:
        self.data = data
        # Targets are structures, not text: the vocabulary is trained on the sources and `entries`.
        self.structured = structured_targets(data.kind) is not None

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        """The raw pairs of a split, or None to draw it from train.

        `dropped` counts what `data.errors=skip` skips.
        """
        raise NotImplementedError

    def read_blocks(self, split: str, dropped: Counter[str]) -> Iterator[PairBlock] | None:
        """The pairs that `read` returns, in blocks, which worker processes decode."""
        # By default, the main process reads the pairs, and blocks are only lists of them. Readers
        # of files return blocks of undecoded lines instead, which saves the main process most of
        # its work.
        pairs = self.read(split, dropped)
        return None if pairs is None else pair_blocks(pairs)

    def paths(self) -> list[Path]:
        """The files that must not change while the corpus is prepared."""
        return []

    def digests(self) -> dict[str, str]:
        """File -> SHA-256, or something else that identifies the content."""
        raise NotImplementedError

    def as_read(self, pair: Pair, normalization: Normalization) -> Pair:
        """A raw pair as the model reads it."""
        # The sides differ: sources lose forms that need not be learned, targets keep what people
        # read.
        return normalization.source(pair[0]), normalization.target(pair[1])

    def entries(self, target: str) -> list[str]:
        """The words of a target that each become a vocabulary entry."""
        return []


class Files(Corpus):
    """Parallel text files, or files of pairs."""

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair] | None:
        entries = self.entries_of(split)
        return read_files(entries, self.data, dropped) if entries else None

    def read_blocks(self, split: str, dropped: Counter[str]) -> Iterator[PairBlock] | None:
        entries = self.entries_of(split)
        return read_blocks(entries, self.data, dropped) if entries else None

    def entries_of(self, split: str) -> list[str]:
        """The entries of `data.train`, `data.valid` or `data.test`."""
        entries: list[str] = getattr(self.data, split)
        # The other splits may be empty: they are then drawn from train.
        if split == "train" and not entries:
            suffixes = ", ".join(entries_of(PairsEntry))
            raise NMTError(
                "data=files needs data.train=PREFIX (PREFIX.en and PREFIX.de), SOURCE:TARGET, "
                f"or a file of pairs ({suffixes})"
            )
        return entries

    def paths(self) -> list[Path]:
        paths: list[Path] = []
        for entry in (*self.data.train, *self.data.valid, *self.data.test):
            for paths_of_entry in resolve(entry, self.data):
                paths += paths_of_entry
        return paths

    def digests(self) -> dict[str, str]:
        # Contents, not dates: a copied or restored file must not make a prepared corpus stale.
        return file_digests(self.paths())


def corpus_for(data: DataConfig) -> Corpus:
    corpus: Corpus = entries_of(CorpusEntry)[data.kind].load()(data)
    return corpus


def file_digests(paths: Iterable[Path]) -> dict[str, str]:
    """File -> SHA-256 of its content."""
    # A file that several entries name is hashed once.
    files = list(dict.fromkeys(paths))
    # hashlib releases the interpreter's lock. A processor hashes about 1 GB/s, disks are faster.
    with ThreadPoolExecutor(usable_cores()) as threads:
        hashes = threads.map(hash_of_file, files)
        return dict(zip(map(str, files), hashes, strict=True))


def states_of_files(corpora: Iterable[Corpus]) -> dict[Path, Identity | None]:
    """The states of all files of some corpora."""
    states = {}
    for corpus in corpora:
        for path in corpus.paths():
            states[path] = state_of_file(path)
    return states


def state_of_file(path: Path) -> Identity | None:
    """What changes if a file is replaced or written to; None if there is no file."""
    try:
        # Without the time of other changes, such as another link to the file.
        return identity_of(path)._replace(changed_ns=0)
    except OSError:
        return None


def check_unchanged(states: Mapping[Path, Identity | None]) -> None:
    """Raise NMTError if a file has another state: the corpus may not be that of its SHA-256."""
    for path, state in states.items():
        if state_of_file(path) != state:
            raise NMTError(f"{path}: changed while it was read; run the command again")


def hash_of_file(path: Path) -> str:
    """The SHA-256 of a file, remembered if the file is large."""
    return remembered_sha256(path.resolve())
