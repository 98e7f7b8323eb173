"""The manifest of a prepared corpus: its sources, its configuration, and counts of its pairs."""

import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.config import IN_TRAINING, LANGUAGE, build, difference
from nmt.errors import NMTError
from nmt.files import LARGE, check_version, parse_json, read_mapping, write_file

FORMAT_VERSION = 2
TOKENIZER = "tokenizer.model"


def as_prepared(data: dict[str, Any]) -> dict[str, Any]:
    """The keys of `data` that decide what is prepared."""
    kept = {key: value for key, value in data.items() if key not in IN_TRAINING}
    if isinstance(entries := kept.get("sources"), list):
        kept["sources"] = [as_prepared(each) if isinstance(each, dict) else each for each in entries]
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
        known = {"lengths": self.counts["train"].get("lengths"), "characters": self.characters}
        return {key: value for key, value in known.items() if value is not None}

    @property
    def is_treebank(self) -> bool:
        """True if the targets are constituency trees."""
        return bool(self.content["data"]["kind"] == "treebank")

    def write(self, folder: Path) -> None:
        write_file(folder / "manifest.json", json.dumps(vars(self), indent=2) + "\n")

    def difference(self, content: dict[str, Any]) -> str:
        """The difference between the content of this corpus and another."""
        own, other = ({**each, "data": as_prepared(each["data"])} for each in (self.content, content))
        return difference(own, other) or "an older format"


@dataclass
class Counts:
    """`counts` of one split in a manifest; a split without pairs has no tokens."""

    read: int
    dropped: dict[str, int]
    kept: int = 0
    tokens: dict[str, int] = field(default_factory=dict)
    lengths: dict[str, dict[str, int]] | None = None
    in_train: int = 0
    sources: dict[str, int] | None = None
    """Pairs kept of each source, in the order of rows."""


def check(manifest: Manifest, where: str) -> None:
    """NMTError where an entry of a manifest's mappings that is used is missing or of another type."""
    for split, counts in manifest.counts.items():
        build(Counts, counts, f"{where}, counts, {split[:20]}")
    content = manifest.content
    for group, keys in (("data", ("kind", "source", "target")), ("tokenizer", ("kind",)), ("sources", ())):
        tree = content.get(group)
        if not isinstance(tree, dict) or not all(isinstance(tree.get(key), str) for key in keys):
            raise NMTError(f"{where}: content, {group} is not what `nmt preprocess` writes")
    for key in ("source", "target"):
        if not LANGUAGE.fullmatch(content["data"][key]):  # these name files
            raise NMTError(f"{where}: content, data, {key}={content['data'][key][:60]!r} is not a language code")
    if not 0 < manifest.vocabulary_size < 2**31:
        raise NMTError(f"{where}: vocabulary_size={manifest.vocabulary_size} is not a possible size")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the corpus prepared in `folder`; NMTError where there is none of this format."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise NMTError(f"{folder}: no prepared corpus there; run `nmt preprocess` with the same data=... first")
    tree = read_mapping(path, parse_json, LARGE)
    check_version(path, tree.get("format_version"), FORMAT_VERSION, "prepare the corpus again with overwrite=true")
    manifest = build(Manifest, tree, str(path))
    check(manifest, str(path))
    return manifest


OUR_FILES = re.compile(
    r"manifest\.json|tokenizer\.model|(valid|test)\.\w[\w.-]*"
    r"|(train|valid|test)/([\w-]+\.arrow|dataset_info\.json|state\.json)"
)


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
