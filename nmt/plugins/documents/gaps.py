"""Places between the words of a translation, for tags without words.

A gap is identified by the token that follows it.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf

from nmt.plugins.documents.links import Links
from nmt.plugins.documents.nodes import MarkupToken, Placed
from nmt.plugins.documents.refinement import verb_is_last


class Gaps:
    """Finds places between the tokens of a translation."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self.source = links.source
        self.target = links.target
        self.broken = set[int]()  # gaps with a line break
        self.filled = set[int]()  # offsets with a copy whose mark the translator lost

    def expected(self, node: MarkupToken, parent: Placed) -> int:
        """The gap for a node without aligned words, inside its parent.

        It is beside the partner of an adjacent source word. If such words have no partner, the node
        keeps its relative position.
        """
        low = parent.tokens.start
        high = parent.tokens.stop
        words = self.source.between(parent.node.begin, parent.node.end)
        # The first source token that begins at the node or behind it.
        following = bisect_left(self.source.starts, node.begin)
        # Word order changes, so the words beside a tag show its place better than its position.
        behind = list[int]()  # the gaps behind the partners of the preceding word
        if following > words.start:
            behind = [token + 1 for token in self.links.targets_of[following - 1]]
        before = list[int]()  # the gaps before the partners of the following word
        if following < words.stop:
            before = self.links.targets_of[following]
        if not behind and not before:
            return self.relative(node, parent)
        # A glued tag belongs to the word before it, such as the call of a footnote.
        goes_behind = bool(behind) and (node.is_glued or not before)
        gap = max(behind) if goes_behind else min(before)
        # The partner may be outside of the parent.
        return min(max(gap, low), high)

    def relative(self, node: MarkupToken, parent: Placed) -> int:
        """The gap at which a node keeps its relative position in its parent."""
        words = self.source.between(parent.node.begin, parent.node.end)
        preceding = bisect_left(self.source.starts, node.begin) - words.start
        # The parent may have no words in the source. A node may have been beside the parent: it was
        # put inside for lack of words.
        preceding = min(max(preceding, 0), len(words))
        share = preceding / max(len(words), 1)
        is_first = node.kind == "open" and preceding == 0
        if is_first and verb_is_last(self.source, self.target):
            share = 1  # such as a verb in the imperative
        low = parent.tokens.start
        high = parent.tokens.stop
        return low + round(share * (high - low))

    def place(self, node: MarkupToken, parent: Placed, taken: Mapping[int, int]) -> Placed | None:
        """The place for a tag or an empty element: between tokens, and in no other element.

        `taken` maps tokens to the indices of the elements that have them. The result is None for
        an optional line break that could only be put next to another one.
        """
        # A tag must not split another element, even if that is where it was expected.
        candidates = outside_elements(self.expected(node, parent), parent.tokens, taken)
        gap: int | None
        if node.breaks:
            gap = self.for_break(node, parent, candidates)
            if gap is not None:
                self.broken.add(gap)
            elif node.optional:
                return None  # two consecutive line breaks would create an empty line
            else:
                gap = parent.tokens.stop
        else:
            gap = next(candidates, parent.tokens.stop)
        begin, end = self.edges(gap, node, parent)
        if node.kind == "copy":  # the translator lost its mark
            node = self.with_blanks(node, parent, gap, (begin, end))
            # Two such copies in one gap would form one word; see `with_blanks`.
            self.filled.add(begin)
        return Placed(begin, end, node, range(gap, gap))

    def for_break(self, node: MarkupToken, parent: Placed, candidates: Iterator[int]) -> int | None:
        """The best gap for a line break, which falls between phrases; None if there is none.

        The candidates are sorted by their distance from the expected gap. An optional line break
        must not be next to another.
        """
        expected = self.expected(node, parent)
        best: int | None = None
        least = inf
        for gap in candidates:
            # At the edge of its parent, a line break would separate nothing.
            is_inside = parent.tokens.start < gap < parent.tokens.stop
            if not is_inside or (node.optional and gap in self.broken):
                continue
            distance = abs(gap - expected)
            # Candidates only get farther away, so no later one can cost less.
            if distance >= least:
                break
            cost = distance + self.target.detour(gap)
            if cost < least:
                best = gap
                least = cost
        return best

    def edges(self, gap: int, node: MarkupToken, parent: Placed) -> tuple[int, int]:
        """The span of a node in a gap, which is empty unless a line break replaces a blank."""
        low = parent.tokens.start
        high = parent.tokens.stop
        begin = self.target.ends[gap - 1] if gap > low else parent.begin
        end = self.target.starts[gap] if gap < high else parent.end
        # The line break replaces the blank between the words.
        if node.breaks and low < gap < high:
            return begin, end
        # A glued tag follows its word directly; all others precede the next word, after the blank.
        if node.is_glued or gap == high:
            return begin, begin
        return end, end

    def with_blanks(
        self,
        copy: MarkupToken,
        parent: Placed,
        gap: int,
        span: tuple[int, int],
    ) -> MarkupToken:
        """A copy with blanks that separate it from the words and copies beside it."""
        begin, end = span
        text = self.target.text
        raw = copy.raw
        is_behind_word = gap > parent.tokens.start and not text[begin - 1].isspace()
        # Copies that share a place have no text between them, so the text does not show the first
        # one.
        if (is_behind_word and not copy.is_glued) or begin in self.filled:
            raw = " " + raw
        if gap < parent.tokens.stop and not text[end : end + 1].isspace():
            raw += " "
        return replace(copy, raw=raw)


def gaps_near(center: int, low: int, high: int) -> Iterator[int]:
    """The gaps from `low` to `high`, nearest to `center` first; before it, if two are as near."""
    # The center itself may be outside, in an element that goes around one that was beside it.
    for distance in range(high - low + 1):
        if low <= center - distance <= high:
            yield center - distance
        if distance and low <= center + distance <= high:
            yield center + distance


def outside_elements(center: int, tokens: range, taken: Mapping[int, int]) -> Iterator[int]:
    """The gaps between some tokens that split no element, nearest to `center` first.

    The first and the last gap split none. `taken` maps tokens to elements.
    """
    for gap in gaps_near(center, tokens.start, tokens.stop):
        is_at_end = gap in (tokens.start, tokens.stop)
        if is_at_end or gap not in taken or taken[gap] != taken.get(gap - 1):
            yield gap
