"""The exception that users see, and detection of out-of-memory errors, which libraries report in many ways."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager


class NMTError(Exception):
    """An error that a user can fix: one line that says what is wrong, where, and what to do."""


IF_LATIN_1 = "(if the file is in Latin-1, convert it with iconv -f LATIN1 -t UTF-8 FILE > OTHER)"


class SameForAll(NMTError):
    """An error that every training process raises but only the first one reports."""


def how_to_install(extra: str) -> str:
    return f"in your clone of nmt: pip install -c constraints.txt '.[{extra}]'"


def one_line(error: BaseException) -> str:
    """Return another library's error message on one line, cut to 200 characters."""
    return " ".join(str(error).split())[:200].rstrip()


# Messages of torch, the C library, Windows, oneDNN, C++ and the dynamic linker.
OUT_OF_MEMORY = re.compile(
    r"out of memory|t allocate memory|not enough memory|could not create a (memory|primitive$)|bad_alloc"
    "|failed to map segment"
)


def is_out_of_memory(error: BaseException) -> bool:
    is_message = (
        isinstance(error, RuntimeError | ImportError)
        and OUT_OF_MEMORY.search(str(error)) is not None
    )
    return (
        is_message
        or isinstance(error, MemoryError)
        or getattr(error, "errno", None) == errno.ENOMEM
    )


@contextmanager
def enough_memory_or(advice: str) -> Iterator[None]:
    """Raise NMTError with `advice` if memory runs out in the block."""
    try:
        yield
    except (RuntimeError, ImportError, MemoryError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        raise NMTError(
            f"out of memory: {advice}" + (f" ({one_line(error)})" if str(error) else "")
        ) from error
