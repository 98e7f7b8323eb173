"""Sentence pairs from a dataset on the Hugging Face hub, or from a local copy."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.config import DataConfig, NMTError, one_line, require
from nmt.preparation import Corpus, file_digests
from nmt.text import MalformedLine, Pair, texts_of

SPLITS = {"train": "train", "valid": "validation", "test": "test"}


class Hub(Corpus):
    """A dataset with a `translation` column, such as wmt/wmt14."""

    def __init__(self, data: DataConfig) -> None:
        super().__init__(data)
        self.name, self.subset = data.plugins["hub"].hub, data.plugins["hub"].subset

    def load(self, split: str) -> Any:
        options: dict[str, Any] = {
            "path": str(self.name),
            "name": self.subset,
            "split": SPLITS[split],
        }
        if self.data.path:
            # The datasets library would read any file that the folder's README.md names, even outside the folder.
            pattern = f"{self.subset}/{SPLITS[split]}-*.parquet"
            files = sorted(map(str, Path(self.data.path).glob(pattern)))
            scripts = sorted(file.name for file in Path(self.data.path).glob("*.py"))
            advice = ""
            if scripts:
                advice = (
                    f"; nmt does not run loading scripts such as {scripts[0]}: use Parquet files"
                )
            require(bool(files), f"data.path={self.data.path}: no files match {pattern}{advice}")
            options = {"path": "parquet", "data_files": files, "split": "train"}
        import datasets

        try:
            return datasets.load_dataset(**options)
        except (
            Exception
        ) as error:  # datasets, huggingface_hub, httpx and fsspec each raise their own errors
            raise NMTError(
                f"cannot load {self.data.path or self.name} ({self.subset}, {SPLITS[split]}): {one_line(error)}; "
                "pass data.path=FOLDER to use a local copy, or use data=files"
            ) from error

    def read(self, split: str, dropped: Counter[str]) -> Iterator[Pair]:
        import pyarrow as pa

        dataset, where = self.load(split), f"{self.data.path or self.name} ({self.subset})"
        try:
            rows = (row for rows in dataset.iter(batch_size=1000) for row in rows["translation"])
            for number, row in enumerate(rows, 1):
                try:
                    yield texts_of(row, self.data)
                except MalformedLine as error:
                    advice = "check data.source and data.target, or pass data.errors=skip"
                    require(
                        self.data.errors != "strict",
                        f"{where}, {split}, row {number}: {error}; {advice}",
                    )
                    dropped[error.counted_as] += 1
        except (pa.ArrowException, KeyError, ValueError, TypeError) as error:
            raise NMTError(f"{where}: cannot be read ({one_line(error)})") from error

    def digests(self) -> dict[str, str]:
        """Hashes of a local copy's files; a dataset on the hub is identified by its name and subset instead."""
        if not self.data.path:
            return {str(self.name): str(self.subset)}
        return file_digests(sorted(Path(self.data.path).glob(f"{self.subset}/*.parquet")))
