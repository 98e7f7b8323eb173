"""`nmt preprocess`: a prepared corpus is whole or not there, and one process at a time makes it."""

import re
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import filelock

from nmt.config import ExperimentConfig
from nmt.data.manifest import FORMAT_VERSION, Manifest, check_ours, fingerprint, read_manifest
from nmt.errors import NMTError
from nmt.preparation.corpora import sources
from nmt.preparation.preparation import Preparation, Say
from nmt.preparation.workers import ended_by_sigterm, worker_pool
from nmt.storage.whole import cannot_write, check_replaceable, remove_leftovers, whole_folder
from nmt.text.tokenizers import load_tokenizer, tokenizer_fingerprint


def check_folder(config: ExperimentConfig) -> None:
    """NMTError, before any work, where the folder is neither free, nor a corpus that can be used or replaced."""
    folder = Path(config.prepared)
    if not folder.exists():
        check_replaceable(folder)
    elif not (folder / "manifest.json").is_file():
        raise NMTError(f"{folder} is there already, but no prepared corpus: pass prepared=FOLDER, or move it away")
    elif config.overwrite:
        check_replaceable(folder)
        check_ours(folder)
    else:
        read_manifest(folder)


def prepared_already(config: ExperimentConfig, content: dict[str, Any]) -> Manifest | None:
    """The manifest of the corpus that is there; None where it is to be made; NMTError where it is another one."""
    folder = Path(config.prepared)
    check_folder(config)
    if config.overwrite or not folder.exists():
        return None
    there = read_manifest(folder)
    if there.fingerprint != fingerprint(content):
        raise NMTError(
            f"{folder} was prepared with another configuration ({there.difference(content)}): "
            "pass overwrite=true to replace it, or data.name=OTHER to keep both"
        )
    return there


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Within the block no other process prepares this folder; NMTError where one does already.

    What killed ones left there is removed.
    """
    path = folder.with_name(f".{folder.name}.lock")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # A second is what the workers of one that was killed take at most to end, too.
        with filelock.FileLock(path, timeout=1):
            remove_leftovers(folder.parent, re.escape(folder.name))
            yield
    except filelock.Timeout as error:
        raise NMTError(f"{folder} is being prepared by another process: wait for it, or pass prepared=OTHER") from error
    except OSError as error:
        raise cannot_write(folder, error) from error


def preprocess(config: ExperimentConfig, say: Say) -> tuple[Manifest, bool]:
    """Prepare the corpus of `config` in the folder `config.prepared`, or do nothing where that is done already.

    Gives the manifest, and whether anything was done; `say` is told of the progress. Raises NMTError where the folder
    holds another preparation and not `config.overwrite`, or anything else, or another process prepares it.
    """
    if config.data.kind == "treebank" and config.tokenizer.kind == "wordpiece":
        raise NMTError(
            "tokenizer.kind=wordpiece with data.kind=treebank: brackets need a vocabulary of kind bpe or unigram"
        )
    folder = Path(config.prepared)
    with ended_by_sigterm():
        check_folder(config)
        content = {
            "data": asdict(config.data),
            "tokenizer": asdict(config.tokenizer),
            "seed": config.seed,
            "sources": sources(config.data),
        }
        if there := prepared_already(config, content):
            return there, False
        with claimed(folder):
            if there := prepared_already(config, content):
                return there, False
            with whole_folder(folder) as temporary:
                manifest = prepare(config, content, temporary, say)
            return manifest, True


def prepare(config: ExperimentConfig, content: dict[str, Any], folder: Path, say: Say) -> Manifest:
    """Prepare the corpus of `config` in an empty folder."""
    try:
        with worker_pool(config.workers) as pool:
            preparation = Preparation(config, folder, say, pool)
            preparation.run()
    except BrokenProcessPool as error:
        raise NMTError(
            "a worker process died, out of memory perhaps: try workers=1, or less of tokenizer.sample and "
            "tokenizer.vocabulary_size"
        ) from error
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        fingerprint=fingerprint(content),
        content=content,
        counts=preparation.counts,
        vocabulary_size=load_tokenizer(folder / "tokenizer.model").vocabulary_size,
        tokenizer=tokenizer_fingerprint(folder / "tokenizer.model"),
        versions={name: version(name) for name in ("nmt-toolkit", "sentencepiece", "tokenizers", "datasets")},
        characters=preparation.characters,
    )
    manifest.write(folder)
    return manifest
