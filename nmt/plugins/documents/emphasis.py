"""Emphasis in Markdown: which signs belong together, by CommonMark's rules (spec 0.31, 6.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.plugins.documents.markup import Token

STRIKE = "~"  # GitHub's strikethrough is written with two


@dataclass
class Run(Token):
    """A run of one sign that may open or close emphasis."""

    opens: bool = False
    closes: bool = False
    left: int = 0  # signs that are in no pair
    closing_signs: list[str] = field(default_factory=list)  # from left to right
    opening_signs: list[str] = field(default_factory=list)  # from right to left

    @property
    def sign(self) -> str:
        return self.raw[0]

    def can_open_for(self, closer: "Run") -> bool:
        """True if this run and a later one can form a pair."""
        if self.sign != closer.sign:
            return False
        if self.sign == STRIKE or not (self.closes or closer.opens):
            return True
        sizes = len(self.raw), len(closer.raw)
        return sum(sizes) % 3 > 0 or all(size % 3 == 0 for size in sizes)

    def tokens(self) -> list[Token]:
        """The tags in this run, with the remaining signs as text between them."""
        rest = self.sign * self.left
        tags = [Token("close", signs, name=signs, optional=True) for signs in self.closing_signs]
        if rest:
            tags.append(Token("text", rest, rest))
        for signs in reversed(self.opening_signs):
            tags.append(Token("open", signs, name=signs, optional=True))
        return tags


def settle_emphasis(tokens: Sequence[Token]) -> list[Token]:
    """Replace each run by its tags; signs without a partner become text."""
    runs = [token for token in tokens if isinstance(token, Run)]
    pair(runs)
    result = list[Token]()
    for token in tokens:
        result += token.tokens() if isinstance(token, Run) else [token]
    return result


def pair(runs: Sequence[Run]) -> None:
    """Find the partners of all signs."""
    openers = list[Run]()
    # For each kind of closer, the number of first openers that are known not to match it.
    # This keeps the work proportional to the number of runs.
    hopeless = dict[tuple[str, bool, int], int]()
    for run in runs:
        kind = run.sign, run.opens, len(run.raw) % 3
        least = 2 if run.sign == STRIKE else 1
        while run.closes and run.left >= least:
            at = len(openers) - 1
            while at >= hopeless.get(kind, 0) and not openers[at].can_open_for(run):
                at -= 1
            if at < hopeless.get(kind, 0):
                hopeless[kind] = len(openers)
                break
            opener = openers[at]
            size = 2 if min(run.left, opener.left) > 1 else 1
            for side in (run, opener):
                side.left -= size
            run.closing_signs.append(run.sign * size)
            opener.opening_signs.append(run.sign * size)
            del openers[at + (opener.left >= least) :]
            hopeless = {one: min(number, len(openers)) for one, number in hopeless.items()}
        if run.opens and run.left >= least:
            openers.append(run)
