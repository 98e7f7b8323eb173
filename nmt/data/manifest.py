"""The manifest of a prepared corpus. Imports neither torch nor libraries that read the corpus."""

import hashlib
import json
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

from nmt.config import (
    IN_TRAINING,
    LANGUAGE,
    DataConfig,
    TokenizerConfig,
    build_stored,
    members_of,
    value_before,
    with_defaults,
)
from nmt.errors import NMTError
from nmt.files import (
    LARGE,
    check_version,
    foreign_files,
    parse_json,
    read_mapping,
    within,
    write_file,
)

FORMAT_VERSION = 4

MOST_NAMES = 5
"""The maximum number of corpora that a message names."""

DATA_OF_FORMAT = (
    "name",
    "kind",
    "source",
    "target",
    "train",
    "valid",
    "test",
    "valid_size",
    "test_size",
    "held_out_min_words",
    "errors",
    "path",
    "tag",
    "sources",
    "filters.min_words",
    "filters.max_words",
    "filters.max_tokens",
    "filters.max_ratio",
    "filters.drop_identical",
    "filters.deduplicate",
    "hub",
    "subset",
    "package",
    "version",
    "sha256",
)
"""The options of `data` when this format began, which are always part of the fingerprint.

Never add an option here: a later option is part of the fingerprint only where it changes the
corpus.
"""
TOKENIZER_OF_FORMAT = ("kind", "vocabulary_size", "sample", "normalization")
"""The same for `tokenizer`."""

NAMING_KEYS = (
    ("data", "kind"),
    ("data", "source"),
    ("data", "target"),
    ("tokenizer", "kind"),
)
"""Entries of `content` that name files, among other things."""

KEYS_OF_ALL_FORMATS = {"format_version", "fingerprint", "content", "counts", "tokenizer"}
"""Entries of every manifest, including those of older formats."""


def decisive(data: dict[str, Any]) -> dict[str, Any]:
    """The keys of `data` that affect the prepared corpus."""
    kept = {key: value for key, value in data.items() if key not in IN_TRAINING}
    if not isinstance(kept.get("sources"), list):
        return kept
    sources = []
    for source in kept["sources"]:
        # A manifest that somebody edited may list anything.
        sources.append(decisive(source) if isinstance(source, dict) else source)
    kept["sources"] = sources
    return kept


def without_added(
    cls: Any, tree: dict[str, Any], original: tuple[str, ...], group: str = ""
) -> dict[str, Any]:
    """A group's tree without options added later that keep the behavior from before they existed.

    `original` lists the options that are never left out. A corpus that was prepared before an
    option existed thus has the same fingerprint as one that was prepared with this value.
    """
    kept = dict(tree)
    for member in members_of(cls):
        name = member.name
        key = f"{group}{name}"
        # The options of an inline group are stored among those of this group.
        if "inline" in member.metadata:
            kept = without_added(member.type, kept, original, group)
        elif name not in kept or key in original:
            continue
        elif is_dataclass(member.type) and isinstance(kept[name], dict):
            kept[name] = without_added(member.type, kept[name], original, f"{key}.")
            # A group added later is left out if all its options keep the earlier behavior.
            if not kept[name]:
                del kept[name]
        elif kept[name] == value_before(member, tree):
            del kept[name]
    return kept


def fingerprint(content: dict[str, Any]) -> str:
    """SHA-256 of everything that determines the content of a prepared corpus."""
    tree = {"format_version": FORMAT_VERSION, **content}
    tree["data"] = without_added(DataConfig, decisive(content["data"]), DATA_OF_FORMAT)
    tree["tokenizer"] = without_added(TokenizerConfig, content["tokenizer"], TOKENIZER_OF_FORMAT)
    # Sorted, because the order of the options does not change the corpus.
    text = json.dumps(tree, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Manifest:
    """manifest.json of a prepared corpus."""

    format_version: int
    fingerprint: str
    content: dict[str, Any]
    """The configuration of data and tokenizer, the seed, and each source's SHA-256."""
    counts: dict[str, Any]
    """Split -> `Counts` as a mapping."""
    vocabulary_size: int
    tokenizer: str
    """SHA-256 of tokenizer.model."""
    versions: dict[str, str]
    characters: dict[str, str] | None = None
    """Maps each side to the characters of its training lines that a model can learn, and
    `files.RARE_LETTERS` to the letters of sources that occur too rarely for that. Each value is
    sorted. None if there are too many characters to record."""

    @classmethod
    def of(cls, content: dict[str, Any], *record: Any) -> "Manifest":
        return cls(FORMAT_VERSION, fingerprint(content), content, *record)

    @property
    def seen(self) -> dict[str, Any]:
        """Lengths and characters of the training pairs."""
        seen = {"lengths": self.counts["train"]["lengths"]}
        if self.characters is not None:
            seen["characters"] = self.characters
        return seen

    def write(self, folder: Path) -> None:
        write_file(folder / "manifest.json", json.dumps(vars(self), indent=2) + "\n")


@dataclass
class Counts:
    """The manifest's record of a split."""

    read: int
    dropped: dict[str, int]
    """Reason -> pairs."""
    kept: int
    tokens: dict[str, int]
    """Side -> tokens, end symbols included."""
    lengths: dict[str, dict[str, int]]
    """Side -> 99th percentile and maximum of the tokens per line, end symbol excluded."""
    in_train: int = 0
    """Pairs of this held-out set that also occur in the training text."""
    sources: dict[str, int] | None = None
    """Source -> pairs kept, in row order."""
    files: list[int] | None = None
    """The number of pairs in each file of a split that is divided; None for a single file."""
    borders: dict[str, list[int]] | None = None
    """Source of train -> ranges of lines, as first, last, first, last, ... None of these lines
    continues the line before it in the original text. None: not recorded by earlier versions."""


def advice_without_corpus(folder: Path) -> str:
    """Advice if a folder is not a prepared corpus; lists the prepared corpora next to it."""
    corpora = sorted(str(path.parent) for path in folder.parent.glob("*/manifest.json"))
    if not corpora:
        return "run `nmt preprocess`, or resume a run by its command"
    # A folder may contain hundreds of corpora, but a message is one line.
    names = ", ".join(corpora[:MOST_NAMES])
    if len(corpora) > MOST_NAMES:
        names += ", ..."
    return f"prepared corpora: {names}; `nmt preprocess` prepares another"


def read_manifest(folder: Path) -> Manifest:
    """The manifest of the corpus in `folder`; NMTError if it is missing or malformed."""
    path = folder / "manifest.json"
    if not path.is_file():
        raise NMTError(f"{folder}: no prepared corpus; {advice_without_corpus(folder)}")
    tree = read_mapping(path, parse_json, LARGE)
    check_version(
        path,
        tree.get("format_version"),
        FORMAT_VERSION,
        "prepare the corpus again with overwrite=true",
    )
    manifest = build_stored(Manifest, tree, str(path))
    # A manifest may come from other people. `counts` accepts any mapping, so each split is checked
    # here; its name may be of any length.
    for split, counts in manifest.counts.items():
        where = f"{path}, counts, {split[:20]}"
        check_files(build_stored(Counts, counts, where), where)
    if not is_plausible(manifest):
        raise NMTError(f"{path} was not written by `nmt preprocess`; prepare the corpus again")
    # The fingerprint stays: it identifies the corpus as it was prepared. The rest of nmt expects
    # options that were added since.
    for name, kind in (("data", DataConfig), ("tokenizer", TokenizerConfig)):
        manifest.content[name] = with_defaults(kind, manifest.content[name])
    return manifest


def check_files(counts: Counts, where: str) -> None:
    """Raise NMTError unless the pairs of the files of a split add up to its pairs."""
    rows = counts.files
    if rows is None:
        return
    if len(rows) < 2 or min(rows) < 1 or sum(rows) != counts.kept:
        raise NMTError(
            f"{where}, files: must be two or more positive numbers that add up to "
            f"kept={counts.kept}; prepare the corpus again"
        )


def is_plausible(manifest: Manifest) -> bool:
    """Whether `nmt preprocess` can have written what the types of the entries do not check."""
    for keys in NAMING_KEYS:
        # Such a name must not lead out of the folder, as "../x" would.
        name = within(manifest.content, *keys)
        if not isinstance(name, str) or not LANGUAGE.fullmatch(name):
            return False
    has_sources = isinstance(manifest.content.get("sources"), dict)
    # Ids are stored as int32.
    return has_sources and 0 < manifest.vocabulary_size < 2**31


def check_ours(
    folder: Path, advice: str = "move it out of the way, or pass prepared=FOLDER"
) -> None:
    """Raise NMTError unless a folder to be replaced is a prepared corpus and has no other files.

    The corpus may have any format.
    """
    path = folder / "manifest.json"
    keys = read_mapping(path, parse_json, LARGE).keys() if path.is_file() else set()
    if not keys >= KEYS_OF_ALL_FORMATS:
        raise NMTError(f"{folder} exists but is not a prepared corpus: {advice}")
    # Replacing the corpus deletes the folder, and with it files that a user put there.
    foreign = next(foreign_files(folder, "corpus"), None)
    if foreign:
        raise NMTError(
            f"{foreign} does not belong to the prepared corpus in {folder}, "
            f"which would be removed: {advice}"
        )
