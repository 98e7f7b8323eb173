"""A watch over the processes that train together: one that exits early ends the others, with its error."""

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

FIRST_PROCESS = (
    "NMT_FIRST_PROCESS"  # environment variable with the ID of the process that launches all others
)
# Messages from gloo, NCCL and DataLoader after another process has exited.
LOST = re.compile(
    r"gloo/transport|Connection (closed|reset) by peer|DataLoader worker \(pid"
    r"|NCCL (communicator was aborted|error)|ncclRemoteError|ncclSystemError|collective operation timeout"
)
WATCHES = list[Event]()  # the end of a training sets them


def first_process_exited() -> str:
    """The message that the process that launched this one has exited; empty while it is running."""
    first, running = os.environ.get(FIRST_PROCESS), (str(os.getpid()), str(os.getppid()), None)
    return (
        "" if first in running else f"the first process of this training has exited (pid {first})"
    )


def watch(problem: Callable[[], str], seconds: float) -> None:
    """Exit if there is a problem and no error ends the training within some seconds."""
    over = Event()

    def look() -> None:
        while not over.wait(0.3):
            if (message := problem()) and not over.wait(seconds):
                print(f"nmt: {message}: rerun the same command to resume", file=sys.stderr)
                os._exit(2)

    WATCHES.append(over)
    Thread(target=look, daemon=True).start()


def follow_first_process() -> None:
    """Let a launched process exit soon after the first process, even while libraries load."""
    if FIRST_PROCESS in os.environ:
        watch(first_process_exited, 1)


@contextmanager
def watched(trainer: "Trainer") -> Iterator[None]:
    """Raise NMTError if another training process exits early; if communication hangs, print the error and exit.

    After any error, also kill the processes that this one launched.
    """
    is_first = os.environ.setdefault(FIRST_PROCESS, str(os.getpid())) == str(os.getpid())

    def reason() -> str:
        """Which process has exited, and how; empty while all are running."""
        for rank, process in enumerate(launched_processes(trainer), 1):
            if code := process.poll():
                how = (
                    f"was killed by {signal.Signals(-code).name}"
                    if code < 0
                    else f"exited with code {code}"
                )
                return f"process {rank} of this training (pid {process.pid}) {how}"
        return first_process_exited()

    silence_process_observer()
    watch(reason, 10)  # communication may fail by itself; with NCCL, it would hang for minutes
    try:
        yield
    except Exception as error:
        from torch.distributed import DistError

        message, deadline = "", time.monotonic() + 2
        if isinstance(error, RuntimeError | OSError) and not is_out_of_memory(error):
            # A process may still be exiting after its connections close.
            while (
                not (message := reason())
                and launched_processes(trainer)
                and time.monotonic() < deadline
            ):
                time.sleep(0.05)
            if not message and (isinstance(error, DistError) or LOST.search(str(error))):
                message = f"another process of this training has exited ({one_line(error)})"
        for process in launched_processes(trainer):  # they would wait for this one forever
            process.kill()
        if not message:
            raise
        raise NMTError(f"{message}: rerun the same command to resume") from error
    finally:
        while WATCHES:
            WATCHES.pop().set()
        if is_first:
            del os.environ[FIRST_PROCESS]
