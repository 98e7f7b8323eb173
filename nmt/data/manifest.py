"""The manifest of a prepared corpus: its sources, its configuration, and counts of its pairs."""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.config import IN_TRAINING, LANGUAGE, build, difference
from nmt.errors import NMTError
from nmt.files import LARGE, check_version, parse_json, read_mapping, write_file

FORMAT_VERSION = 3
TOKENIZER = "tokenizer.model"


def as_prepared(data: dict[str, Any]) -> dict[str, Any]:
    """The keys of `data` that decide what is prepared."""
    kept = {key: value for key, value in data.items() if key not in IN_TRAINING}
    sources = kept.get("sources")
    if isinstance(sources, list):
        kept["sources"] = [as_prepared(source) if isinstance(source, dict) else source for source in sources]
    return kept


def fingerprint(content: dict[str, Any]) -> str:
    """SHA-256 of everything that determines the content of a prepared corpus."""
    content = {**content, "data": as_prepared(content["data"])}
    text = json.dumps({"format_version": FORMAT_VERSION, **content}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Manifest:
    """`manifest.json` of a prepared corpus."""

    format_version: int
    fingerprint: str
    content: dict[str, Any]
    """The configuration of data and tokenizer, the seed, and the SHA-256 of the sources."""
    counts: dict[str, Any]
    """For each split: pairs read, dropped (by reason) and kept, and tokens, end symbols included.

    `lengths` are tokens of the kept lines, without the end symbol, for each side: the 99th percentile and the longest.
    """
    vocabulary_size: int
    tokenizer: str
    """SHA-256 of tokenizer.model."""
    versions: dict[str, str]
    characters: dict[str, str] | None = None
    """Characters of the training pairs for each side, sorted; None where they are not known."""

    @property
    def seen(self) -> dict[str, Any]:
        """Lengths and characters of the training pairs, for warnings about input beyond them."""
        characters = {} if self.characters is None else {"characters": self.characters}
        return {"lengths": self.counts["train"]["lengths"], **characters}

    @property
    def is_treebank(self) -> bool:
        """True if the targets are constituency trees."""
        return bool(self.content["data"]["kind"] == "treebank")

    def write(self, folder: Path) -> None:
        write_file(folder / "manifest.json", json.dumps(vars(self), indent=2) + "\n")

    def difference(self, content: dict[str, Any]) -> str:
        """The difference between the content of this corpus and another."""
        old, new = ({**tree, "data": as_prepared(tree["data"])} for tree in (self.content, content))
        return difference(old, new)


@dataclass
class Counts:
    """`counts` of one split in a manifest; a split without pairs has no tokens."""

    read: int
    dropped: dict[str, int]
    kept: int
    tokens: dict[str, int]
    lengths: dict[str, dict[str, int]]
    in_train: int = 0
    sources: dict[str, int] | None = None
    """Pairs kept of each source, in the order of rows."""


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the corpus prepared in `folder`; NMTError where there is none of this format."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise NMTError(f"{folder}: no prepared corpus there; run `nmt preprocess` with the same data=... first")
    tree = read_mapping(path, parse_json, LARGE)
    check_version(path, tree.get("format_version"), FORMAT_VERSION, "prepare the corpus again with overwrite=true")
    manifest = build(Manifest, tree, str(path))
    for split, counts in manifest.counts.items():
        build(Counts, counts, f"{path}, counts, {split[:20]}")
    content = manifest.content
    keys = (("data", "kind"), ("data", "source"), ("data", "target"), ("tokenizer", "kind"))
    names = [content[group].get(key) if isinstance(content.get(group), dict) else None for group, key in keys]
    # The languages name files.
    valid = all(isinstance(name, str) and LANGUAGE.fullmatch(name) for name in names)
    if not valid or not isinstance(content.get("sources"), dict) or not 0 < manifest.vocabulary_size < 2**31:
        raise NMTError(f"{path}: not what `nmt preprocess` writes; prepare the corpus again")
    return manifest


OUR_FILES = re.compile(r"manifest\.json|tokenizer\.model|(valid|test)\.\w[\w.-]*|(train|valid|test)/[\w-]+\.arrow")


def check_ours(folder: Path) -> None:
    """NMTError unless a folder that is to be replaced holds a prepared corpus, of any format, and nothing else."""
    advice = "move it away, or pass prepared=FOLDER"
    try:
        keys = set(read_mapping(folder / "manifest.json", parse_json, LARGE))
    except NMTError:
        keys = set()
    if not {"format_version", "fingerprint", "content", "counts", "tokenizer"} <= keys:
        raise NMTError(f"{folder} is there already, but no prepared corpus: {advice}")
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        ours = name in ("train", "valid", "test") if path.is_dir() else path.is_file() and OUR_FILES.fullmatch(name)
        if path.is_symlink() or not ours:
            raise NMTError(f"{path} is not of the prepared corpus in {folder}, which is to be replaced: {advice}")
