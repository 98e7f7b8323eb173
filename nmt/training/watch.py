"""A watch over processes that train together: if one exits early, the rest exit, too."""

import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from nmt.compat import launched_processes, silence_process_observer
from nmt.errors import NMTError, is_out_of_memory, one_line

if TYPE_CHECKING:
    from lightning import Trainer

FIRST_PROCESS = "NMT_FIRST_PROCESS"
"""The environment variable with the ID of the process that launches all others."""

LOST_CONNECTION = re.compile(
    r"gloo/transport|Connection (closed|reset) by peer|DataLoader worker \(pid"
    r"|NCCL (communicator was aborted|error)|ncclRemoteError|ncclSystemError"
    r"|collective operation timeout"
)
"""Matches the errors of gloo, NCCL and DataLoader after another process has exited."""

LOOK_SECONDS = 0.3
"""Seconds between two checks of the other processes."""

EXIT_SECONDS = 2.0
"""A process may still be exiting this long after its connections close."""

ends_of_watches: list[Event] = []
"""Set at the end of a training, which the threads of this process watch."""


def first_process_exited() -> str:
    """The message that the process that launched this one has exited; empty while it is running."""
    first = os.environ.get(FIRST_PROCESS)
    # After a process exits, its children have another parent.
    if first is None or first in (str(os.getpid()), str(os.getppid())):
        return ""
    return f"the first process of this training has exited (pid {first})"


def watch(problem: Callable[[], str], seconds: float) -> None:
    """Exit if there is a problem and no error ends the training within some seconds."""
    over = Event()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            message = problem()
            if message and not over.wait(seconds):
                print(f"nmt: {message}: rerun the same command to resume", file=sys.stderr)
                # sys.exit would end only this thread, while the main thread hangs in a library.
                os._exit(2)

    ends_of_watches.append(over)
    # A daemon, so that it does not keep a process alive that ends in any other way.
    Thread(target=look, daemon=True).start()


def follow_first_process() -> None:
    """Let a launched process exit soon after the first process, even while libraries load."""
    if FIRST_PROCESS in os.environ:
        watch(first_process_exited, 1)


def exited_process(trainer: "Trainer") -> str:
    """Which training process has exited, and how; empty while all are running."""
    for rank, process in enumerate(launched_processes(trainer), start=1):
        code = process.poll()
        # None while the process is running, 0 once it has ended well.
        if not code:
            continue
        if code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"exited with code {code}"
        return f"process {rank} of this training (pid {process.pid}) {how}"
    return first_process_exited()


def cause_of(error: Exception, trainer: "Trainer") -> str:
    """Which exit of another process caused an error; empty if none did."""
    from torch.distributed import DistError

    # Lost connections raise only these types; any other error belongs to this process.
    if not isinstance(error, RuntimeError | OSError) or is_out_of_memory(error):
        return ""
    deadline = time.monotonic() + EXIT_SECONDS
    message = exited_process(trainer)
    while not message and launched_processes(trainer) and time.monotonic() < deadline:
        time.sleep(0.05)
        message = exited_process(trainer)
    if message:
        return message
    if isinstance(error, DistError) or LOST_CONNECTION.search(str(error)):
        return f"another process of this training has exited ({one_line(error)})"
    return ""


@contextmanager
def watched(trainer: "Trainer") -> Iterator[None]:
    """Raise NMTError if another training process exits early.

    If communication hangs, print the error and exit. After any error, also kill the processes that
    this one launched.
    """
    ours = str(os.getpid())
    # Lightning starts the other processes with a copy of this environment.
    is_first = os.environ.setdefault(FIRST_PROCESS, ours) == ours
    silence_process_observer()
    # Communication may fail by itself; with NCCL, it would hang for minutes.
    watch(lambda: exited_process(trainer), seconds=10)
    try:
        yield
    except Exception as error:
        message = cause_of(error, trainer)
        for process in launched_processes(trainer):  # otherwise, they would wait forever
            process.kill()
        if not message:
            raise
        raise NMTError(f"{message}: rerun the same command to resume") from error
    finally:
        # Also the watch of follow_first_process.
        while ends_of_watches:
            ends_of_watches.pop().set()
        if is_first:
            del os.environ[FIRST_PROCESS]
