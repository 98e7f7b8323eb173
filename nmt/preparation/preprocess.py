"""`nmt preprocess`: write a corpus whole or not at all, by one process at a time."""

import re
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from nmt.config import ExperimentConfig, difference, require, sources_of, to_tree
from nmt.data import FORMAT_VERSION, TOKENIZER, Manifest, check_ours, fingerprint, read_manifest
from nmt.errors import NMTError
from nmt.files import (
    check_replaceable,
    find_model_directory,
    is_parser,
    locked_file,
    only_process,
    read_description,
    remove_leftovers,
    sha256,
    tokenizer_settings,
    whole_folder,
)
from nmt.preparation.corpora import corpus_for
from nmt.preparation.preparation import Preparation
from nmt.preparation.reading import Say
from nmt.preparation.workers import ended_by_sigterm, worker_pool
from nmt.text import load_tokenizer


def check_folder(config: ExperimentConfig) -> Manifest | None:
    """The manifest of an existing corpus that may be used; None if one is to be prepared.

    Raises NMTError if the folder holds anything else.
    """
    folder = Path(config.prepared)
    if not folder.exists():
        check_replaceable(folder)
    elif not (folder / "manifest.json").is_file():
        raise NMTError(f"{folder} is there already, but no prepared corpus: pass prepared=FOLDER, or move it away")
    elif config.overwrite:
        check_replaceable(folder)
        check_ours(folder)
    else:
        return read_manifest(folder)
    return None


def prepared_already(config: ExperimentConfig, content: dict[str, Any]) -> Manifest | None:
    """The manifest of the corpus if it is prepared already, or None; NMTError if another corpus is there."""
    there = check_folder(config)
    if there and there.fingerprint != fingerprint(content):
        raise NMTError(
            f"{config.prepared} was prepared with another configuration ({there.difference(content)}): "
            "pass overwrite=true to replace it, or data.name=OTHER to keep both"
        )
    if there and there.content != content:  # in keys that training alone reads
        there.content = content
        there.write(Path(config.prepared))
    return there


def preprocess(config: ExperimentConfig, say: Say) -> tuple[Manifest, bool]:
    """Prepare the corpus of `config` in the folder `config.prepared`, unless that is done already.

    Returns the manifest, and True if anything was done; `say` is called with the progress. Raises NMTError if the
    folder holds another corpus, without `config.overwrite`, or anything else, or if another process prepares it.
    """
    corpora = [corpus_for(source.data) for source in sources_of(config.data)]
    if config.tokenizer.kind == "wordpiece" and any(corpus.structured for corpus in corpora):
        raise NMTError(f"tokenizer.kind=wordpiece with data.kind={config.data.kind}: use tokenizer.kind=bpe or unigram")
    folder = Path(config.prepared)
    with ended_by_sigterm():
        check_folder(config)  # before the sources are read, which takes time
        content = {
            "data": to_tree(config.data),
            "tokenizer": to_tree(config.tokenizer),
            "seed": config.seed,
            "sources": {name: mark for corpus in corpora for name, mark in corpus.digests().items()},
            **initial(config),
        }
        if there := prepared_already(config, content):
            return there, False
        with only_process(folder, "prepared", replaced=True):
            if there := prepared_already(config, content):  # another process was faster
                return there, False
            remove_leftovers(folder.parent, re.escape(folder.name))
            trains = f"{folder}: a training uses this corpus; wait for its end, or pass data.name=OTHER"
            with locked_file(folder / TOKENIZER, True, trains), whole_folder(folder) as temporary:
                return prepare(config, content, temporary, say), True


def initial(config: ExperimentConfig) -> dict[str, Any]:
    """The vocabulary of the model in `init`; NMTError where it is not the one that was asked for, or of another use."""
    if config.init is None:
        require(config.tokenizer.kind != "marian", "tokenizer.kind=marian: it is not learnt; init=MODEL has one")
        return {}
    folder = find_model_directory(config.init, "init")
    description, tokenizer = read_description(folder), config.tokenizer
    if is_parser(description) != (config.data.kind == "treebank"):
        raise NMTError(f"init={config.init}: a parser and a translator cannot learn from one another's corpora")
    given = {**asdict(tokenizer), "sample": None}
    if changed := difference(tokenizer_settings(description), given):
        raise NMTError(f"init={config.init} has another vocabulary ({changed}): leave tokenizer out")
    return {"init": {"tokenizer": description.tokenizer}}


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
    tokenizer = folder / TOKENIZER
    manifest = Manifest(
        format_version=FORMAT_VERSION,
        fingerprint=fingerprint(content),
        content=content,
        counts=preparation.counts,
        vocabulary_size=load_tokenizer(tokenizer).vocabulary_size,
        tokenizer=sha256(tokenizer),
        versions={name: version(name) for name in ("nmt-toolkit", "sentencepiece", "tokenizers", "datasets")},
        characters=preparation.characters,
    )
    manifest.write(folder)
    return manifest
