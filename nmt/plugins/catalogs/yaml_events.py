"""YAML files as lists of scalars with their places, read from the events of a parser.

Events need no recursion and do not expand aliases, which could grow without bound.
"""

from dataclasses import dataclass, field

import yaml

from nmt.config import NMTError
from nmt.plugins.catalogs.yaml_scalars import Scalar

DEEPEST = 200
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""PyYAML's parser in C if there is one, which is ten times as fast."""


@dataclass
class Pair:
    """A key, and its value if it is a scalar or a mapping."""

    key: Scalar | None
    scalar: Scalar | None = None
    mapping: "Mapping | None" = None


@dataclass
class Mapping:
    """A mapping with its pairs; keys other than scalars are None."""

    path: tuple[str, ...]
    is_in_flow: bool
    pairs: list[Pair] = field(default_factory=list)


@dataclass
class Text:
    """A scalar that is not a key, at a path of keys."""

    path: tuple[str, ...]
    scalar: Scalar


@dataclass
class Level:
    """An open mapping, or an open sequence if it has no `mapping`."""

    path: tuple[str, ...]
    is_in_flow: bool
    mapping: Mapping | None = None
    is_after_key: bool = False


class Yaml:
    """The content of a YAML file: its roots, mappings and texts in order."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        self.roots = list[Mapping | None]()
        """The mapping of each document; None if it has another content."""
        self.mappings = list[Mapping]()
        self.texts = list[Text]()
        self.levels = list[Level]()
        try:
            for event in yaml.parse(text, Loader=LOADER):
                self.read(event)
        except yaml.MarkedYAMLError as error:
            number = error.problem_mark.line + 1 if error.problem_mark else 1
            raise NMTError(f"line {number}: not valid YAML ({error.problem})") from error
        except yaml.YAMLError as error:
            first, *_ = str(error).splitlines()
            raise NMTError(f"not valid YAML: {first}") from error

    def read(self, event: yaml.Event) -> None:
        match event:
            case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                self.open(event)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self.levels.pop()
            case yaml.ScalarEvent():
                is_in_flow = bool(self.levels) and self.levels[-1].is_in_flow
                self.add(Scalar(self.text, event, is_in_flow, self.line_end), None)
            case yaml.AliasEvent():
                self.add(None, None)

    def open(self, event: yaml.CollectionStartEvent) -> None:
        if len(self.levels) == DEEPEST:
            assert event.start_mark  # the parser sets it
            number = event.start_mark.line + 1
            raise NMTError(f"line {number}: nested more than {DEEPEST} levels deep")
        is_in_flow = bool(event.flow_style) or bool(self.levels and self.levels[-1].is_in_flow)
        mapping: Mapping | None = None
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        path = self.path_of_next()
        if is_mapping:
            mapping = Mapping(path, is_in_flow)
            self.mappings.append(mapping)
        self.add(None, mapping)
        self.levels.append(Level(path, is_in_flow, mapping))

    def path_of_next(self) -> tuple[str, ...]:
        """The path of the node that the next event begins."""
        if not self.levels:
            return ()
        level = self.levels[-1]
        if level.mapping and level.is_after_key:
            key = level.mapping.pairs[-1].key
            return (*level.path, key.value if key else "")
        return level.path

    def add(self, scalar: Scalar | None, mapping: Mapping | None) -> None:
        """Add a node to the mapping around it, or to the texts."""
        path = self.path_of_next()
        level = self.levels[-1] if self.levels else None
        if not level:
            self.roots.append(mapping)
        elif level.mapping and not level.is_after_key:
            level.mapping.pairs.append(Pair(scalar))
            level.is_after_key = True
            return
        elif level.mapping:
            pair = level.mapping.pairs[-1]
            pair.scalar = scalar
            pair.mapping = mapping
            level.is_after_key = False
        if scalar:
            self.texts.append(Text(path, scalar))
