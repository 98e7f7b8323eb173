"""A translator that runs one process per device and returns results in input order."""

import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing import get_context, resource_tracker
from multiprocessing.queues import SimpleQueue
from typing import Any

import nmt.translation as steps
from nmt.config import JobConfig, NMTError, TranslatorOptions, require
from nmt.preparation import begin, worker_pool

worker_options: TranslatorOptions  # in a pool process: the options, with this process's device


def device_names(config: JobConfig) -> list[str]:
    import torch

    compute = config.translator.compute
    count, device, gpus = compute.devices, compute.device, torch.cuda.device_count()
    on_processor = device == "cpu" or (device == "auto" and not gpus)
    require(not on_processor, f"devices={count} is for GPUs; on a CPU, use threads=N instead")
    require(
        device in ("auto", "cuda"),
        f"devices={count}: device={device} is a single device; use device=cuda",
    )
    require(
        count <= gpus,
        f"devices={count}: {gpus} GPU(s) found; pass a lower number, or device=cpu without devices",
    )
    return [f"cuda:{number}" for number in range(count)]


def begin_worker(options: TranslatorOptions, devices: "SimpleQueue[str]") -> None:
    global worker_options
    begin()
    worker_options = replace(options, compute=replace(options.compute, device=devices.get()))


@cache
def worker_translator() -> steps.Translator:
    """This process's translator, loaded at the first block, because an error in `begin_worker` would break the pool."""
    import torch

    torch.set_num_threads(max(1, torch.get_num_threads() // worker_options.compute.devices))
    return steps.load_translator(worker_options, steps.warn)


def translate_block(block: list[str]) -> list[steps.Outcome]:
    return worker_translator().translate_each(block)


def result(future: "Future[Any] | BaseException") -> Any:
    """A process's result; raises the reading thread's exception, or NMTError if the process was killed."""
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
        self.pool, self.count, self.options, self.models = pool, count, options, models
        self.stages = steps.stages_of(options, models)

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[steps.Translation]]:
        """Yield translations in order, as soon as possible; hold about two blocks of `buffer` lines per process."""
        resource_tracker.ensure_running()  # if it started later, with the first process, it would unblock the signal

        def submitted() -> Iterator[Future[Any]]:
            # Ctrl-C reaches every process in a terminal. This thread blocks it, and the processes that it starts
            # inherit the block, so only the main process receives the signal and stops the others.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            for block in steps.arriving_blocks(lines, buffer):
                yield self.pool.submit(translate_block, block)

        with steps.read_by_thread(submitted(), 2 * self.count) as pending:
            yield from steps.lines_of(map(result, iter(pending.get, None)))


@contextmanager
def on_devices(config: JobConfig, names: Sequence[str] = ()) -> Iterator[DeviceTranslator]:
    """A translator with one process per named device; default: the GPUs that `config` asks for."""
    names = names or device_names(config)
    models = steps.find_models(config.translator.run)
    options = steps.with_engine(config.translator, steps.warn, models)
    # runs/latest may point elsewhere by the time a process reads it.
    options = replace(options, run=[str(folder.resolve()) for folder in models.folders])
    context = get_context("spawn")
    devices = context.SimpleQueue()
    for name in names:
        devices.put(name)
    with worker_pool(
        len(names), mp_context=context, initializer=begin_worker, initargs=(options, devices)
    ) as pool:
        yield DeviceTranslator(pool, len(names), options, models)
