"""Emphasis in Markdown: which signs belong together, by CommonMark's rules (spec 0.31, 6.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.plugins.documents.nodes import MarkupToken

STRIKE = "~"
"""GitHub's strikethrough, which is written with two signs."""


@dataclass
class Run(MarkupToken):
    """A run of one sign that may open or close emphasis."""

    opens: bool = False
    closes: bool = False

    left: int = 0
    """The number of signs that are in no pair."""

    closing_signs: list[str] = field(default_factory=list)
    """The signs of each tag that closes here, from left to right."""

    opening_signs: list[str] = field(default_factory=list)
    """The signs of each tag that opens here, from right to left."""

    @property
    def sign(self) -> str:
        return self.raw[0]

    @property
    def fewest(self) -> int:
        """The minimum number of signs that a pair takes from each run."""
        return 2 if self.sign == STRIKE else 1

    @property
    def kind_of_closer(self) -> tuple[str, bool, int]:
        """The properties that determine which openers match this run as a closer."""
        return self.sign, self.opens, len(self.raw) % 3

    def can_open_for(self, closer: "Run") -> bool:
        """True if this run and a later one can form a pair."""
        if self.sign != closer.sign:
            return False
        # Only signs that may both open and close are ambiguous.
        if self.sign == STRIKE or not (self.closes or closer.opens):
            return True
        # "The multiple of 3 rule", which keeps *a**b* one element.
        size = len(self.raw)
        size_of_closer = len(closer.raw)
        are_multiples = size % 3 == 0 and size_of_closer % 3 == 0
        return are_multiples or (size + size_of_closer) % 3 > 0

    def tokens(self) -> list[MarkupToken]:
        """The tags in this run, with the remaining signs as text between them."""
        tokens = list[MarkupToken]()
        # Emphasis that ends here has begun before, so its tags come first.
        for signs in self.closing_signs:
            tokens.append(MarkupToken("close", signs, name=signs, optional=True))
        if self.left:
            rest = self.sign * self.left
            tokens.append(MarkupToken("text", rest, rest))
        for signs in reversed(self.opening_signs):
            tokens.append(MarkupToken("open", signs, name=signs, optional=True))
        return tokens


def settle_emphasis(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """The tokens with tags in place of each run of signs; signs without a partner become text.

    For example, the runs of **a* are two signs and one: the result is the text "*", an opening tag,
    "a" and a closing tag.
    """
    pair_signs([token for token in tokens if isinstance(token, Run)])
    result = list[MarkupToken]()
    for token in tokens:
        if isinstance(token, Run):
            result += token.tokens()
        else:
            result.append(token)
    return result


def pair_signs(runs: Sequence[Run]) -> None:
    """Find the partners of all signs, as CommonMark does ("process emphasis")."""
    openers = list[Run]()  # runs with signs that may still open emphasis
    # For each kind of closer, the number of first openers that are known not to match it.
    # This keeps the work proportional to the number of runs.
    hopeless = dict[tuple[str, bool, int], int]()
    for run in runs:
        # One run may close several: *a **b***.
        while run.closes and run.left >= run.fewest:
            at = find_opener(run, openers, hopeless.get(run.kind_of_closer, 0))
            if at is None:
                hopeless[run.kind_of_closer] = len(openers)
                break
            opener = openers[at]
            form_pair(opener, run)
            # Openers between the two signs have no partner.
            is_used_up = opener.left < run.fewest
            remaining = at if is_used_up else at + 1
            del openers[remaining:]
            # New openers will take the places of the deleted ones, so nothing is known about them.
            hopeless = {kind: min(number, remaining) for kind, number in hopeless.items()}
        if run.opens and run.left >= run.fewest:
            openers.append(run)


def find_opener(closer: Run, openers: Sequence[Run], first: int) -> int | None:
    """The index of the last opener for a closer, at `first` or behind it."""
    for at in range(len(openers) - 1, first - 1, -1):
        if openers[at].can_open_for(closer):
            return at
    return None


def form_pair(opener: Run, closer: Run) -> None:
    """Pair one or two signs of two runs: `**` rather than `*`, if both have two left."""
    size = 2 if min(closer.left, opener.left) > 1 else 1
    closer.left -= size
    opener.left -= size
    closer.closing_signs.append(closer.sign * size)
    opener.opening_signs.append(opener.sign * size)
