"""`nmt preprocess`: write a corpus whole or not at all, by one process at a time; and the worker processes for it."""

import gc
import os
import re
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from multiprocessing import active_children, parent_process
from pathlib import Path
from typing import Any

from nmt.compat import close_answers
from nmt.config import ExperimentConfig, difference, require, sources_of, to_tree
from nmt.data import FORMAT_VERSION, TOKENIZER, Manifest, as_prepared, check_ours, fingerprint, read_manifest
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
from nmt.text import load_tokenizer


def begin() -> None:
    """Initialize a worker. Ctrl-C in a terminal reaches all processes, but the parent ends its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # inherited objects stay: the garbage collector need not scan them again and again

    def end_with_parent() -> None:
        parent_process().join()  # type: ignore[union-attr]
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def worker_pool(count: int, **options: Any) -> Iterator[ProcessPoolExecutor]:
    """A process pool for a block; if that ends by an exception, the workers are killed.

    `options` are those of the executor; another initializer must call `begin`.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(count, **{"initializer": begin, **options})
    try:
        yield pool
    except BaseException:
        for worker in set(active_children()) - others:
            worker.kill()
        close_answers(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def preprocess(config: ExperimentConfig, say: Say) -> tuple[Manifest, bool]:
    """Prepare the corpus of `config` in the folder `config.prepared`; its manifest, and False if it was there already.

    Raises NMTError if the folder holds another corpus, without `config.overwrite`, or anything else, or if another
    process prepares it.
    """
    corpora = [corpus_for(source.data) for source in sources_of(config.data)]
    fits = config.tokenizer.kind != "wordpiece" or not any(corpus.structured for corpus in corpora)
    require(fits, f"tokenizer.kind=wordpiece with data.kind={config.data.kind}: use tokenizer.kind=bpe or unigram")
    folder = Path(config.prepared)
    existing(config)  # before the sources are read, which takes time
    content = {
        **{"data": to_tree(config.data), "tokenizer": to_tree(config.tokenizer), "seed": config.seed},
        "sources": {name: mark for corpus in corpora for name, mark in corpus.digests().items()},
        **initial(config),
    }
    with only_process(folder, "prepared", replaced=True):
        if manifest := existing(config, content):
            return manifest, False
        remove_leftovers(folder.parent, re.escape(folder.name))
        trains = f"{folder}: a training uses this corpus; wait for its end, or pass data.name=OTHER"
        with locked_file(folder / TOKENIZER, True, trains), whole_folder(folder) as temporary:
            return prepare(config, content, temporary, say), True


def existing(config: ExperimentConfig, content: dict[str, Any] | None = None) -> Manifest | None:
    """The manifest of a corpus that is prepared already; NMTError if the folder holds another, or anything else."""
    folder = Path(config.prepared)
    if config.overwrite or not (folder / "manifest.json").is_file():
        check_replaceable(folder)
        if folder.exists():
            check_ours(folder)
        return None
    manifest = read_manifest(folder)
    if content is not None and manifest.content != content:
        old, new = ({**tree, "data": as_prepared(tree["data"])} for tree in (manifest.content, content))
        advice = "pass overwrite=true to replace it, or data.name=OTHER to keep both"
        changed = f"{folder} was prepared with another configuration ({difference(old, new)})"
        require(old == new, f"{changed}: {advice}")
        manifest.content = content  # with other keys that training alone reads
        manifest.write(folder)
    return manifest


def initial(config: ExperimentConfig) -> dict[str, Any]:
    """The vocabulary of the model in `init`; NMTError where it is not the one that was asked for, or of another use."""
    if config.init is None:
        require(config.tokenizer.kind != "marian", "tokenizer.kind=marian: it is not learnt; init=MODEL has one")
        return {}
    description = read_description(find_model_directory(config.init, "init"))
    same_use = is_parser(description) == (config.data.kind == "treebank")
    require(same_use, f"init={config.init}: a parser and a translator cannot learn from one another's corpora")
    changed = difference(tokenizer_settings(description), {**asdict(config.tokenizer), "sample": None})
    require(not changed, f"init={config.init} has another vocabulary ({changed}): leave tokenizer out")
    return {"init": {"tokenizer": description.tokenizer}}


def prepare(config: ExperimentConfig, content: dict[str, Any], folder: Path, say: Say) -> Manifest:
    """Prepare the corpus of `config` in an empty folder."""
    try:
        with worker_pool(config.workers) as pool:
            preparation = Preparation(config, folder, say, pool)
            preparation.run()
    except BrokenProcessPool as error:
        advice = "try workers=1, or less of tokenizer.sample and tokenizer.vocabulary_size"
        raise NMTError(f"a worker process died, out of memory perhaps: {advice}") from error
    versions = {name: version(name) for name in ("nmt-toolkit", "sentencepiece", "tokenizers", "datasets")}
    size, identity = load_tokenizer(folder / TOKENIZER).vocabulary_size, sha256(folder / TOKENIZER)
    record = preparation.counts, size, identity, versions, preparation.characters
    manifest = Manifest(FORMAT_VERSION, fingerprint(content), content, *record)
    manifest.write(folder)
    return manifest
