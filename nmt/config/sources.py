"""The sources of a mixture: corpora that are trained on together."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nmt.config.corpus import LANGUAGE, DataConfig
from nmt.config.fields import MISSING, as_list, build, number, require, shown, to_tree


@dataclass
class SourceConfig:
    """One of `data.sources`: an entry has these keys, and any key of `data` in which this corpus differs."""

    data: DataConfig
    name: str = MISSING
    """Its name in reports; by default its target language, if it has one of its own, or that of its training file."""
    weight: float = number(1.0, 1e-9, 1e9)
    """The corpus counts as if it were there this many times."""
    share: float | None = number(None, 1e-9, 1.0)
    """Its share of the sentences, instead of a weight; the other sources share the rest by their sizes and weights."""

    def __post_init__(self) -> None:
        require(
            self.share is None or self.weight == 1, f"share={self.share} and weight={self.weight}: one of them, please"
        )


OWN = ("name", "weight", "share")


def sources_of(data: DataConfig) -> list[SourceConfig]:
    """The sources of a corpus; without `data.sources`, the corpus itself."""
    if not data.sources:
        return [SourceConfig(data, data.name)]
    require(
        isinstance(data.sources, list), "data.sources: a list of sources, as [{train: corpus/a}, {train: corpus/b}]"
    )
    # A validation or test set of all of them is that of the first one.
    parts = [source_of(without_held_out(data) if index else data, entry) for index, entry in enumerate(data.sources)]
    names = [source.name for source in parts]
    require(
        len(set(names)) == len(names), f"data.sources: two are called {max(names, key=names.count)}; give each a name"
    )
    targets = {source.data.target for source in parts}
    untagged = [source.name for source in parts if not source.data.tag]
    require(
        len(targets) == 1 or not untagged,
        f"data.sources: {', '.join(sorted(targets))} are several targets, so each source needs a tag, such as <2de>; "
        f"{', '.join(untagged[:5])} has none",
    )
    taken = sum(source.share or 0 for source in parts if source.share is not None)
    require(taken <= 1, f"data.sources: their shares are {taken:g} together")
    return parts


def held_out_name(data: DataConfig, number: int, source: SourceConfig, split: str) -> str:
    """The name of a set that is read with the source of that number: "all" if `data` gives it for all of them."""
    of_all = number == 0 and data.sources and split not in data.sources[0] and getattr(data, split)
    return "all" if of_all else source.name


def without_held_out(data: DataConfig) -> DataConfig:
    """The same, without the sets that `data` gives."""
    valid, test = (0 if given else size for given, size in ((data.valid, data.valid_size), (data.test, data.test_size)))
    return replace(data, valid=None, test=None, valid_size=valid, test_size=test)


def source_of(data: DataConfig, entry: Any) -> SourceConfig:
    """The source of an entry of `data.sources`."""
    require(isinstance(entry, dict), f"data.sources: {entry!r:.60} is not a mapping, such as {{train: corpus/a}}")
    train = as_list(entry.get("train"))
    of_file = re.sub(r"[^\w-]", "_", Path(train[0]).name.partition(".")[0])[:50] if train else ""
    name = entry.get("name") or entry.get("target") or of_file or data.target
    where = f"data.sources, {shown(name)}"
    tree = to_tree(data) | {"sources": [], "temperature": 1.0}
    of_data = [key for key in tree if key not in ("name", "sources", "temperature")]
    for key in entry.keys() - OWN:
        require(key in of_data, f"data.sources: unknown key {key!r:.40}; there are {', '.join((*OWN, *of_data))}")
        # A group has only the keys that differ.
        both = isinstance(tree.get(key), dict) and isinstance(entry[key], dict)
        tree[key] = tree[key] | entry[key] if both else entry[key]
    keys = {key: value for key, value in entry.items() if key in OWN}
    source = build(SourceConfig, {**keys, "data": build(DataConfig, tree, where), "name": name}, where)
    require(bool(LANGUAGE.fullmatch(source.name)), f"{where}: name: it needs letters, digits, '-', '_' and '.'")
    return source
