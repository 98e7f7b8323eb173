"""The sources of a mixed corpus: entries of `data.sources`, each with its own values of `data`."""

import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nmt.config.building import build
from nmt.config.corpus import DIRECTION, LANGUAGE, MULTIPLE, DataConfig
from nmt.config.fields import MISSING, number
from nmt.config.members import to_tree
from nmt.config.suggestions import nearest
from nmt.errors import NMTError, require

OF_SOURCE = ("name", "weight", "share")
"""Keys that only entries of `data.sources` have."""
OF_MIXTURE = ("sources", "temperature")
"""Keys that entries of `data.sources` do not have."""


@dataclass
class SourceConfig:
    """An entry of `data.sources`.

    It has these keys, and any keys of `data` whose values differ for this source.
    """

    data: DataConfig
    name: str = MISSING
    """Name in reports; default: the entry's target language or the name of its training file."""
    weight: float = number(1.0, 1e-9, 1e9)
    """Factor by which to multiply this source's number of pairs when the sources' shares are
    computed."""
    share: float | None = number(None, 1e-9, 1.0)
    """Fraction of training pairs to take from this source; replaces weight. Sources without a share
    split the rest."""

    def __post_init__(self) -> None:
        if self.share is not None and self.weight != 1:
            raise NMTError(f"share={self.share} and weight={self.weight}: give only one")


def sources_of(data: DataConfig) -> list[SourceConfig]:
    """The sources of a corpus; if `data.sources` is empty, only the corpus itself."""
    if not data.sources:
        return [SourceConfig(data, data.name)]
    # The type of the key is Any, so it has not been checked yet.
    if not isinstance(data.sources, list):
        raise NMTError("data.sources: must be a list, such as [{train: a}, {train: b}]")
    first, *later = data.sources
    without_held_out = without_shared_sets(data)
    sources = [source_of(data, first)]
    sources += [source_of(without_held_out, entry) for entry in later]
    check_names(sources)
    # Added one after another, 0.56, 0.34 and 0.1 exceed 1 before Python 3.12.
    shares = math.fsum(source.share or 0 for source in sources)
    require(shares <= 1, f"data.sources: the shares add up to {shares:g}, which is more than 1")
    return sources


def without_shared_sets(data: DataConfig) -> DataConfig:
    """The keys of all sources after the first one, which uses the held-out sets for all sources."""
    # Size 0, because with an empty `valid` alone, a set would be drawn from the source's own train.
    sizes: dict[str, Any] = {}
    if data.valid:
        sizes["valid_size"] = 0
    if data.test:
        sizes["test_size"] = 0
    return replace(data, valid=[], test=[], **sizes)


def check_names(sources: list[SourceConfig]) -> None:
    # Reports and held-out sets are found by the name of their source.
    names = [source.name for source in sources]
    common = max(names, key=names.count)
    if names.count(common) > 1:
        raise NMTError(f"data.sources: two are named {common}; give each its own name")


def check_targets_are_tagged(data: DataConfig) -> None:
    """Raise NMTError if nothing tells the model which of several target languages to use."""
    sources = sources_of(data)
    targets = sorted({source.data.target for source in sources})
    untagged = [source.name for source in sources if not source.data.tag]
    if len(targets) > 1 and untagged:
        raise NMTError(
            f"data.sources: with target languages {', '.join(targets)}, each source needs a tag, "
            f"such as <2de>; missing for {', '.join(untagged[:5])}"
        )


def languages_of(data: DataConfig) -> tuple[str, str]:
    """The source and target language of a corpus, for the model that is trained on it.

    If tags name the languages of both sides, they are those of the tags, or MULTIPLE for several.
    """
    directions = [DIRECTION.fullmatch(source.data.tag or "") for source in sources_of(data)]
    matches = [direction for direction in directions if direction]
    if not matches:
        return data.source, data.target
    sources = {match["source"] for match in matches}
    targets = {match["target"] for match in matches}
    return (
        sources.pop() if len(sources) == 1 else MULTIPLE,
        targets.pop() if len(targets) == 1 else MULTIPLE,
    )


def source_of(data: DataConfig, entry: Any) -> SourceConfig:
    """Build the source that an entry of `data.sources` describes."""
    if not isinstance(entry, dict):
        raise NMTError(f"data.sources: {entry!r:.60} is not a mapping, such as {{train: corpus/a}}")
    # Checked first, because every message below names the source.
    name = entry.get("name") or default_name(data, entry)
    where = f"data.sources, {name!s:.60}"
    tree = to_tree(data)
    keys = [key for key in tree if key not in ("name", *OF_MIXTURE)]
    # Each source is built as a separate corpus, which must not be a mixture again.
    tree |= {"sources": [], "temperature": 1.0}
    of_source: dict[str, Any] = {}
    for key, value in entry.items():
        if key in OF_SOURCE:
            of_source[key] = value
        # Before `build`, whose message would name the key as one of a whole corpus.
        elif key not in keys:
            near = nearest(str(key), [*OF_SOURCE, *keys])
            raise NMTError(f"data.sources: unknown key {key!s:.60}; {near}")
        # A group such as filters: the entry gives the keys that differ, and the rest stays.
        elif isinstance(tree[key], dict) and isinstance(value, dict):
            tree[key] = {**tree[key], **value}
        else:
            tree[key] = value
    corpus = build(DataConfig, tree, where)
    source = build(SourceConfig, {**of_source, "data": corpus, "name": name}, where)
    # The name is part of the names of files, such as valid.NAME.en.
    if not LANGUAGE.fullmatch(source.name):
        raise NMTError(f"{where}: name: use only letters, digits, '-', '_' and '.'")
    return source


def default_name(data: DataConfig, entry: dict[str, Any]) -> Any:
    """The target language or the name of the first training file, without its suffixes."""
    if entry.get("target"):
        return entry["target"]
    train = entry.get("train") or ""
    first = train[0] if isinstance(train, list) else train
    file_name = Path(str(first)).name.partition(".")[0]
    # At most 50 letters, as LANGUAGE allows.
    return re.sub(r"[^\w-]", "_", file_name)[:50] or data.target


def held_out_name(data: DataConfig, number: int, source: SourceConfig, split: str) -> str:
    """The name of the held-out set that source `number` uses; "all" if all sources share the set.

    Only the first source holds the pairs of a shared set.
    """
    is_first_of_several = number == 0 and data.sources
    # An entry that names its own set, even the first entry, does not share that set.
    if is_first_of_several and split not in data.sources[0] and getattr(data, split):
        return "all"
    return source.name
