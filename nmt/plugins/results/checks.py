"""The results of `nmt verify`."""

from typing import NamedTuple

# Results with exit code 1 are in capitals.
SAME = "same"
DIFFERS = "DIFFERS"
UNCHECKED = "unchecked"
MISSING = "MISSING"
ANOTHER = "another environment"
"""Bits differ, but in another environment, where last bits may differ."""
# A hostile bundle or run could ask for thousands of threads, which would stop the machine.
MOST_THREADS_PER_CORE = 16
"""The most threads that a check starts to compute something again."""
RESULT_WIDTH = max(len(result) for result in (SAME, DIFFERS, UNCHECKED, MISSING, ANOTHER))


class Check(NamedTuple):
    """One of the constants above, what was checked, and details."""

    result: str
    what: str
    detail: str


def check_of(same: bool, what: str, detail: str) -> Check:
    return Check(SAME if same else DIFFERS, what, detail)
