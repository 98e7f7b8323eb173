"""Worker processes that always end with their parent, however that ends."""

import gc
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, parent_process
from typing import Any

from nmt.compat import close_answers


def end_with_parent() -> None:
    """Run in a thread of a worker: exit when the parent has ended, even by SIGKILL."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def begin() -> None:
    """Initialize a worker. Ctrl-C in a terminal reaches all processes, but the parent ends its workers itself."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.freeze()  # inherited objects stay: the garbage collector need not scan them again and again
    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def worker_pool(count: int, **options: Any) -> Iterator[ProcessPoolExecutor]:
    """A process pool for a block; if that ends by an exception, the workers are killed.

    `options` are those of the executor; another initializer must call `begin`.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(count, **{"initializer": begin, **options})
    try:
        yield pool
    except BaseException:
        for worker in set(active_children()) - others:
            worker.kill()
        close_answers(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def ended_by_sigterm() -> Iterator[None]:
    """Turn SIGTERM into an exception, as Ctrl-C is, so that the block cleans up; the exit code is 143."""

    def end(number: int, frame: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
