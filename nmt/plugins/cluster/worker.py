"""What a worker of the cluster does: load the model once, and translate blocks of lines."""

import platform
from collections import Counter
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from nmt import __version__
from nmt.config import NMTError, TranslateConfig
from nmt.extensions import EngineEntry
from nmt.hardware import instruction_sets, processor
from nmt.registry import entries_of
from nmt.translation import (
    RefusedLine,
    Translator,
    fields_of,
    load_translator,
    what_affects_output,
)


@dataclass
class WorkerFacts:
    """What decides the translations of a worker."""

    machine: str
    identity: dict[str, Any]
    """The model files and options, see `what_affects_output`."""
    programs: dict[str, str]
    """The versions of nmt and of the library that searches."""
    processor: str
    """The name of the processor, and its instructions for vectors."""
    notices: list[str]
    """Messages about the model."""


@dataclass
class TranslatedBlock:
    """The translations of a block's lines, or the line that has none."""

    texts: list[str] = field(default_factory=list)
    notes: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Note for the user -> index of the first line with it, and details."""
    counts: dict[str, int] = field(default_factory=dict)
    """Note -> number of lines with it."""
    refused: tuple[int, str] | None = None
    """The index of the first line that cannot be translated, and the reason."""


def programs_of(engine: str) -> dict[str, str]:
    """The versions of the programs that decide translations."""
    programs = {"nmt": __version__}
    module = entries_of(EngineEntry)[engine].module or engine
    programs[module] = version(module)
    return programs


class BlockTranslator:
    """Translates blocks with one model. Methods return errors, because Ray would wrap them."""

    def __init__(self, config: TranslateConfig) -> None:
        self.config = config
        self.translator: Translator | None = None

    def load(self) -> WorkerFacts | str:
        """Load the model; returns what decides the translations, or the problem."""
        machine = platform.node()
        options = self.config.translator
        notices = list[str]()
        try:
            self.translator = load_translator(options, notices.append)
            identity = what_affects_output(self.config)
        except NMTError as error:
            return f"{machine}: {error}"
        programs = programs_of(options.compute.engine)
        return WorkerFacts(
            machine,
            identity,
            programs,
            f"{processor()} {instruction_sets()}",
            notices,
        )

    def translate(self, lines: list[str]) -> TranslatedBlock:
        assert self.translator
        return translate_block(self.translator, lines, self.config.buffer)


def translate_block(translator: Translator, lines: list[str], buffer: int) -> TranslatedBlock:
    """Translate the lines of a block, at most `buffer` of them at once."""
    block = TranslatedBlock()
    counts = Counter[str]()
    for start in range(0, len(lines), buffer):
        part = lines[start : start + buffer]
        outcomes = translator.translate_each(part)
        for index, (line, outcome) in enumerate(zip(part, outcomes, strict=True), start):
            if isinstance(outcome, RefusedLine):
                return TranslatedBlock(refused=(index, outcome.problem))
            best = outcome[0]
            fields_of(translator.stages, line, best)
            for note, details in best.notes.items():
                block.notes.setdefault(note, (index, details))
                counts[note] += 1
            block.texts.append(best.text)
    block.counts = dict(counts)
    return block
