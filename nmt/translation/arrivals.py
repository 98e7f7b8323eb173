"""Read lines in a thread, and translate those together that arrive together."""

import queue
import threading
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

Item = TypeVar("Item")


@contextmanager
def read_by_thread(
    items: Iterable[Item], size: int
) -> "Iterator[queue.Queue[Item | BaseException | None]]":
    """A queue of at most `size` items, filled by a thread until the block ends.

    After the last item, it holds None or an exception from `items`.
    """
    arrived: queue.Queue[Item | BaseException | None] = queue.Queue(size)
    # The thread checks it, because a thread cannot be stopped from outside.
    closed = threading.Event()

    def read() -> None:
        try:
            for item in items:
                arrived.put(item)
                # After `put`, which may have waited until the block ended and emptied the queue.
                if closed.is_set():
                    return
            arrived.put(None)
        # Any error at all: without an item, the consumer would wait forever.
        except BaseException as error:
            arrived.put(error)

    # A daemon, because a thread that waits for standard input would keep the process from exiting.
    threading.Thread(target=read, daemon=True).start()
    try:
        yield arrived
    finally:
        # The thread cannot be interrupted while it waits for input; it ends with the next item.
        closed.set()
        with suppress(queue.Empty):  # the thread may be waiting for room
            while True:
                arrived.get_nowait()


def arriving_blocks(
    lines: Iterable[str],
    size: int,
    patience: float = 0.05,
) -> Generator[list[str]]:
    """Yield blocks of at most `size` lines.

    A block has the lines that arrive within `patience` seconds of its first one.
    """
    with read_by_thread(lines, size) as arrived:
        # The first line may come much later, as from a user at a terminal.
        item = arrived.get()  # without a limit of time
        while isinstance(item, str):
            block = [item]
            end = time.monotonic() + patience
            with suppress(queue.Empty):
                while len(block) < size:
                    # `get` rejects a negative time. After the deadline, lines
                    # that are already in the queue still join the block.
                    item = arrived.get(timeout=max(end - time.monotonic(), 0.001))
                    if not isinstance(item, str):
                        break
                    block.append(item)
            yield block
            if isinstance(item, str):
                # None or an error has been taken from the queue already, and nothing follows it.
                item = arrived.get()
        if item is not None:
            # An error of the input comes last, after all lines before it have been yielded.
            raise item
