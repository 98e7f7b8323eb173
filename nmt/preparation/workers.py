"""Worker processes: how they start, how they end, and how work is given to them in order."""

import fcntl
import gc
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, parent_process
from typing import Any

from nmt import compat
from nmt.config import NMTError


def begin() -> None:
    """Initialize a worker.

    Ctrl-C in a terminal reaches all processes. Workers ignore it, because the parent stops them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A forked worker inherits the handlers of its parent, which may only take note of the signal.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # Inherited objects stay alive, so the garbage collector need not keep scanning them.
    gc.freeze()
    parent = parent_process()
    assert parent is not None
    # When the parent dies, Linux sends SIGIO, which ends this process even if a library's call
    # holds the interpreter's lock. The thread is for other systems, and for a parent that is
    # already dead.
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    # The sentinel is the reading end of a pipe that the parent holds open. The pipe becomes
    # readable when the parent dies, however it dies.
    fcntl.fcntl(parent.sentinel, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(parent.sentinel, fcntl.F_GETFL)
    fcntl.fcntl(parent.sentinel, fcntl.F_SETFL, flags | os.O_ASYNC)

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    # `os._exit` in the thread, because `sys.exit` would end only the thread.
    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def worker_pool(count: int, **options: Any) -> Iterator[ProcessPoolExecutor]:
    """A process pool for a `with` block; an exception in the block kills the workers.

    `options` are passed to the executor; a custom initializer must call `begin`.
    """
    # The executor names its processes only in private attributes (Python 3.14 has a method to kill
    # them), so they are those that did not exist before.
    before = set(active_children())
    options.setdefault("initializer", begin)
    pool = ProcessPoolExecutor(count, **options)
    try:
        yield pool
    # KeyboardInterrupt included: without the kill, `shutdown` would wait for items that nobody
    # needs any more, perhaps for minutes.
    except BaseException:
        for worker in set(active_children()) - before:
            worker.kill()
        compat.close_answers(pool)
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def map_in_order(
    pool: ProcessPoolExecutor,
    ahead: int,
    function: Callable[[Any], Any],
    items: Iterable[Any],
) -> Iterator[Any]:
    """Like `map`, but in the worker processes; at most `ahead` items are read ahead.

    The error of the first item that has one is raised, whether in `function` or in reading it.
    """
    waiting: deque[Future[Any]] = deque()
    problem: NMTError | None = None
    # The executor's own `map` would submit all items at once (before Python 3.14 it has no limit),
    # so that a whole corpus would wait in memory.
    iterator = iter(items)
    while True:
        try:
            item = next(iterator)
        except StopIteration:
            break
        except NMTError as error:
            # The items before this one may have an error of an earlier line, which the user should
            # see first. So their results come before this error.
            problem = error
            break
        # The next item is read only when the oldest result is taken, so results do not pile up
        # before a slow consumer.
        waiting.append(pool.submit(function, item))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()
    if problem:
        raise problem
