"""The one exception that users see."""


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
