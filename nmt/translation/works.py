"""What a command does with the lines of its input, in blocks, on this machine or on a cluster.

The last digits of log P depend on the lines that are searched together. Blocks are cut at fixed
line numbers, so that results depend neither on the machine that computes a block nor on how often
the job was interrupted.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

from nmt.config import ClusterOptions, JobConfig, NMTError, SettingError
from nmt.extensions import ClusterEntry, import_attribute
from nmt.registry import entries_of
from nmt.translation.load import load_translator
from nmt.translation.reporting import fields_of, warn_of_note
from nmt.translation.stages import Outcome, RefusedLine, Stage, Translation
from nmt.translation.translator import Translator


@dataclass
class FinishedBlock:
    """The results for the texts of a block, or the text that has none."""

    results: list[Any] = field(default_factory=list)
    notes: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Note for the user -> index of the first text with it, and details."""
    counts: dict[str, int] = field(default_factory=dict)
    """Note -> number of texts with it."""
    refused: tuple[int, str] | None = None
    """The index of the first text that cannot be processed, and the reason."""


class Work:
    """The work of a command, which is sent to the workers of a cluster.

    Results of `compute` depend on the texts and on their order, but on no other block.
    """

    command: ClassVar[str]
    done: ClassVar[str]
    """What the lines are afterwards, such as translated."""
    are_lines: ClassVar[bool] = False
    """Whether each file is lines of text, whatever its name."""

    def __init__(self, config: JobConfig, cluster: ClusterOptions) -> None:
        self.config = config
        self.cluster = cluster
        self.translator: Translator | None = None

    def load(self, notice: Callable[[str], None]) -> None:
        """Load the model; NMTError if that fails."""
        self.translator = load_translator(self.config.translator, notice)

    def compute(self, texts: list[Any], rows: Sequence[int]) -> FinishedBlock:
        """The results for the texts of a block, whose lines in the input have these numbers."""
        raise NotImplementedError


class RowWork(Work):
    """Work on rows that have several texts, such as sentence pairs."""

    fields: tuple[str, ...]
    """The fields of records, or columns of tables, that have the texts."""
    adds: str
    """The column that tables get; empty: rows stay as they are."""
    second: str | None
    """The file that is parallel to the input; None: each row of the input has all texts."""

    def read_row(self, row: Any) -> Any:
        """The texts of a row, which is a line or, with a second file, a pair of lines.

        Raises NMTError if it lacks one.
        """
        raise NotImplementedError

    def write_row(self, row: Any, result: Any) -> bytes:
        """The output for a row whose result is not None; rows without a result are left out."""
        raise NotImplementedError


class TranslationWork(Work):
    """The work of `nmt translate`: lines of text become lines of text."""

    command = "translate"
    done = "translated"

    def compute(self, texts: list[str], rows: Sequence[int]) -> FinishedBlock:
        assert self.translator
        outcomes = outcomes_of(self.translator, texts, self.config.buffer)
        translations, block = translations_of(self.translator.stages, texts, outcomes)
        block.results = [candidates[0].marked_text for candidates in translations]
        return block


def outcomes_of(translator: Translator, lines: list[str], buffer: int) -> Iterator[Outcome]:
    """Translate the lines of a block, at most `buffer` of them at once."""
    parts = [lines[start : start + buffer] for start in range(0, len(lines), buffer)]
    return chain.from_iterable(translator.outcomes(parts))


def translations_of(
    stages: Sequence[Stage], lines: Sequence[str], outcomes: Iterable[Outcome]
) -> tuple[list[list[Translation]], FinishedBlock]:
    """The translations of each line, and a block with the notes on them but without results."""
    block = FinishedBlock()
    translations = list[list[Translation]]()
    counts = Counter[str]()
    for index, (line, outcome) in enumerate(zip(lines, outcomes, strict=True)):
        if isinstance(outcome, RefusedLine):
            return [], FinishedBlock(refused=(index, outcome.problem))
        best = outcome[0]
        fields_of(stages, line, best)
        for note, details in best.notes.items():
            block.notes.setdefault(note, (index, details))
            counts[note] += 1
        translations.append(outcome)
    block.counts = dict(counts)
    return translations, block


def report_block(
    block: FinishedBlock, rows: Sequence[int], counts: dict[str, int], where: str = ""
) -> None:
    """Print each new kind of note, and add the block's counts; NMTError if a text was refused.

    `where` names the file in messages, as in "mono.en, ".
    """
    if block.refused:
        index, problem = block.refused
        raise NMTError(f"{where}line {rows[index]}: {problem}")
    for note, (index, details) in block.notes.items():
        if not counts.get(note):
            warn_of_note(f"{where}line {rows[index]}", note, details)
    for note, count in block.counts.items():
        counts[note] = counts.get(note, 0) + count


def run_on_cluster(work: Work) -> dict[str, int]:
    """Let a cluster do the work; returns the number of texts with each note."""
    name = work.cluster.cluster
    assert name is not None
    run = entries_of(ClusterEntry)[name].load()
    return run(work)


def check_for_cluster(config: JobConfig, cluster: ClusterOptions) -> None:
    """Raise NMTError for what cannot be divided among machines, except by `nmt translate`.

    Also if the program of the cluster is not installed.
    """
    problem = ""
    if config.input == "-":
        problem = "needs a file as input"
    elif config.output == "-":
        problem = "needs a file for the results; pass output=NAME"
    elif config.part is not None:
        problem = "divides the input itself; omit part"
    if problem:
        raise SettingError(problem, key="cluster", value=cluster.cluster)
    assert cluster.cluster is not None
    entry = entries_of(ClusterEntry)[cluster.cluster]
    if entry.check:
        check: Callable[[], None] = import_attribute(entry.check)
        check()
