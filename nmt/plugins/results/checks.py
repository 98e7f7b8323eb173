"""The results of `nmt verify`."""

from typing import NamedTuple

# Results with exit code 1 are in capitals.
SAME = "same"
DIFFERS = "DIFFERS"
UNCHECKED = "unchecked"
MISSING = "MISSING"
ANOTHER = "another environment"
"""Bits differ, but the environment is another one, in which the last bits may differ."""
RESULT_WIDTH = max(len(result) for result in (SAME, DIFFERS, UNCHECKED, MISSING, ANOTHER))


class Check(NamedTuple):
    """One of the constants above, what was checked, and details."""

    result: str
    what: str
    detail: str


def check_of(same: bool, what: str, detail: str) -> Check:
    return Check(SAME if same else DIFFERS, what, detail)
