"""Stages: command lines of nmt, one after another, each a process of its own.

A finished stage is skipped; one that was interrupted is started again, and goes on as its command does. What a stage
took is written down while it runs, so that it is known after any end.
"""

import json
import re
import shlex
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt.commands.sweep import Processes
from nmt.errors import NMTError
from nmt.storage.foreign import LARGE, build, parse_json, read_mapping
from nmt.storage.whole import write_file


@dataclass(frozen=True)
class Stage:
    """One command line."""

    name: str
    """Says what is done, and to what; stages of the same name are the same stage."""
    words: tuple[str, ...]
    """What stands behind `nmt`."""
    product: Path
    """The file or folder that is there when it is done."""
    captured: bool = False
    """The product is what the command prints."""
    check: Callable[[], None] = lambda: None
    """Raises NMTError where the product is not what the stages behind it need."""
    module: str = "nmt"
    """The program."""

    def __str__(self) -> str:
        """The line that a shell can run."""
        program = ["nmt"] if self.module == "nmt" else ["python", "-m", self.module]
        return shlex.join([*program, *self.words]) + (f" > {shlex.quote(str(self.product))}" if self.captured else "")


@dataclass
class Session:
    """A stretch in which a stage ran, until it ended or was stopped."""

    origin: dict[str, Any]
    seconds: float = 0.0


@dataclass
class Record:
    """What is known of a stage."""

    command: str
    done: bool = False
    sessions: list[Session] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return sum(session.seconds for session in self.sessions)


def anywhere(command: str) -> str:
    """A command without what may change as it goes on: on how many devices it trains."""
    return re.sub(r" trainer\.devices=\S+", "", command)


class Stages:
    """Runs stages, and keeps their records in a folder."""

    def __init__(self, folder: Path, origin: dict[str, Any], processes: Processes, console: Console) -> None:
        self.folder, self.origin, self.processes, self.console = folder, origin, processes, console
        self.failed: set[str] = set()
        """Stages that have failed in this process, and are not tried again by it."""

    def path(self, stage: Stage) -> Path:
        return self.folder / f"{re.sub(r'[^a-z0-9.]+', '-', stage.name.lower())}.json"

    def record(self, stage: Stage) -> Record:
        """What is known of a stage; nothing, where what it had made is gone.

        NMTError where another command made it, whose product and time would be taken for this one's.
        """
        path = self.path(stage)
        if not path.is_file():
            return Record(str(stage))
        try:
            tree = read_mapping(path, parse_json, LARGE)
            sessions = tree.pop("sessions", [])
            record = build(Record, {**tree, "sessions": []}, str(path))
            record.sessions = [build(Session, session, str(path)) for session in sessions]
        except (NMTError, TypeError) as error:
            raise NMTError(f"{path}: is no record of a stage; remove it, and the stage is run again") from error
        if record.done and not stage.product.exists():
            return Record(str(stage))
        if record.done and anywhere(record.command) != anywhere(str(stage)):
            raise NMTError(
                f"{path}: was done as `{record.command}`, and would now be `{stage}`; pass work=OTHER, or remove what "
                "was done"
            )
        record.command = str(stage)
        return record

    def write(self, stage: Stage, record: Record) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_file(self.path(stage), json.dumps(asdict(record), indent=1) + "\n")

    def is_done(self, stage: Stage) -> bool:
        return self.record(stage).done

    def run(self, stages: list[Stage], title: str) -> bool:
        """Run what is not done yet of stages that need one another; whether all are done now."""
        for number, stage in enumerate(stages, 1):
            if self.is_done(stage):
                continue
            if stage.name in self.failed or self.processes.signal is not None:
                return False
            for later in stages[number:]:  # they were made from something else
                self.set_done(later, False)
            self.console.print(f"{title}, {number} of {len(stages)}: {stage}")
            if not self.run_stage(stage):
                return False
        return True

    def set_done(self, stage: Stage, done: bool) -> None:
        record = self.record(stage)
        if record.done != done:
            record.done = done
            self.write(stage, record)

    def run_stage(self, stage: Stage) -> bool:
        """Run one stage to its end; whether it got there."""
        record, session = self.record(stage), Session(self.origin)
        record.sessions.append(session)
        start = time.monotonic()

        def note() -> None:
            session.seconds = round(time.monotonic() - start, 2)
            self.write(stage, record)

        note()
        code = self.execute(stage, note)
        if code == 0:
            stage.check()
            record.done = True
        note()
        if code != 0 and self.processes.signal is None:
            self.failed.add(stage.name)
            # A process that the kernel ends, out of memory for one, has not said so.
            self.console.print(f"{stage.name} failed with {f'exit code {code}' if code > 0 else f'signal {-code}'}")
        return code == 0

    def execute(self, stage: Stage, note: Callable[[], None]) -> int:
        """The exit code of a stage's command, whose product is whole or not there."""
        command = [sys.executable, "-m", stage.module, *stage.words]
        if not stage.captured:
            return self.processes.run(command, meanwhile=note)
        stage.product.parent.mkdir(parents=True, exist_ok=True)
        temporary = stage.product.with_name(f".{stage.product.name}")
        with temporary.open("wb") as file:
            code = self.processes.run(command, file.fileno(), note)
        if code == 0:
            temporary.replace(stage.product)
        else:
            temporary.unlink()
        return code
