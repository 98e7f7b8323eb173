"""What is compared: systems, each of one or several seeds, and the test set that all of them translate."""

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.data import read_manifest
from nmt.errors import NMTError
from nmt.files import find_model_directory, is_exported, is_parser, read_description, within
from nmt.plugins.report.run import find_corpus
from nmt.text import language_of_file, not_parallel, read_texts

if TYPE_CHECKING:
    from nmt.data import PreparedCorpus

GROUP = re.compile(r"(?P<name>[\w.+-]+)=\[(?P<members>.*)\]")
"""Several seeds of one system, NAME=[A,B]."""


@dataclass
class System:
    """A system to compare: one model or file of translations, or several that differ in their seed alone."""

    name: str
    members: list[str]
    """Runs, model directories, exported models or files of translations."""


@dataclass
class TestSet:
    """The lines that all systems translate."""

    name: str
    sources: list[str] | None
    """None where only the references are known."""
    references: list[str]
    corpus: "PreparedCorpus | None" = None
    """The prepared corpus that it is of."""
    language: str | None = None
    """Of the references, where it is known."""

    __test__ = False  # it is none of pytest's


def read_systems(texts: list[str]) -> list[System]:
    """The systems that words name: a path, or NAME=[A,B]; NMTError for fewer than two, and for one named twice."""
    groups = [(GROUP.fullmatch(text), text) for text in texts]
    paths = short_names([text for found, text in groups if not found])
    systems = [
        System(found["name"], [part.strip() for part in found["members"].split(",")])
        if found
        else System(paths[text], [text])
        for found, text in groups
    ]
    if len(systems) < 2:
        raise NMTError("systems: two are needed, or more: `nmt compare runs/new runs/old`")
    for kind, names in (
        ("file or folder", [member for system in systems for member in system.members]),
        ("name", [system.name for system in systems]),
    ):
        name, count = Counter(names).most_common(1)[0]
        if count > 1:
            raise NMTError(f"{name}: this {kind} is given twice; leave one out")
    for member in (member for system in systems for member in system.members):
        check_member(member)
    return systems


def short_names(paths: list[str]) -> dict[str, str]:
    """The ends of paths, of as many parts as it takes to tell them apart: runs/new and runs/old are new and old."""
    parts = [Path(path).parts for path in paths]
    for count in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(each[-count:]) for each in parts]
        if len(set(names)) == len(set(paths)):
            return dict(zip(paths, names, strict=True))
    return {path: path for path in paths}


def check_member(member: str) -> None:
    """NMTError where there is no such model or file, or it is a parser."""
    path = Path(member)
    if not member or not path.exists():
        raise NMTError(f"{member or 'an empty name'}: no such file or folder; a system is a run, a model or a text")
    if path.is_dir() and is_parser(read_description(model_folder(member))):
        raise NMTError(f"{member}: a parser; `nmt score metrics=[brackets]` scores its trees")


def is_model(member: str) -> bool:
    return Path(member).is_dir()


def model_folder(member: str) -> Path:
    """The model directory of a run, or the folder of a model, exported or not; NMTError where there is none."""
    folder = Path(member)
    return folder if is_exported(folder) else find_model_directory(member, "systems")


def read_test_set(first: str, source: str | None, reference: str | None, prepared: str | None, split: str) -> TestSet:
    """The test set: two files, or that of the first system's corpus; NMTError where there is none."""
    if reference is None and source is None:
        return held_out(first, prepared, split)
    if reference is None:
        raise NMTError(f"source={source}: give its reference translations too, as reference=FILE")
    references = list(read_texts(reference))
    sources = list(read_texts(source)) if source else None
    if sources is not None and len(sources) != len(references):
        raise not_parallel((str(source), reference), (len(sources), len(references)))
    if not references:
        raise NMTError(f"reference={reference}: is empty")
    corpus = corpus_of(first, prepared) if prepared else None
    return TestSet(reference, sources, references, corpus, language_of_file(reference))


def corpus_of(first: str, prepared: str | None) -> "PreparedCorpus":
    """The prepared corpus in a folder, or the one that a model was trained on; NMTError where there is none."""
    from nmt.data import PreparedCorpus  # which takes the seconds of torch

    if not prepared and not is_model(first):
        raise NMTError(f"{first}: of no run, whose test set could be taken; pass source=FILE reference=FILE")
    training = read_description(model_folder(first)).training if is_model(first) else {}
    named = within(training, "config", "prepared")
    if not prepared and not isinstance(named, str):
        raise NMTError(f"{first} does not say what it was trained on; pass source=FILE reference=FILE")
    found = Path(prepared) if prepared else find_corpus(model_folder(first), str(named))
    try:
        manifest = read_manifest(found)
    except NMTError as error:
        raise NMTError(f"{error}; pass prepared=FOLDER where it lies, or source=FILE reference=FILE") from error
    if not prepared and training.get("corpus") not in (None, manifest.fingerprint):
        raise NMTError(
            f"{found} holds another corpus than the one that {first} was trained on; pass prepared=FOLDER where that "
            "lies, or source=FILE reference=FILE"
        )
    return PreparedCorpus(found, manifest)


def held_out(first: str, prepared: str | None, split: str) -> TestSet:
    """A held-out set of the first system's corpus."""
    corpus = corpus_of(first, prepared)
    if corpus.manifest.is_treebank:
        raise NMTError(f"{corpus.folder}: a treebank; translations are compared, with source=FILE reference=FILE")
    name = {"valid": "validation", "test": "test"}[split]
    if not corpus.manifest.counts.get(split, {}).get("kept"):
        raise NMTError(
            f"split={split}: {corpus.folder} holds no {name} set; pass split=valid, or source= and reference="
        )
    sources, references = corpus.text(split)
    return TestSet(f"{name} set of {corpus.folder}", sources, references, corpus, corpus.target_language)
