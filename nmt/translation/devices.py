"""A translator that runs one process per device and returns results in input order."""

import signal
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing import get_context, resource_tracker
from multiprocessing.queues import SimpleQueue
from typing import Any

import nmt.translation as steps
from nmt.config import JobConfig, NMTError, TranslatorOptions
from nmt.preparation import begin, worker_pool

worker_options: TranslatorOptions
"""The options of this process of the pool, with its device."""


def device_names(config: JobConfig) -> list[str]:
    """The GPUs that `config` asks for; NMTError if there are not that many."""
    import torch

    compute = config.translator.compute
    count = compute.devices
    device = compute.device
    gpus = torch.cuda.device_count()
    # On a CPU, one process already uses all cores.
    if device == "cpu" or (device == "auto" and gpus == 0):
        raise NMTError(f"devices={count} is for GPUs; on a CPU, use threads=N instead")
    if device not in ("auto", "cuda"):
        raise NMTError(f"devices={count}: device={device} is a single device; use device=cuda")
    if count > gpus:
        raise NMTError(
            f"devices={count}: {gpus} GPU(s) found; "
            "pass a lower number, or device=cpu without devices"
        )
    return [f"cuda:{number}" for number in range(count)]


def begin_worker(options: TranslatorOptions, devices: "SimpleQueue[str]") -> None:
    """Prepare a process of the pool, which takes the next device."""
    global worker_options
    # A custom initializer replaces the default one of `worker_pool`, so it makes the same call.
    begin()
    # Initializers have equal arguments in all processes, so a queue hands out one device to each.
    compute = replace(options.compute, device=devices.get())
    worker_options = replace(options, compute=compute)


@cache
def worker_translator() -> steps.Translator:
    """This process's translator.

    It is loaded at the first block, because an error in `begin_worker` would break the pool.
    """
    import torch

    # Each process would otherwise start as many threads as there are cores.
    threads = torch.get_num_threads() // worker_options.compute.devices
    torch.set_num_threads(max(1, threads))
    return steps.load_translator(worker_options, steps.warn)


def translate_block(block: list[str]) -> list[steps.Outcome]:
    return worker_translator().translate_each(block)


def result(future: "Future[Any] | BaseException") -> Any:
    """A process's result.

    Raises the exception of the thread that reads the input, or NMTError if the process was killed.
    """
    if isinstance(future, BaseException):
        raise future
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise NMTError("a translation process died; it may have run out of memory") from error


class DeviceTranslator:
    """Translates a stream of lines like Translator, but in a pool of `count` processes."""

    def __init__(
        self,
        pool: ProcessPoolExecutor,
        count: int,
        options: TranslatorOptions,
        models: steps.Models,
    ) -> None:
        self.pool = pool
        self.count = count
        self.options = options
        self.models = models
        self.stages = steps.stages_of(options, models)

    def stream(self, lines: Iterable[str], buffer: int) -> Generator[list[steps.Translation]]:
        """Yield translations in order, as soon as possible.

        Holds about two blocks of `buffer` lines per process.
        """
        yield from steps.lines_of(self.outcomes(steps.arriving_blocks(lines, buffer)))

    def outcomes(self, blocks: Iterable[list[str]]) -> Generator[list[steps.Outcome]]:
        """Yield the outcomes of each block, in order. A thread reads the blocks ahead."""
        # Python's resource tracker is a process of its own. If it started later, with the first
        # worker, it would unblock the signal.
        resource_tracker.ensure_running()
        # Futures enter the queue in input order, so results
        # leave in that order, whichever device is first.
        with steps.read_by_thread(self.submitted(blocks), 2 * self.count) as pending:
            yield from map(result, iter(pending.get, None))

    def submitted(self, blocks: Iterable[list[str]]) -> Iterator[Future[Any]]:
        """Submit blocks of lines to the pool; runs in the thread that reads the input."""
        # Ctrl-C reaches every process in a terminal. This thread blocks it, and the processes that
        # it starts inherit the block, so only the main process receives the signal and stops the
        # others.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        for block in blocks:
            yield self.pool.submit(translate_block, block)


@contextmanager
def on_devices(config: JobConfig, names: Sequence[str] = ()) -> Iterator[DeviceTranslator]:
    """A translator with one process per named device; default: the GPUs that `config` asks for."""
    names = names or device_names(config)
    models = steps.find_models(config.translator.run)
    options = steps.with_engine(config.translator, steps.warn, models)
    # runs/latest may point elsewhere by the time a process reads it.
    folders = [str(folder.resolve()) for folder in models.folders]
    options = replace(options, run=folders)
    context = get_context("spawn")  # a forked process could not use CUDA
    devices = context.SimpleQueue()
    for name in names:
        devices.put(name)
    with worker_pool(
        len(names),
        mp_context=context,
        initializer=begin_worker,
        initargs=(options, devices),
    ) as pool:
        yield DeviceTranslator(pool, len(names), options, models)
