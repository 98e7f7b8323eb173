"""Worker processes that end with their command, however it ends."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import active_children, parent_process
from typing import Any


def end_with_parent() -> None:
    """Wait, in a thread of a worker, for its parent's end, even by SIGKILL; then nobody waits for the work."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def begin() -> None:
    """Begin a worker. Ctrl-C in a terminal reaches all processes, but the parent is to end the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # what a worker inherits stays: the garbage collector need not go through it again and again
    threading.Thread(target=end_with_parent, daemon=True).start()


def stop_waiting(pool: ProcessPoolExecutor) -> None:
    """Close this process's ends of the pipes to workers that were killed, so that the pool's threads end, too.

    Half an answer of a worker would be waited for without end. Tasks on their way to the workers fill a pipe that
    nobody reads; there, Python closes our end itself since 3.11.5 (python/cpython#94777), and one of two threads that
    close a file at once would close whatever was opened under its number between them.
    """
    queues: Any = pool
    with suppress(AttributeError, OSError):
        queues._result_queue._writer.close()
    if sys.version_info < (3, 11, 5):
        with suppress(AttributeError, OSError):
            queues._call_queue._reader.close()


@contextmanager
def worker_pool(count: int, **options: Any) -> Iterator[ProcessPoolExecutor]:
    """A pool within a block; where that ends by an exception, what the workers are doing is not waited for.

    `options` are the executor's; an initializer of one's own has to call `begin`.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(count, **{"initializer": begin, **options})
    try:
        yield pool
    except BaseException:
        for worker in set(active_children()) - others:
            worker.kill()
        stop_waiting(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Raise an exception at SIGTERM, as Ctrl-C does, so that the block cleans up; the exit code is 143."""

    def end(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():  # which alone may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
