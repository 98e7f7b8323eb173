"""The manifest of a prepared corpus: what it was made from, how, and what came of it."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.errors import NMTError

FORMAT_VERSION = 2


def flatten(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """{"a": {"b": 1}} -> {"a.b": 1}."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The keys in which two trees differ, as "key: old -> new", at most four of them."""
    old, new = flatten(old), flatten(new)
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    shown = [f"{key}: {old.get(key)} -> {new.get(key)}" for key in keys[:4]]
    return ", ".join(shown) + (f" and {len(keys) - 4} more" if len(keys) > 4 else "")


def fingerprint(content: dict[str, Any]) -> str:
    """SHA-256 of everything that decides a prepared corpus's content."""
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

    `lengths` are tokens of the kept lines, without the end symbol, by side: of the 99th percentile, and of the longest.
    """
    vocabulary_size: int
    tokenizer: str
    """SHA-256 of tokenizer.model."""
    versions: dict[str, str]
    characters: dict[str, str] | None = None
    """Those of the training pairs by side, in order; None where they are not known."""

    @property
    def seen(self) -> dict[str, Any]:
        """What is known of the training pairs, by which a model knows what it cannot know."""
        known = {"lengths": self.counts["train"].get("lengths"), "characters": self.characters}
        return {key: value for key, value in known.items() if value is not None}

    @property
    def is_treebank(self) -> bool:
        """Whether the targets are constituency trees."""
        return bool(self.content["data"]["kind"] == "treebank")

    def write(self, folder: Path) -> None:
        (folder / "manifest.json").write_text(json.dumps(vars(self), indent=2) + "\n", encoding="utf-8")

    def difference(self, content: dict[str, Any]) -> str:
        """How `content` differs from what this corpus was made from."""
        return difference(self.content, content) or "an older format"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the corpus prepared in `folder`; NMTError where there is none, or one of another format."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise NMTError(f"{folder}: no prepared corpus there; run `nmt preprocess` with the same data=... first")
    tree = json.loads(path.read_text(encoding="utf-8"))
    if tree.get("format_version") != FORMAT_VERSION:
        raise NMTError(
            f"{path}: format version {tree.get('format_version')}, but this nmt reads {FORMAT_VERSION}: "
            "prepare the corpus again with overwrite=true"
        )
    return Manifest(**tree)
