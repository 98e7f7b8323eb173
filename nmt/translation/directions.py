"""The languages between which a line is translated."""

from typing import NamedTuple


class Direction(NamedTuple):
    """A source and a target language; "" for one that is not known."""

    source: str = ""
    target: str = ""


UNKNOWN = Direction()
