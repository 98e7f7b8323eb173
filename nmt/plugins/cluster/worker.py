"""What a worker of the cluster does: load the model once, and compute blocks."""

import platform
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from nmt import __version__
from nmt.config import NMTError
from nmt.extensions import EngineEntry
from nmt.hardware import instruction_sets, processor
from nmt.registry import entries_of
from nmt.translation import FinishedBlock, Work, what_affects_output


@dataclass
class WorkerFacts:
    """What decides the results of a worker."""

    machine: str
    identity: dict[str, Any]
    """The model files and options, see `what_affects_output`."""
    programs: dict[str, str]
    """The versions of nmt and of the library that searches."""
    processor: str
    """The name of the processor, and its instructions for vectors."""
    notices: list[str]
    """Messages about the model."""


def programs_of(engine: str) -> dict[str, str]:
    """The versions of the programs that decide results."""
    programs = {"nmt": __version__}
    module = entries_of(EngineEntry)[engine].module or engine
    programs[module] = version(module)
    return programs


class BlockWorker:
    """Computes blocks with one model. Methods return errors, because Ray would wrap them."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def load(self) -> WorkerFacts | str:
        """Load the model; returns what decides the results, or the problem."""
        machine = platform.node()
        config = self.work.config
        notices = list[str]()
        try:
            self.work.load(notices.append)
            identity = what_affects_output(config)
        except NMTError as error:
            return f"{machine}: {error}"
        programs = programs_of(config.translator.compute.engine)
        return WorkerFacts(
            machine,
            identity,
            programs,
            f"{processor()} {instruction_sets()}",
            notices,
        )

    def compute(self, texts: list[Any], rows: list[int]) -> FinishedBlock:
        return self.work.compute(texts, rows)
