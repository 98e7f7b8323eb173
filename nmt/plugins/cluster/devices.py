"""One translator for several devices: a process for each, and their results in the order of the lines."""

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from multiprocessing import get_context, resource_tracker
from multiprocessing.queues import SimpleQueue
from typing import Any

import nmt.translation as steps
from nmt.config import JobConfig, TranslatorOptions, require
from nmt.errors import NMTError, one_line
from nmt.preparation import begin, worker_pool

worker_config: JobConfig  # in a process of the pool: its configuration, with its own device


def device_names(config: JobConfig) -> list[str]:
    import torch

    compute = config.translator.compute
    count, device, gpus = compute.devices, compute.device, torch.cuda.device_count()
    on_processor = device == "cpu" or (device == "auto" and not gpus)
    require(not on_processor, f"devices={count} is for GPUs; of a processor all cores are used, or threads=N of them")
    require(device in ("auto", "cuda"), f"devices={count}: device={device} is one device; use device=cuda")
    require(count <= gpus, f"devices={count}: GPUs here: {gpus}; ask for no more, or use device=cpu without devices")
    return [f"cuda:{number}" for number in range(count)]


def begin_worker(config: JobConfig, devices: "SimpleQueue[str]") -> None:
    global worker_config
    begin()
    compute = replace(config.translator.compute, device=devices.get())
    worker_config = replace(config, translator=replace(config.translator, compute=compute))


@cache
def worker_translator() -> steps.Translator:
    """The translator of a process, loaded with its first block: an error in `begin_worker` would break the pool."""
    import torch

    torch.set_num_threads(max(1, torch.get_num_threads() // worker_config.translator.compute.devices))
    return steps.load_translator(worker_config.translator, steps.warn)


def translate_block(block: list[str]) -> list[steps.Outcome]:
    """In a process of the pool: translate. NMTError, which names the device, for any other error."""
    try:
        return worker_translator().translate_each(block)
    except NMTError:
        raise
    except Exception as error:
        device = worker_config.translator.compute.device
        raise NMTError(f"{device}: {type(error).__name__}: {one_line(error)}") from error


def result(future: "Future[Any] | BaseException") -> Any:
    """The result of a process; raises the exception of the reader, or NMTError for a process that was killed."""
    if isinstance(future, BaseException):
        raise future
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise NMTError("a process that translates died: is memory short?") from error


class DeviceTranslator:
    """Translates a stream of lines, as Translator does, by a pool of `count` processes."""

    def __init__(self, pool: ProcessPoolExecutor, count: int, options: TranslatorOptions, models: steps.Models) -> None:
        self.pool, self.count, self.options, self.models = pool, count, options, models
        self.stages = steps.stages_of(options, models)

    def run(self, task: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """What a task makes of each item, in their order; about two items for each process are in memory."""
        resource_tracker.ensure_running()  # else the first process would start it, and unblock the signal

        def submitted() -> Iterator[Future[Any]]:
            # By one thread. Ctrl-C reaches all processes of a terminal, but this process ends the others. So the
            # processes that the thread starts inherit that they do not receive the signal.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            for item in items:
                yield self.pool.submit(task, item)

        pending = steps.read_by_thread(submitted(), 2 * self.count)
        return map(result, iter(pending.get, None))

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[steps.Translation]]:
        """The translations of a stream of lines, in order and as soon as possible, in blocks of at most `buffer`."""
        return steps.lines_of(self.run(translate_block, steps.arriving_blocks(lines, buffer)))


@contextmanager
def on_devices(config: JobConfig, names: Sequence[str] = ()) -> Iterator[DeviceTranslator]:
    """A translator with a process on each of these devices, or of the GPUs of `config`, until the block ends."""
    names = names or device_names(config)
    models = steps.find_models(config.translator.run)
    options = steps.with_engine(config.translator, steps.warn, models)
    # runs/latest may point elsewhere by the time a process reads it.
    options = replace(options, run=[str(folder.resolve()) for folder in models.folders])
    config = replace(config, translator=options)
    context = get_context("spawn")
    devices = context.SimpleQueue()
    for name in names:
        devices.put(name)
    with worker_pool(len(names), mp_context=context, initializer=begin_worker, initargs=(config, devices)) as pool:
        yield DeviceTranslator(pool, len(names), options, models)
