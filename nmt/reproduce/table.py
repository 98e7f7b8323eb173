"""A table: its rows, each of stages and of what is found when they are done, and the page that shows them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmt.commands.reproduce import ReproduceConfig
from nmt.reproduce.document import Document
from nmt.reproduce.results import Result
from nmt.reproduce.scales import Scale
from nmt.reproduce.stages import Stage


@dataclass(frozen=True)
class Row:
    """A row that is measured here."""

    name: str
    """Of its result."""
    stages: list[Stage]
    findings: Callable[[], dict[str, Any]]
    """Fields of the result, where the stages are done."""
    corpus: str = ""
    """en-de or en-fr, where it is translation."""
    training: tuple[str, ...] = ()
    """The words behind `nmt train`, where something is trained."""
    grid: str = ""
    """The sizes at which layers are measured, where they are."""


@dataclass(frozen=True)
class Table:
    """One of the paper's tables."""

    name: str
    """table1 to table4."""
    rows: Callable[[ReproduceConfig, Scale], list[Row]]
    document: Callable[[Scale, dict[str, Result]], Document]
    lacks: Callable[[ReproduceConfig, Scale], str] = lambda config, scale: ""
    """What the user has to give before a row of it can be measured, in words; empty: nothing."""
