"""What the target of an entry must keep of its source, such as placeholders."""

from collections.abc import Sequence
from enum import Enum

from nmt.config import NMTError
from nmt.flags import is_placeholder_wrong
from nmt.items import FIXED, USUAL, Finder, Items, Span
from nmt.translation import MemoryEntry


class Fit(Enum):
    """How well the target of an entry keeps the items of its source."""

    SAME = "same"
    OTHER_NUMBERS = "other numbers"
    """It has other numbers, units, dates or keys. A person may write these in another form."""
    UNUSABLE = "unusable"
    """It has other placeholders, addresses, code, or items that the user protects."""


class KeptItems:
    """Compares the items of entries; `kinds` is the option `protect`."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.all = Finder(kinds)
        self.of_user = Finder([kind for kind in kinds if kind != USUAL])

    def fit(self, entry: MemoryEntry) -> Fit:
        source, target, _ = entry
        if is_placeholder_wrong(source, target):
            return Fit.UNUSABLE
        try:
            stretches = self.all.stretches(source)
            fixed = self.fixed(source, stretches)
        # A pattern of the user takes too long. The line goes to the stage that refuses it.
        except NMTError:
            return Fit.UNUSABLE
        if fixed and not Items(source, fixed).arrive(target):
            return Fit.UNUSABLE
        if stretches and not Items(source, stretches).arrive(target):
            return Fit.OTHER_NUMBERS
        return Fit.SAME

    def fixed(self, source: str, stretches: Sequence[Span]) -> list[Span]:
        """Those of a text's items that a person must not write in another form, either."""
        of_user = self.of_user.stretches(source)
        fixed = list[Span]()
        for begin, end in stretches:
            is_of_user = any(first < end and begin < stop for first, stop in of_user)
            if is_of_user or FIXED.search(source, begin, end):
                fixed.append((begin, end))
        return fixed
