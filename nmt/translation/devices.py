"""One translator for several devices: a process for each, and their results in the order of the lines."""

import queue
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context, resource_tracker
from multiprocessing.queues import SimpleQueue

from nmt.config import TranslateConfig
from nmt.errors import NMTError, one_line
from nmt.model_directory.description import find_model_directory
from nmt.preparation.workers import begin, worker_pool
from nmt.translation.load import choose_device, load_translator
from nmt.translation.segments import LongLine
from nmt.translation.translator import Translation, Translator, arriving_blocks


def device_names(config: TranslateConfig) -> list[str]:
    """The device of each process; NMTError where there are not so many."""
    import torch

    count, device = config.devices, config.device
    found = torch.cuda.device_count()
    if device == "auto":
        device = "cuda" if found else "cpu"
    if device == "cpu":
        return ["cpu"] * count
    if device != "cuda":
        choose_device(device)
        raise NMTError(f"devices={count}: device={device} is one device; use device=cuda or device=cpu")
    if count > found:
        there = "is 1 GPU" if found == 1 else f"are {found} GPUs"
        raise NMTError(f"devices={count}: there {there} here; ask for no more, or use device=cpu")
    return [f"cuda:{number}" for number in range(count)]


@dataclass
class Answer:
    """A process's translations of a block, and notices for the user."""

    translations: list[list[Translation]]
    long_line: LongLine | None
    """The line behind these translations, if the model has no positions for it."""
    notices: list[str]


class Worker:
    """A process that translates on one device; it loads the model with its first block."""

    def __init__(self, config: TranslateConfig) -> None:
        self.config, self.notices = config, list[str]()
        self.translator: Translator | None = None

    def load(self) -> Translator:
        import torch

        torch.set_num_threads(max(1, torch.get_num_threads() // self.config.devices))
        return load_translator(self.config, self.notices.append)

    def translate(self, block: list[str]) -> Answer:
        """A block's translations; NMTError, which names the device, for any other error."""
        self.notices.clear()
        try:
            self.translator = self.translator or self.load()
            return Answer(*self.translator.translate_block(block), self.notices)
        except NMTError:
            raise
        except Exception as error:
            raise NMTError(f"{self.config.device}: {type(error).__name__}: {one_line(error)}") from error


worker: Worker
"""In a process of the pool."""


def begin_worker(config: TranslateConfig, devices: "SimpleQueue[str]") -> None:
    """In a new process: take a device."""
    global worker
    begin()
    worker = Worker(replace(config, device=devices.get()))


def translate_block(block: list[str]) -> Answer:
    """In a process of the pool: translate."""
    return worker.translate(block)


class DeviceTranslator:
    """Lines to translations like Translator.stream, on several devices, by a pool of processes."""

    def __init__(self, pool: ProcessPoolExecutor, count: int, notice: Callable[[str], None]) -> None:
        """`notice` is called with what a user should know."""
        self.pool, self.count, self.notice, self.noticed = pool, count, notice, set[str]()

    def answer(self, future: Future[Answer]) -> Answer:
        """The answer of a process; NMTError where it met an error, or was killed."""
        try:
            answer = future.result()
        except BrokenProcessPool as error:
            raise NMTError("a process that translates died: is memory short?") from error
        for words in answer.notices:
            # All processes give the same notices, but for the numbers in them.
            shape = re.sub(r"\d[\d,]*", "", words)
            if shape not in self.noticed:
                self.noticed.add(shape)
                self.notice(words)
        return answer

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[Translation]]:
        """Translations of a stream of lines, in order and as soon as can be.

        Blocks of at most `buffer` lines go to the processes; two blocks for each, and two more, are in memory at most.
        """
        pending: queue.Queue[Future[Answer] | None] = queue.Queue(2 * self.count)

        def feed() -> None:
            # Ctrl-C reaches all processes of a terminal. Those that this thread starts inherit that they do not hear
            # it: this one ends them.
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                for block in arriving_blocks(lines, buffer):
                    pending.put(self.pool.submit(translate_block, block))
                pending.put(None)
            except BaseException as error:
                failed = Future[Answer]()
                failed.set_exception(error)
                pending.put(failed)

        resource_tracker.ensure_running()  # or the first process would start it, and unblock the signal
        threading.Thread(target=feed, daemon=True).start()
        done = 0
        for future in iter(pending.get, None):
            answer = self.answer(future)
            yield from answer.translations
            done += len(answer.translations)
            if answer.long_line:
                raise LongLine(done, answer.long_line.problem)


@contextmanager
def on_devices(config: TranslateConfig, notice: Callable[[str], None]) -> Iterator[DeviceTranslator]:
    """A translator whose processes end with the block; after an exception, whatever they are doing."""
    # runs/latest may be led elsewhere while processes start.
    config = replace(config, run=[str(find_model_directory(name).resolve()) for name in config.run])
    names, context = device_names(config), get_context("spawn")
    devices = context.SimpleQueue()
    for name in names:
        devices.put(name)
    with worker_pool(len(names), mp_context=context, initializer=begin_worker, initargs=(config, devices)) as pool:
        yield DeviceTranslator(pool, len(names), notice)
