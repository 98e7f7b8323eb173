"""Sentence pairs from a dataset on the Hugging Face hub, or from a local copy."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.config import DataConfig, NMTError, one_line
from nmt.preparation import Corpus, file_digests
from nmt.text import MalformedLine, Pair, texts_of

SPLITS = {"train": "train", "valid": "validation", "test": "test"}
"""nmt's names of splits and the hub's."""
ROWS_PER_BATCH = 1000
"""Number of rows to read at once."""


class Hub(Corpus):
    """A dataset with a `translation` column, such as wmt/wmt14."""

    def __init__(self, data: DataConfig) -> None:
        super().__init__(data)
        options = data.plugins["hub"]
        self.name = options.hub
        self.subset = options.subset

    @property
    def where(self) -> str:
        """The folder of a local copy or the name on the hub."""
        return str(self.data.path or self.name)

    def load(self, split: str) -> Any:
        """The split of the dataset; NMTError if it cannot be loaded."""
        if self.data.path:
            options: dict[str, Any] = self.local_options(Path(self.data.path), split)
        else:
            options = {"path": str(self.name), "name": self.subset, "split": SPLITS[split]}
        # Imported here: it takes long, and only this kind of corpus needs it.
        import datasets

        try:
            return datasets.load_dataset(**options)
        # datasets, huggingface_hub, httpx and fsspec each raise their own errors.
        except Exception as error:
            problem = f"cannot load {self.where} ({self.subset}, {SPLITS[split]})"
            advice = "pass data.path=FOLDER to use a local copy, or use data=files"
            raise NMTError(f"{problem}: {one_line(error)}; {advice}") from error

    def local_options(self, folder: Path, split: str) -> dict[str, Any]:
        """The arguments with which `load_dataset` loads a local copy.

        Given the folder, the datasets library would read any file that the folder's README.md
        names, even outside the folder, so it gets the files.
        """
        pattern = f"{self.subset}/{SPLITS[split]}-*.parquet"
        # Sorted: the order of the pairs decides line numbers, samples and what is held out.
        files = sorted(map(str, folder.glob(pattern)))
        if not files:
            problem = f"data.path={self.data.path}: no files match {pattern}"
            # Older datasets are programs that create the data. nmt never runs code from a corpus.
            scripts = sorted(file.name for file in folder.glob("*.py"))
            if scripts:
                problem += f"; nmt does not run loading scripts such as {scripts[0]}"
                problem += ": use Parquet files"
            raise NMTError(problem)
        # Files without a named split are all in "train", whichever split they contain.
        return {"path": "parquet", "data_files": files, "split": "train"}

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair]:
        import pyarrow as pa

        dataset = self.load(split)
        where = f"{self.where} ({self.subset})"
        try:
            for number, row in enumerate(translations_of(dataset), 1):
                try:
                    yield texts_of(row, self.data)
                except MalformedLine as error:
                    if self.data.errors == "strict":
                        place = f"{where}, {split}, row {number}"
                        advice = "check data.source and data.target, or pass data.errors=skip"
                        raise NMTError(f"{place}: {error}; {advice}") from error
                    dropped[error.counted_as] += 1
        # The files may be damaged, or lack the column `translation`; rows are read only now.
        except (pa.ArrowException, KeyError, ValueError, TypeError) as error:
            raise NMTError(f"{where}: cannot be read ({one_line(error)})") from error

    def digests(self) -> dict[str, str]:
        """Hashes of a local copy's files; for a dataset on the hub, its name and subset."""
        if not self.data.path:
            # A hash would need the whole download, even to recognize a corpus that is already
            # prepared.
            return {str(self.name): str(self.subset)}
        return file_digests(sorted(Path(self.data.path).glob(f"{self.subset}/*.parquet")))


def translations_of(dataset: Any) -> Iterator[Any]:
    """The values of the column `translation`."""
    for rows in dataset.iter(batch_size=ROWS_PER_BATCH):
        yield from rows["translation"]
