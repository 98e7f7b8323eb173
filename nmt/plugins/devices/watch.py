"""A watch over the processes that train together: one that exits early ends the others, with its error."""

import os
import re
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from lightning import Trainer
from torch.distributed import DistError

from nmt.compat import launched_processes, silence_process_observer
from nmt.errors import NMTError, is_out_of_memory, one_line

FIRST_PROCESS = "NMT_FIRST_PROCESS"  # environment variable with the ID of the process that launches all others
# Messages from gloo and DataLoader after another process has exited.
LOST = re.compile(r"gloo/transport|Connection (closed|reset) by peer|DataLoader worker \(pid")


def end_launched_processes(trainer: Trainer) -> None:
    """Kill the processes that Lightning launched, because they would wait for this one forever."""
    for process in launched_processes(trainer):
        process.kill()


@contextmanager
def watched(trainer: Trainer) -> Iterator[None]:
    """Raise NMTError if another training process exits early; if communication hangs, print the error and exit.

    After any error, also kill the processes that this one launched.
    """
    over, first = Event(), os.environ.setdefault(FIRST_PROCESS, str(os.getpid()))
    is_first = first == str(os.getpid())

    def reason() -> str:
        """Which process has exited, and how; empty while all are running."""
        if not is_first and str(os.getppid()) != first:
            return f"the first process of this training has exited (pid {first})"
        for rank, process in enumerate(launched_processes(trainer), 1):
            if code := process.poll():
                how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
                return f"process {rank} of this training (pid {process.pid}) {how}"
        return ""

    def look() -> None:
        while not over.wait(1):
            # Give communication ten seconds to fail by itself; with NCCL, it would hang for minutes.
            if (message := reason()) and not over.wait(10):
                end_launched_processes(trainer)
                print(f"nmt: {message}: rerun the same command to resume", file=sys.stderr)
                os._exit(2)

    silence_process_observer()
    Thread(target=look, daemon=True).start()
    try:
        yield
    except Exception as error:
        message, deadline = "", time.monotonic() + 2
        if isinstance(error, RuntimeError | OSError) and not is_out_of_memory(error):
            # A process may still be exiting after its connections close.
            while not (message := reason()) and launched_processes(trainer) and time.monotonic() < deadline:
                time.sleep(0.05)
            if not message and (isinstance(error, DistError) or LOST.search(str(error))):
                message = f"another process of this training has exited ({one_line(error)})"
        end_launched_processes(trainer)
        if not message:
            raise
        raise NMTError(f"{message}: rerun the same command to resume") from error
    finally:
        over.set()
        if is_first:
            del os.environ[FIRST_PROCESS]
