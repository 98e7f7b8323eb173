"""The job of `cluster=ray`: read blocks, let workers compute them, and join the results.

The driver reads the input and writes the output; workers see only lines of text. At any time, at
most a few blocks per worker are in memory.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from nmt.config import JobConfig, NMTError, SettingError
from nmt.files import is_prefixed, only_process
from nmt.plugins.cluster import places
from nmt.plugins.cluster.background import THREADS, Background
from nmt.plugins.cluster.contents import Content, Kind, Texts
from nmt.plugins.cluster.inputs import (
    JSON,
    PARQUET,
    ROWS,
    TEXT,
    InputFile,
    input_files,
    size_of_files,
)
from nmt.plugins.cluster.lines import Lines, Records, Rows
from nmt.plugins.cluster.options import RayConfig
from nmt.plugins.cluster.store import FileRecord, Store
from nmt.plugins.cluster.tables import RowTables, Tables
from nmt.plugins.cluster.versions import version_of
from nmt.translation import (
    FinishedBlock,
    Progress,
    RowWork,
    TranslationWork,
    Work,
    find_models,
    options_before,
    report_block,
    show_progress,
    warn,
    what_affects_output,
    with_engine,
)


@dataclass
class FileProgress:
    """How much of a file has been read and computed."""

    file: InputFile
    is_read: bool = False
    open: int = 0
    """The number of blocks that workers have not computed yet."""
    rows: int = 0
    blocks: int = 0
    digest: Any = field(default_factory=hashlib.sha256)
    writes: list[Future[None]] = field(default_factory=list)
    """The blocks that are being written."""
    version: str = ""
    """The version of the file before it was read, see `version_of`."""

    def add(self, content: Content) -> None:
        self.rows += content.rows
        self.blocks += 1
        self.digest.update(content.digest.encode())

    def add_write(self, write: Future[None]) -> None:
        """Remember a block that is being written, and forget the blocks that are on disk."""
        is_written = [future.done() and future.exception() is None for future in self.writes]
        pairs = zip(self.writes, is_written, strict=True)
        self.writes = [future for future, is_done in pairs if not is_done]
        self.writes.append(write)


@dataclass(eq=False)
class Task:
    """A block to compute."""

    progress: FileProgress
    content: Content
    texts: Texts

    @property
    def where(self) -> str:
        last = self.content.first + self.content.rows - 1
        return f"{self.progress.file.path}, lines {self.content.first:,} to {last:,}"


class Pool(Protocol):
    """Workers that compute blocks."""

    def run(self, tasks: Iterator[Task]) -> Iterator[tuple[Task, FinishedBlock]]:
        """Yield each task once, in any order, with its results.

        Takes only as many tasks ahead as its workers need.
        """

    def summary(self) -> str:
        """The workers of the whole job, in words."""

    def state(self) -> str:
        """The workers of the moment, in words."""


OpenPool = Callable[[Work, dict[str, Any]], AbstractContextManager[Pool]]
"""Starts workers for some work, and compares what each has loaded with an identity."""


def run_on_ray(work: Work) -> dict[str, int]:
    """Do the work on a Ray cluster; see `RunOnCluster`."""
    from nmt.plugins.cluster.pool import check_installed, ray_pool  # it imports ray later

    check_installed()
    return run_in_blocks(work, ray_pool)


def run_in_blocks(work: Work, open_pool: OpenPool) -> dict[str, int]:
    """Process the files of a job with the workers of a pool."""
    files = input_files(work)
    work = copy(work)
    work.config = settled(work)
    config = work.config
    options = ray_options(work)
    loaded = {"command": work.command, **what_affects_output(config)}
    compute = config.translator.compute
    identity = {
        **loaded,
        "ray.cpus": compute.threads,
        "ray.gpus": options.gpus,
        "ray.lines": options.lines,
        "ray.field": options.field,
    }
    if not isinstance(work, TranslationWork):
        check_blocks(options, config)
        identity["buffer"] = config.buffer
    store = Store(config.output, identity)
    with ExitStack() as stack:
        # The pool guards remote outputs, because their file systems have no locks.
        if not places.is_remote(store.folder):
            stack.enter_context(only_process(Path(store.folder), "output"))
        background = stack.enter_context(Background(options.lines))
        job = BulkJob(work, files, store, background, stack)
        job.prepare()
        job.run(lambda: open_pool(work, loaded))
    return job.counts


def ray_options(work: Work) -> RayConfig:
    options: RayConfig = work.cluster.plugins["ray"]
    return options


def check_blocks(options: RayConfig, config: JobConfig) -> None:
    """Raise NMTError unless the blocks consist of the lines that one machine searches together."""
    if options.lines % config.buffer:
        raise SettingError(
            f"must be a multiple of {config.buffer:,}, the number of lines that one machine "
            "computes together, because the last digits of log P depend on it",
            key="ray.lines",
            value=str(options.lines),
        )


def settled(work: Work) -> JobConfig:
    """The configuration of every worker: one engine, device and number of threads, one model.

    Raises NMTError for options that contradict those of the cluster.
    """
    options = ray_options(work)
    config = work.config
    translator = config.translator
    compute = translator.compute
    device = "cuda" if options.gpus else "cpu"
    problem = ""
    if compute.devices != 1:
        problem = f"devices={compute.devices}: each worker has one device; pass ray.workers instead"
    elif compute.device not in ("auto", device):
        problem = f"device={compute.device}: ray.gpus={options.gpus} means device={device}"
    elif compute.threads not in (None, options.cpus):
        problem = f"threads={compute.threads}: each worker has ray.cpus={options.cpus} threads"
    if problem:
        raise NMTError(problem)
    models = find_models(translator.run)
    # runs/latest may point elsewhere by the time a worker reads it. Each machine downloads a model
    # that has a prefix, such as hub:, to its own cache.
    runs = []
    for name, folder in zip(translator.run, models.folders, strict=True):
        runs.append(name if is_prefixed(name) else str(folder.resolve()))
    compute = replace(compute, device=device, threads=options.cpus)
    translator = replace(translator, compute=compute, run=runs)
    return replace(config, translator=with_engine(translator, warn, models))


class BulkJob:
    """The files of a job, and what has become of them."""

    def __init__(
        self,
        work: Work,
        files: list[InputFile],
        store: Store,
        background: Background,
        stack: ExitStack,
    ) -> None:
        self.work = work
        self.config = work.config
        self.files = files
        self.store = store
        self.background = background
        self.size = ray_options(work).lines
        field_name = ray_options(work).field
        self.tables = Tables(field_name)
        self.kinds: dict[str, Kind] = {TEXT: Lines(), JSON: Records(field_name)}
        if isinstance(work, RowWork):
            self.kinds[ROWS] = Rows(work)
            self.tables = RowTables(work)
        self.kinds[PARQUET] = self.tables
        self.counts = Counter[str]()
        self.progress = Progress(size=size_of_files(files))
        show_progress(self.progress, work.config, work.command, stack, in_log=True)

    def prepare(self) -> None:
        """Check inputs and outputs before any work; with overwrite=true, remove old outputs."""
        for file in self.files:
            if file.kind == PARQUET:
                self.tables.check(file)
        if self.config.overwrite:
            self.store.clear()
            self.for_all_files(lambda file: places.remove(file.output))
        self.store.compare(options_before(self.config))
        # This job holds the lock, so no other one is writing them.
        places.remove_temporary_of(file.output for file in self.files)
        self.for_all_files(self.check_output)
        # Last, so that a command that is refused leaves nothing behind.
        self.store.begin()

    def for_all_files(self, call: Callable[[InputFile], None]) -> None:
        for _ in self.background.ahead(call, self.files, THREADS):
            pass

    def check_output(self, file: InputFile) -> None:
        """Raise NMTError if an output exists that is not of this job."""
        if self.store.file_record(file) is None and places.size_of(file.output):
            raise NMTError(
                f"output={file.output} exists: pass overwrite=true to replace it, or name "
                "another output"
            )

    def run(self, open_pool: Callable[[], AbstractContextManager[Pool]]) -> None:
        """Compute the missing blocks, and join each file that is complete."""
        tasks = self.missing_tasks()
        first = next(tasks, None)
        workers = "no worker was needed"
        # Without a missing block, no cluster starts.
        if first is not None:
            with open_pool() as pool:
                self.progress.workers = pool.state
                for task, block in pool.run(chain([first], tasks)):
                    self.finish(task, block)
                self.background.finish()
                workers = pool.summary()
        self.background.finish()
        is_single = self.files[0].output == places.plain(self.config.output)
        # The record of a folder stays, so that the same command translates only new files.
        if is_single:
            self.store.clear()
        files = "1 file" if len(self.files) == 1 else f"{len(self.files):,} files"
        computed = self.progress.computed
        lines = "1 line" if computed == 1 else f"{computed:,} lines"
        kept = self.progress.kept
        earlier = "1 line" if kept == 1 else f"{kept:,} lines"
        warn(f"{files}: {lines} {self.work.done}, {earlier} from earlier commands; {workers}")

    def missing_tasks(self) -> Iterator[Task]:
        """The blocks that no earlier command has computed."""
        states = self.background.ahead(self.state_of, self.files, THREADS)
        for file, (record, version) in zip(self.files, states, strict=True):
            progress = FileProgress(file, version=version)
            if record is None:
                yield from self.missing_tasks_of(progress)
            elif version and version == record.source:
                self.progress.keep(record.rows, size_of_files([file]) or 0)
            else:
                self.compare(progress, record)

    def state_of(self, file: InputFile) -> tuple[FileRecord | None, str]:
        """The record of a file that an earlier command has completed, and the file's version."""
        return self.joined(file), version_of(file)

    def compare(self, progress: FileProgress, record: FileRecord) -> None:
        """Read a completed file; NMTError if its content has changed."""
        file = progress.file
        for content in self.kinds[file.kind].contents(file, self.size):
            progress.add(content)
            self.progress.keep(content.rows, content.size)
        if record.input_sha256 != progress.digest.hexdigest():
            raise self.changed(file, file.path)
        # The next command need not read it.
        source = self.version_read(progress)
        if source and source != record.source:
            self.background.writes.submit(self.store.record, file, replace(record, source=source))

    def missing_tasks_of(self, progress: FileProgress) -> Iterator[Task]:
        file = progress.file
        kind = self.kinds[file.kind]
        numbers = self.store.numbers(file)
        for content, counts in self.with_counts(file, kind.contents(file, self.size), numbers):
            progress.add(content)
            if counts is None:
                progress.open += 1
                yield Task(progress, content, kind.texts(file, content))
            else:
                self.counts.update(counts)
                self.progress.keep(content.rows, content.size)
        if any(number >= progress.blocks for number in numbers):
            # The file had more blocks. Joining the rest would remove them.
            raise self.store.changed(file)
        progress.is_read = True
        self.join_if_complete(progress)

    def with_counts(
        self, file: InputFile, contents: Iterator[Content], numbers: set[int]
    ) -> Iterator[tuple[Content, dict[str, int] | None]]:
        """Each block of a file, with its notes if it is finished; see `Store.counts_of`.

        `numbers` are those of the stored blocks.
        """

        def look_up(content: Content) -> tuple[Content, dict[str, int] | None]:
            is_stored = content.number in numbers
            return content, self.store.counts_of(file, content) if is_stored else None

        # Without stored blocks, reading ahead would only fill the memory.
        return self.background.ahead(look_up, contents) if numbers else map(look_up, contents)

    def joined(self, file: InputFile) -> FileRecord | None:
        """The record of a file that an earlier command has completed; None if it is to be done."""
        record = self.store.file_record(file)
        if record is None:
            return None
        size = places.size_of(file.output)
        # A user who wants a file to be translated again removes its translation.
        if size is None:
            return None
        if record.identity != self.store.hash or size != record.output_bytes:
            raise self.changed(file, file.output)
        return record

    def changed(self, file: InputFile, path: str) -> NMTError:
        return NMTError(
            f"{path}: has changed since {file.path} was translated; remove {file.output} to "
            "translate that file again, or pass overwrite=true to translate all of them"
        )

    def finish(self, task: Task, block: FinishedBlock) -> None:
        """Store the results of a block; NMTError if a line has none."""
        file = task.progress.file
        report_block(block, task.texts.rows, self.counts, f"{file.path}, ")
        payload = self.kinds[file.kind].payload(task.content, task.texts, block.results)
        self.background.check()
        write = self.background.writes.submit(
            self.store.add, file, task.content, payload, block.counts
        )
        task.progress.add_write(write)
        self.progress.add(task.content.rows, task.content.size)
        task.progress.open -= 1
        self.join_if_complete(task.progress)

    def join_if_complete(self, progress: FileProgress) -> None:
        """Join a file in the background once all of its blocks are computed."""
        if progress.is_read and not progress.open:
            self.background.joins.submit(self.join, progress)

    def join(self, progress: FileProgress) -> None:
        """Write the output of a file."""
        for write in progress.writes:
            write.result()
        file = progress.file
        # There was none when the job began, and overwrite=true has removed it.
        if places.size_of(file.output):
            raise NMTError(
                f"output={file.output}: another program has written it since this job began; "
                "move it away, and repeat this command, which keeps its blocks"
            )
        input_sha256 = progress.digest.hexdigest()
        with places.written(file.output) as output:
            payloads = self.store.payloads(
                file, progress.blocks, input_sha256, self.background.ahead
            )
            self.kinds[file.kind].join(file, payloads, output)
            record = FileRecord(
                self.store.hash,
                progress.rows,
                progress.blocks,
                input_sha256,
                output.stat().st_size,
                self.version_read(progress),
            )
            # Before the output appears. If the command is killed between the two, the next one
            # finds no output, and joins the blocks again. In the other order, it would find an
            # output of which it knows nothing.
            self.store.record(file, record)
        self.store.remove_blocks(file)

    def version_read(self, progress: FileProgress) -> str:
        """The version of a file that has been read; empty if it may have changed meanwhile."""
        version = version_of(progress.file)
        return version if version == progress.version else ""
