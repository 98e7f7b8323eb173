"""The one exception that users see, and memory that runs out, which is told as one wherever that happens."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager


class NMTError(Exception):
    """Something that a user can mend: one line that says what is wrong, where, and what to do.

    The command line prints the message and exits with code 2.
    """


class SameForAll(NMTError):
    """What every process of a training meets alike: the first one tells it for all."""


def how_to_install(extra: str) -> str:
    """What to type where a library is missing that only some commands need."""
    return f"in the clone of nmt: pip install -c constraints.txt '.[{extra}]'"


def one_line(error: BaseException) -> str:
    """What an error of a library says, without line ends and not at any length."""
    return " ".join(str(error).split())[:200]


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that a device, or the processor's allocator, had no memory left."""
    # torch's, the C library's, Windows', oneDNN's and C++'s.
    words = r"out of memory|t allocate memory|not enough memory|could not create a (memory|primitive$)|bad_alloc"
    words += "|failed to map segment"
    return (
        isinstance(error, MemoryError)
        or (isinstance(error, OSError) and error.errno == errno.ENOMEM)
        or (isinstance(error, RuntimeError | ImportError) and re.search(words, str(error)) is not None)
    )


@contextmanager
def enough_memory_or(advice: str) -> Iterator[None]:
    """NMTError with what to do, where memory runs out within."""
    try:
        yield
    except (RuntimeError, ImportError, MemoryError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        raise NMTError(f"out of memory: {advice}" + (f" ({one_line(error)})" if str(error) else "")) from error
