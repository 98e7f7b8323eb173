"""The one way to translate a test set: with the options and in the blocks of `nmt translate`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from nmt import hardware
from nmt.config import JobConfig, TranslatorOptions, number, shown
from nmt.extensions import EngineEntry
from nmt.registry import entries_of
from nmt.translation import RefusedLine, Translator, best_translations, load_translator, warn

Translate = Callable[[Translator, list[str]], list[str]]
# A line's neighbors may change the last digit of a sum, so the blocks are those of `nmt translate`.
BLOCK_LINES = JobConfig.buffer


@dataclass
class Computation:
    """The facts that may change the last digits of a model's scores.

    The defaults describe bundles without this record.
    """

    engine: str = "torch"
    precision: str = "float32"
    threads: int | None = number(None, 1, 4096)
    """Number of CPU cores that searched; null: unknown."""
    block_lines: int = number(256, 1, 10**9)
    """Number of lines that were translated at a time."""


def computation_of(translator: Translator) -> Computation:
    compute = translator.options.compute
    return Computation(compute.engine, compute.precision, threads_of(translator), BLOCK_LINES)


def threads_of(translator: Translator) -> int:
    """The number of CPU cores that search."""
    compute = translator.options.compute
    if compute.engine != "torch":
        return compute.threads or hardware.usable_cores()
    import torch

    # torch may have been limited by the environment, for example by OMP_NUM_THREADS.
    return torch.get_num_threads()


def device_of(translator: Translator) -> str:
    """The device and its name, such as "cuda:0, NVIDIA H100"."""
    compute = translator.options.compute
    if compute.engine == "torch":
        import torch

        from nmt import search

        device = search.choose_device(compute.device)
        if device.startswith("cuda"):
            return f"{device}, {torch.cuda.get_device_name(device)}"
        return f"{device}, {hardware.processor()}"
    device = "cpu" if compute.device == "auto" else compute.device
    return f"{device}, {hardware.processor()}"


def versions_with(engine: str) -> dict[str, str]:
    """The versions that affect translations, including the engine's library if it is installed."""
    versions = hardware.versions()
    entry = entries_of(EngineEntry).get(engine)
    library = entry.module if entry else ""
    if library:
        with suppress(PackageNotFoundError):
            versions[library] = version(library)
    return versions


def missing_engine(computation: Computation) -> str:
    """Advice to install the stated engine for translating again; empty if it is installed."""
    engine = computation.engine
    entry = entries_of(EngineEntry).get(engine)
    if entry is None:
        return f"needs the plugin that adds engine={shown(engine)}"
    module = entry.module
    # `find_spec` looks for the library without loading it.
    if module and find_spec(module) is None:
        return f"made with engine={engine}, which is not installed here; pip install {module}"
    return ""


def open_translator(options: TranslatorOptions, best: Translate = best_translations) -> Translator:
    """The translator of a test set; a `best` of your own may need the scores of translations."""
    # Engines need not compute scores that nobody reads.
    results = "text" if best is best_translations else "scores"
    return load_translator(replace(options, results=results), warn)


@contextmanager
def progress_bar(console: Console, task: str, total: int) -> Iterator[Callable[[int], None]]:
    """A function that adds finished lines to a bar, which is shown only on a terminal."""
    bar = Progress(
        TextColumn("{task.description}: {task.completed:,.0f} of {task.total:,.0f} lines"),
        BarColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        shown = bar.add_task(task, total=total)

        def advance(lines: int) -> None:
            # A stage of the translator may search a line twice.
            # The bar must not pass its end.
            left = total - int(bar.tasks[0].completed)
            bar.advance(shown, min(lines, left))

        yield advance


def translate_lines(
    translator: Translator,
    lines: list[str],
    console: Console,
    task: str = "translating",
    best: Translate = best_translations,
    block_lines: int = BLOCK_LINES,
) -> list[str]:
    """The best translation of each line, as `nmt translate` prints it.

    The index of a RefusedLine counts from the first line.
    """
    translations: list[str] = []
    with progress_bar(console, task, len(lines)) as advance:
        translator = replace(translator, searched=advance)
        # In blocks, because what is batched together may change the last digits of scores; see
        # `Computation`.
        for start in range(0, len(lines), block_lines):
            block = lines[start : start + block_lines]
            try:
                translations += best(translator, block)
            except RefusedLine as error:
                raise RefusedLine(start + error.index, error.problem) from error
    return translations
