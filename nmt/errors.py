"""The exceptions that users see, and detection of out-of-memory errors of libraries."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

IF_LATIN_1 = "(if the file is in Latin-1, convert it with iconv -f LATIN1 -t UTF-8 FILE > OTHER)"
LONGEST_QUOTE = 200
"""The maximum number of characters of another library's message."""
OUT_OF_MEMORY = re.compile(
    "out of memory"  # torch
    "|t allocate memory"  # torch ("can't") and the C library ("cannot")
    "|not enough memory"  # torch on Windows
    "|could not create a (memory|primitive$)"  # oneDNN
    "|bad_alloc"  # C++
    "|failed to map segment"  # the dynamic linker
)


class NMTError(Exception):
    """An error that a user can fix: one line that says what is wrong, where, and what to do."""

    def within(self, where: str) -> "NMTError":
        """The same error, with a file or another context in which it occurred."""
        return NMTError(f"{where}: {self}")


class SettingError(NMTError):
    """An error in one key: `WHERE: KEY=VALUE: PROBLEM; ADVICE`.

    Only the key and the problem are always given. A front end that writes keys in another way, such
    as the Python API, renders the parts instead of the line.
    """

    def __init__(
        self,
        problem: str,
        *,
        key: str = "",
        value: str | None = None,
        where: str = "",
        advice: str = "",
    ) -> None:
        self.problem = problem
        self.key = key
        """The full name. Without a value, the line contains it only if the problem mentions it."""
        self.value = value
        """The value as a user writes it after KEY=."""
        self.where = where
        """A file, or the part of a configuration, that contains the key."""
        self.advice = advice
        # Worker processes pickle errors: pickle creates an error from its line, then sets its
        # attributes. That is why only the problem has no default.
        super().__init__(self.line(key))

    def line(self, key: str) -> str:
        """The message, with this name of the key."""
        parts = [self.where] if self.where else []
        if self.value is not None:
            parts.append(f"{key}={self.value}")
        parts.append(self.problem)
        line = ": ".join(parts)
        return f"{line}; {self.advice}" if self.advice else line

    def within(self, where: str) -> "SettingError":
        # A new error, because the line was fixed when this one was created.
        return SettingError(
            self.problem,
            key=self.key,
            value=self.value,
            where=f"{where}: {self.where}" if self.where else where,
            advice=self.advice,
        )


class SameForAll(NMTError):
    """An error that every training process raises but only the first one reports."""


def require(condition: bool, problem: str) -> None:
    """Raise NMTError unless the condition holds."""
    if not condition:
        raise NMTError(problem)


def how_to_install(extra: str) -> str:
    """Advice to install the packages of an extra."""
    root = Path(__file__).resolve().parents[1]
    if (root / "constraints.txt").is_file():
        return f"in your clone of nmt: pip install -c constraints.txt '.[{extra}]'"
    requirement = f"'nmt-toolkit[{extra}]'"
    return f"pip install {requirement}, or uv tool install {requirement}"


def one_line(error: BaseException) -> str:
    """Return another library's error message on one line, cut to LONGEST_QUOTE characters."""
    return " ".join(str(error).split())[:LONGEST_QUOTE].rstrip()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory ran out; libraries raise several types of errors for it."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    # torch and C++ libraries raise RuntimeError, and the dynamic linker causes ImportError. Other
    # errors may quote a user's text, which may match the pattern by chance.
    if not isinstance(error, RuntimeError | ImportError):
        return False
    return OUT_OF_MEMORY.search(str(error)) is not None


@contextmanager
def enough_memory_or(advice: str) -> Iterator[None]:
    """Raise NMTError with `advice` if memory runs out in the block."""
    try:
        yield
    except (RuntimeError, ImportError, MemoryError, OSError) as error:
        if not is_out_of_memory(error):
            raise
        message = f"out of memory: {advice}"
        # A MemoryError of Python's own has no message.
        if str(error):
            message += f" ({one_line(error)})"
        raise NMTError(message) from error
