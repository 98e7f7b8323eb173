"""One translator for several devices: a process for each, and their results in the order of the lines."""

import queue
import re
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Self

from nmt.config import TranslateConfig
from nmt.errors import NMTError, one_line
from nmt.model_directory.description import find_model_directory
from nmt.preparation.workers import end_with_parent
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
    """What a process gives for a block: translations, or the error that it met."""

    translations: list[list[Translation]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    error: str | None = None
    long_line: str | None = None
    """What is said of the line behind these translations, which the model has no positions for."""


def work(config: TranslateConfig, connection: Connection) -> None:
    """A process of its own: loads the model, says so with an empty answer, and translates blocks until it is killed."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    notices: list[str] = []
    try:
        import torch

        torch.set_num_threads(max(1, torch.get_num_threads() // config.devices))
        translator = load_translator(config, notices.append)
        connection.send(Answer(notices=notices))
        while True:
            block = connection.recv()
            notices.clear()
            connection.send(translated(translator, block, notices))
    except NMTError as error:
        connection.send(Answer(error=str(error)))
    except (EOFError, BrokenPipeError):
        return
    except Exception as error:
        connection.send(Answer(error=f"{config.device}: {type(error).__name__}: {one_line(error)}"))


def translated(translator: Translator, block: list[str], notices: list[str]) -> Answer:
    """A block's translations, as far as they go."""
    try:
        return Answer(translator.translate(block), notices)
    except LongLine as error:
        return Answer(translator.translate(block[: error.place]), notices, long_line=error.problem)


class Worker:
    """A process as its parent sees it."""

    def __init__(self, config: TranslateConfig) -> None:
        self.device = config.device
        context = get_context("spawn")
        self.connection, other_end = context.Pipe()
        self.process: SpawnProcess = context.Process(target=work, args=(config, other_end), daemon=True)
        # Ctrl-C in a terminal reaches all processes: this one ends the others, which inherit that they do not hear it.
        resource_tracker.ensure_running()  # or start() does it, and unblocks the signal
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self.process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        other_end.close()

    def answer(self) -> Answer:
        """What the process says next; NMTError where that is an error, or it died."""
        try:
            answer: Answer = self.connection.recv()
        except (EOFError, ConnectionError) as error:
            raise self.died() from error
        if answer.error is not None:
            raise NMTError(answer.error)
        return answer

    def translate(self, block: list[str]) -> Answer:
        try:
            self.connection.send(block)
        except ConnectionError as error:
            raise self.died() from error
        return self.answer()

    def died(self) -> NMTError:
        self.process.join()
        return NMTError(
            f"the process that translates on {self.device} died (exit code {self.process.exitcode}): is memory short?"
        )


class DeviceTranslator:
    """Lines to translations like Translator.stream, on several devices; a context, within which its processes live."""

    def __init__(self, config: TranslateConfig, notice: Callable[[str], None]) -> None:
        """Load all models, which takes seconds; `notice` is told what a user should know of."""
        self.notice, self.told = notice, set[str]()
        # runs/latest may be led elsewhere while processes start.
        runs = [str(find_model_directory(name).resolve()) for name in config.run]
        devices = device_names(config)
        self.pool = ThreadPoolExecutor(len(devices))
        self.workers: list[Worker] = []
        self.free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        try:
            for device in devices:
                self.workers.append(Worker(replace(config, run=runs, device=device)))
            for worker in self.workers:
                self.tell(worker.answer())
                self.free.put(worker)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes, whatever they are doing."""
        for worker in self.workers:
            worker.process.kill()
        self.pool.shutdown(cancel_futures=True)
        for worker in self.workers:
            worker.process.join()
            worker.connection.close()

    def tell(self, answer: Answer) -> Answer:
        """Pass notices on: all processes have the same ones, but for the numbers in them."""
        for words in answer.notices:
            shape = re.sub(r"\d[\d,]*", "", words)
            if shape not in self.told:
                self.told.add(shape)
                self.notice(words)
        return answer

    def translate(self, block: list[str]) -> Answer:
        """A block's translations, by a process that has nothing else to do."""
        worker = self.free.get()
        try:
            return worker.translate(block)
        finally:
            self.free.put(worker)

    def stream(self, lines: Iterable[str], buffer: int) -> Iterator[list[Translation]]:
        """Translations of a stream of lines, in order and as soon as can be.

        Blocks of at most `buffer` lines go to the processes; two blocks for each, and two more, are in memory at most.
        """
        pending: queue.Queue[Future[Answer] | None] = queue.Queue(2 * len(self.workers))

        def feed() -> None:
            try:
                for block in arriving_blocks(lines, buffer):
                    pending.put(self.pool.submit(self.translate, block))
                pending.put(None)
            except BaseException as error:
                failed = Future[Answer]()
                failed.set_exception(error)
                pending.put(failed)

        threading.Thread(target=feed, daemon=True).start()
        done = 0
        for future in iter(pending.get, None):
            answer = self.tell(future.result())
            yield from answer.translations
            done += len(answer.translations)
            if answer.long_line:
                raise LongLine(done, answer.long_line)
