"""`nmt reproduce`: the paper's tables, measured here, each row with where it comes from."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout
from rich.console import Console

from nmt.commands.reproduce import ReproduceConfig
from nmt.commands.sweep import Processes
from nmt.errors import NMTError
from nmt.reproduce import table1, table2, table3, table4
from nmt.reproduce.origin import origin
from nmt.reproduce.render import write_pages
from nmt.reproduce.requirements import require_all
from nmt.reproduce.results import measured, read_results, write_result
from nmt.reproduce.scales import PAPER, Scale
from nmt.reproduce.stages import Stages
from nmt.reproduce.table import Row, Table

TABLES = [table1.TABLE, table2.TABLE, table3.TABLE, table4.TABLE]
Work = list[tuple[Table, list[Row]]]


def plan(config: ReproduceConfig, scale: Scale) -> Work:
    """The tables that are asked for, and their rows; NMTError where there is no such row."""
    tables = [table for table in TABLES if config.table in (table.name, "all")]
    work = [(table, table.rows(config, scale)) for table in tables]
    if config.rows:
        ((table, rows),) = work
        names = [row.name for row in rows]
        unknown = [name for name in config.rows if name not in names]
        if unknown:
            raise NMTError(f"rows=[{unknown[0]}]: {table.name} has {', '.join(names)}")
        work = [(table, [row for row in rows if row.name in config.rows])]
    return work


def command_lines(work: Work) -> str:
    """A line for each stage, those that several rows share once."""
    return "".join(dict.fromkeys(f"{stage}\n" for _, rows in work for row in rows for stage in row.stages))


def reproduce(config: ReproduceConfig, scale: Scale, console: Console) -> int:
    """Measure what is not measured yet of the tables, and write their pages; gives the exit code."""
    work = plan(config, scale)
    processes = Processes()
    stages = Stages(Path(config.work) / "stages", origin(), processes, console)
    if scale is PAPER:
        left = [(table, [row for row in rows if not is_measured(row, stages)]) for table, rows in work]
        require_all(config, scale, left, console)
    lacking = {table.name: words for table, _ in work if (words := table.lacks(config, scale))}
    if lacking and len(lacking) == len(work):
        raise NMTError("; ".join(f"{name}: {words}" for name, words in lacking.items()))
    for name, words in lacking.items():
        console.print(f"{name} will not be run: {words}")
    with alone(Path(config.work)), processes:
        for table, rows in work:
            run_table(config, scale, (table, [] if table.name in lacking else rows), stages)
    if processes.signal is not None:
        console.print("the reproduction was stopped; the same command goes on from there")
        return 128 + processes.signal
    if stages.failed:
        console.print(f"failed: {'; '.join(sorted(stages.failed))}; the same command tries again")
        return 1
    for name, words in lacking.items():
        raise NMTError(f"{name} was not run: {words}")
    return 0


@contextmanager
def alone(work: Path) -> Iterator[None]:
    """NMTError where another process reproduces in this folder: both would write the same files."""
    work.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(work / "lock", timeout=0):
            yield
    except Timeout as error:
        raise NMTError(
            f"work={work}: another nmt reproduce is at work there; let it end, or pass work=OTHER"
        ) from error


def is_measured(row: Row, stages: Stages) -> bool:
    return all(stages.is_done(stage) for stage in row.stages)


def run_table(config: ReproduceConfig, scale: Scale, table_and_rows: tuple[Table, list[Row]], stages: Stages) -> None:
    """Measure the rows of a table, and write its page after each."""
    table, rows = table_and_rows
    folder = Path(config.output) / table.name / "results" / scale.name
    for row in rows:
        title = f"{table.name} {row.name}"
        if is_measured(row, stages):
            stages.console.print(f"{title}: already measured")
        elif not stages.run(row.stages, title):
            continue
        about = table.name, row.name, scale.name, config.seed
        write_result(folder, measured(stages, about, row.stages, row.findings()))
        write_pages(folder, table.document(scale, read_results(folder, config.seed)))
    for page in write_pages(folder, table.document(scale, read_results(folder, config.seed))):
        print(page)
