"""The sources of a mixture: corpora that are trained on together."""

import re
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, cast

from nmt.config.corpus import LANGUAGE, DataConfig
from nmt.config.rules import MISSING, as_list, check_numbers, number, require, shown
from nmt.errors import NMTError


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
    start: int = number(0, 0, 10**9)
    """The first update that it is used in, counted from 0."""
    stop: int | None = number(None, 1, 10**9)
    """The update from which on it is not used any more; null: it is used until the end."""

    def __post_init__(self) -> None:
        check_numbers(self)
        require(self.stop is None or self.start < self.stop, f"stop={self.stop} is not after start={self.start}")
        require(
            self.share is None or self.weight == 1, f"share={self.share} and weight={self.weight}: one of them, please"
        )


OWN = tuple(each.name for each in fields(SourceConfig) if each.name != "data")
OF_DATA = tuple(each.name for each in fields(DataConfig) if each.name not in ("name", "sources", "temperature"))


def sources_of(data: DataConfig) -> list[SourceConfig]:
    """The sources of a corpus; without `data.sources`, the corpus itself."""
    if not data.sources:
        return [SourceConfig(data, data.name)]
    require(
        isinstance(data.sources, list), "data.sources: a list of sources, as [{train: corpus/a}, {train: corpus/b}]"
    )
    # A validation or test set of all of them is that of the first one.
    found = [source_of(without_held_out(data) if number else data, entry) for number, entry in enumerate(data.sources)]
    names = [source.name for source in found]
    require(
        len(set(names)) == len(names), f"data.sources: two are called {max(names, key=names.count)}; give each a name"
    )
    first = [source for source in found if source.start == 0]
    require(bool(first), "data.sources: none of them is used from the beginning; one needs start=0")
    targets = {source.data.target for source in found}
    untagged = [source.name for source in found if not source.data.tag]
    require(
        len(targets) == 1 or not untagged,
        f"data.sources: {', '.join(sorted(targets))} are several targets, so each source needs a tag, such as <2de>; "
        f"{', '.join(untagged[:5])} has none",
    )
    taken = sum(source.share or 0 for source in found if source.share is not None)
    require(
        taken <= 1 or len({source.start for source in found}) > 1, f"data.sources: their shares are {taken:g} together"
    )
    return found


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
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    if not isinstance(entry, dict):
        raise NMTError(f"data.sources: {entry!r:.60} is not a mapping, such as {{train: corpus/a, weight: 2}}")
    for key, value in entry.items():
        require(
            key in (*OWN, *OF_DATA), f"data.sources: unknown key {key!r:.40}; there are {', '.join((*OWN, *OF_DATA))}"
        )
        # What YAML takes for true or false was hardly meant so: `no` is Norwegian.
        require(not isinstance(value, bool), f"data.sources: {key}={value}: write it in quotes if it is a text")
        group = key in ("filters", "noise")
        require(
            group == isinstance(value, dict), f"data.sources: {key}={value!r:.60} is {'no' if group else 'a'} mapping"
        )
    train = as_list(entry.get("train"))
    of_file = re.sub(r"[^\w-]", "_", Path(train[0]).name.partition(".")[0])[:50] if train else ""
    name = entry.get("name") or entry.get("target") or of_file or data.target
    where = f"data.sources, {shown(name)}: "
    require(
        isinstance(name, str | int) and bool(LANGUAGE.fullmatch(str(name))),
        f"{where}name: it names files, so letters, digits, '-', '_' and '.', please",
    )
    own = {key: value for key, value in entry.items() if key in OWN}
    of_data = {key: value for key, value in entry.items() if key in OF_DATA}
    plain = OmegaConf.structured(SourceConfig(replace(data, sources=[], temperature=1.0), "source"))
    try:
        # Like Hydra's, the values get the types of their keys.
        return cast(SourceConfig, OmegaConf.to_object(OmegaConf.merge(plain, {"data": of_data, **own, "name": name})))
    except (OmegaConfBaseException, ValueError) as error:
        key = str(getattr(error, "full_key", None) or "")
        raise NMTError(f"{where}{key.removeprefix('data.')}: {str(error).splitlines()[0]}") from error
    except NMTError as error:
        raise NMTError(f"{where}{error}") from error
