"""Errors for clients, and a log without clients' texts."""

import logging
import sys
import time
import traceback
from collections import OrderedDict
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from nmt.config import NMTError, is_out_of_memory

MOST_CLIENTS = 100_000
"""The maximum number of clients to track; the client that was idle longest is dropped first."""
RETRIED = (429, 503)
"""Statuses after which a client should try again."""
LOGGED_PER_MINUTE = 30
"""Log lines for each kind of event that a client can cause."""


class Failed(HTTPException):
    """A request or line that cannot be answered, with the message for the client.

    `more` are further keys of the answer.
    """

    def __init__(self, status: int, problem: str, retry_seconds: int = 5, **more: Any) -> None:
        headers = None
        if status in RETRIED:
            headers = {"Retry-After": str(retry_seconds)}
        # `HTTPException` has no place for further keys of the answer.
        super().__init__(status, problem, headers)
        self.more = more


class Rate:
    """A token bucket per client, sized for one minute's requests."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self.buckets = OrderedDict[str, tuple[float, float]]()
        """The tokens left and the time of the latest request; the longest idle client is first."""

    def wait(self, client: str, now: float | None = None) -> float:
        """Count a request; return 0 or, if it comes too soon, the number of seconds to wait."""
        if now is None:
            # The wall clock may be set back, which would block clients.
            now = time.monotonic()
        # Popped and added again, which moves the client to the end of the order.
        left, before = self.buckets.pop(client, (float(self.per_minute), now))
        # The bucket refills continuously, so a client can spread requests or send a minute's at
        # once.
        left = min(self.per_minute, left + (now - before) * self.per_minute / 60)
        may_pass = left >= 1
        # A refused request costs nothing, or impatient clients would never get in again.
        self.buckets[client] = (left - 1 if may_pass else left, now)
        # A sender with many IPv6 addresses could otherwise fill the memory.
        if len(self.buckets) > MOST_CLIENTS:
            self.buckets.popitem(last=False)
        if may_pass:
            return 0.0
        return (1 - left) * 60 / self.per_minute


LOGGED = Rate(LOGGED_PER_MINUTE)


def log(text: str) -> None:
    print(f"nmt: {text}", file=sys.stderr, flush=True)


def log_client(kind: str, text: str = "") -> None:
    """Log an event that a client caused, unless too many of its kind were logged recently."""
    if not LOGGED.wait(kind):
        log(f"{kind}{text}")


def log_error(error: BaseException) -> None:
    """Log where an error was raised, but not its message, which may contain a client's text."""
    frames = traceback.extract_tb(error.__traceback__)
    where = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-4:]))
    log_client(f"{type(error).__name__} at {where}")


def failure_of(error: Exception) -> Failed:
    """The failure for clients; logs an unexpected error."""
    if isinstance(error, Failed):
        return error
    if isinstance(error, NMTError):
        return Failed(400, str(error))
    if isinstance(error, ClientDisconnect):
        return Failed(499, "the client disconnected")
    log_error(error)
    if is_out_of_memory(error):
        return Failed(503, "out of memory; send less text per request")
    return Failed(500, "internal error; see the server's log")


class PlaceHandler(logging.Handler):
    """Logs where a library reported something.

    Its message is not logged, because it may contain a client's text.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1]:
            log_error(record.exc_info[1])
        else:
            where = f"{record.pathname}:{record.lineno}"
            log_client(f"{record.levelname.lower()} of {record.name} at {where}")
