"""Results: a JSON file for each row of a table, with all that is needed to believe it, or to repeat it."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nmt.errors import NMTError
from nmt.reproduce.stages import Stage, Stages
from nmt.storage.foreign import LARGE, build, matches, parse_json, read_mapping
from nmt.storage.whole import write_file


@dataclass
class Result:
    """A row of a table as it was measured."""

    table: str
    row: str
    scale: str
    seed: int
    commands: list[str]
    origins: list[dict[str, Any]]
    """Commit, machine and packages; more than one where it was interrupted and went on with others."""
    seconds: dict[str, float]
    """Of each stage, interrupted ones included."""
    devices: str | None = None
    """What was trained on."""
    scores: list[dict[str, Any]] = field(default_factory=list)
    """Each with its signature, as `nmt score` gives them."""
    figures: dict[str, Any] = field(default_factory=dict)
    """What else was measured or counted."""

    def score(self, metric: str) -> float | None:
        """The value of a score; None where it was not computed."""
        return next((float(score["value"]) for score in self.scores if score["metric"] == metric), None)

    def figure(self, name: str) -> float | None:
        """A number that was measured or counted; None where it was not."""
        return self.figures.get(name)


@dataclass
class Machine:
    """The machine of an origin."""

    processor: str
    cores: int
    memory_gib: float
    gpus: list[str]


@dataclass
class Origin:
    """What a result was measured with."""

    commit: str
    machine: Machine
    packages: dict[str, str]


SCORE = {"metric": str, "name": str, "value": float, "signature": str}


def measured(stages: Stages, about: tuple[str, str, str, int], own: list[Stage], findings: dict[str, Any]) -> Result:
    """The result of a row (its table, name, scale and seed) whose stages are done; `findings` are fields of Result."""
    records = [stages.record(stage) for stage in own]
    origins: list[dict[str, Any]] = []
    for session in (session for record in records for session in record.sessions):
        if session.origin not in origins:
            origins.append(session.origin)
    seconds = {stage.name: round(record.seconds, 1) for stage, record in zip(own, records, strict=True)}
    return Result(*about, [str(stage) for stage in own], origins, seconds, **findings)


def write_result(folder: Path, result: Result) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(result), indent=2, ensure_ascii=False) + "\n"
    write_file(folder / f"{result.row}.json", text)


def read_results(folder: Path, seed: int) -> dict[str, Result]:
    """Row -> result of all of that seed that lie in a folder; NMTError where one is broken."""
    results = {}
    for path in sorted(folder.glob("*.json")):
        try:
            result = build(Result, read_mapping(path, parse_json, LARGE), str(path))
            check(result)
        except (NMTError, LookupError, TypeError, ValueError) as error:
            raise NMTError(f"{path}: is no result of nmt reproduce; remove it, and it is measured again") from error
        if result.seed == seed:  # rows are compared with one another
            results[result.row] = result
    return results


def check(result: Result) -> None:
    """ValueError or NMTError where what pages show of a result is missing or of another type."""
    for origin in result.origins:
        build(Origin, origin, "origin")
    for score in result.scores:
        if not all(matches(score.get(key), kind) for key, kind in SCORE.items()):
            raise ValueError("a score")
    for name, value in result.figures.items():
        if name not in ("setup", "points", "table") and not matches(value, float | None):
            raise ValueError(name)
