"""Places the nodes of a sentence in its translation.

An element covers the longest run of translated words that are aligned with its source words. Other
tags go between words.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from nmt.plugins.documents.enclosures import certain, enclosed
from nmt.plugins.documents.gaps import Gaps
from nmt.plugins.documents.links import Links
from nmt.plugins.documents.nodes import Placed, Token
from nmt.plugins.documents.runs import best_runs, find_runs
from nmt.text import INLINE, WITHOUT_BLANKS

NEAR = 20
"""The maximum distance, in tokens, of a word for an element without an aligned word."""


class Placement:
    """Places the nodes inside an element that is placed itself."""

    def __init__(self, links: Links) -> None:
        self.links = links
        self.source = links.source
        self.target = links.target
        self.gaps = Gaps(links)

    def places(self, parent: Placed) -> list[Placed]:
        """The places of an element's nodes, in the order of the translation."""
        nodes = parent.node.children
        placed = self.with_aligned_words(parent)
        taken = dict[int, int]()  # token -> index of the node
        for index, place in placed.items():
            taken.update(dict.fromkeys(place.tokens, index))
        # Nodes without aligned words come second, because they take what the others leave.
        # A list, because `taken_word` may remove from `placed` what it puts inside another element.
        missing = [index for index in range(len(nodes)) if index not in placed]
        for index in missing:
            new_place = self.without_aligned_words(nodes[index], parent, placed, taken)
            if new_place:
                placed[index] = new_place
                taken.update(dict.fromkeys(new_place.tokens, index))
        # A tag without words comes before an element that begins at the same place.
        return sorted(placed.values(), key=lambda place: (place.begin, place.end))

    def with_aligned_words(self, parent: Placed) -> dict[int, Placed]:
        """The places of the nodes with aligned words, by the nodes' indices."""
        nodes = parent.node.children
        owners = dict[int, int]()  # source token -> index of the node
        for index, node in enumerate(nodes):
            # Nodes that overlap are in order, so the later one owns a token that both cover.
            owners.update(dict.fromkeys(self.tokens_of(node), index))
        runs = find_runs(parent.tokens, self.links.sources_of, owners)
        return self.placed_runs(nodes, best_runs(runs, self.links.copies_in_target), parent)

    def tokens_of(self, node: Token) -> range:
        """The source tokens of a node."""
        return self.source.between(node.begin, node.end)

    def placed_runs(
        self,
        nodes: Sequence[Token],
        runs: dict[int, range],
        parent: Placed,
    ) -> dict[int, Placed]:
        """The places of nodes with these runs of aligned words, which brackets may change."""
        taken = dict[int, int]()

        def is_free(index: int, token: int) -> bool:
            """Whether the node with this index may get a token."""
            # A node may have only what its parent has, and what no other node has.
            return token in parent.tokens and taken.get(token, index) == index

        # Each node keeps what is certainly its own, even if an earlier node could use it.
        for index, run in runs.items():
            node = nodes[index]
            # A bracket or a final mark at an end of a run may belong to another element.
            if node.kind == "open":
                run = certain(self.source, self.tokens_of(node), self.target, run)
            taken.update(dict.fromkeys(run, index))
        # Then brackets and final marks go to the first node that may have them.
        placed = dict[int, Placed]()
        for index, run in runs.items():
            node = nodes[index]
            if node.kind == "open":
                run = self.enclosed(node, run, partial(is_free, index))
            if run:
                placed[index] = self.covering(node, run)
                taken.update(dict.fromkeys(run, index))
        return placed

    def enclosed(self, node: Token, run: range, is_free: Callable[[int], bool]) -> range:
        """A run with the brackets that belong to an element; it may grow by tokens that are free.

        It may also be empty.
        """
        return enclosed(self.source, self.tokens_of(node), self.target, run, is_free)

    def covering(self, node: Token, tokens: range) -> Placed:
        """The place of a node that covers these tokens."""
        begin = self.target.starts[tokens[0]]
        end = self.target.ends[tokens[-1]]
        return Placed(begin, end, node, tokens)

    def without_aligned_words(
        self,
        node: Token,
        parent: Placed,
        placed: dict[int, Placed],
        taken: dict[int, int],
    ) -> Placed | None:
        """The place of a node that no word is aligned with; None to leave it out."""
        if node.kind == "open":
            # An element should have a word, so the words between elements come first, then those in
            # them.
            place = self.free_word(node, parent, taken)
            place = place or self.taken_word(node, parent, placed, taken)
            if place:
                return place
        # An element that finds no word, and any other tag, goes between two words.
        return self.gaps.place(node, parent, taken)

    def free_word(self, node: Token, parent: Placed, taken: dict[int, int]) -> Placed | None:
        """The place of an element without aligned words: the nearest word that is free."""
        gap = self.gaps.expected(node, parent)
        # A glued element, such as the call of a footnote, belongs to the word before it.
        candidates = [gap - 1, gap] if node.is_glued else [gap, gap - 1]
        # In scripts without blanks, tokens are short, and mostly not words with content.
        if WITHOUT_BLANKS.search(self.target.text):
            candidates += tokens_near(gap)

        def is_free(token: int) -> bool:
            return token in parent.tokens and token not in taken

        free = [token for token in candidates if is_free(token)]
        # A name that the translation keeps is the partner of another source word.
        word = self.first_word(token for token in free if token not in self.links.kept_names)
        if word is None:
            return None
        run = self.enclosed(node, range(word, word + 1), is_free)
        return self.covering(node, run) if run else None

    def first_word(self, tokens: Iterable[int]) -> int | None:
        """The first of these tokens with content or, if none has any, the first word."""
        words = [token for token in tokens if self.target.is_word(token)]
        for word in words:
            if self.target.is_content(word):
                return word
        return words[0] if words else None

    def taken_word(
        self,
        node: Token,
        parent: Placed,
        placed: dict[int, Placed],
        taken: dict[int, int],
    ) -> Placed | None:
        """The place of an element for which no word is left.

        It gets the first or last word of another element or, if that has only one, goes around it.
        """
        # A nearer element with one word is only used if no element has a word to spare.
        inner: int | None = None  # index of an element with one word
        for token in tokens_near(self.gaps.expected(node, parent)):
            index = taken.get(token, -1)
            if index not in placed or placed[index].node.kind != "open":
                continue
            other = placed[index]
            words = [word for word in other.tokens if self.target.is_content(word)]
            # The first and the last word can leave an element without dividing it.
            if len(words) > 1 and token in (words[0], words[-1]):
                words.remove(token)
                placed[index], place = self.divided(other, words, node, token)
                return place
            if inner is None and may_nest(node, other.node):
                inner = index
        if inner is None:
            return None
        # Both elements need the same word, so one goes inside the other and is placed again from
        # there.
        inner_place = placed.pop(inner)
        outer = replace(node, children=[*node.children, inner_place.node])
        return inner_place._replace(node=outer)

    def divided(
        self,
        other: Placed,
        words: Sequence[int],
        node: Token,
        token: int,
    ) -> tuple[Placed, Placed]:
        """The places of another element, which keeps these words, and of a node that gets one."""
        # What the other element gives up is free for both, except for the word itself.
        spare = frozenset(other.tokens).difference([token])
        rest = range(words[0], words[-1] + 1)
        # Brackets may leave nothing, but no element must lose its only word.
        rest = self.enclosed(other.node, rest, spare.__contains__) or rest[:1]
        spare = spare.difference(rest)
        run = range(token, token + 1)
        run = self.enclosed(node, run, spare.__contains__) or run
        return self.covering(other.node, rest), self.covering(node, run)


def tokens_near(gap: int) -> Iterator[int]:
    """The tokens before and after a gap, nearest first; they may be outside of the text."""
    for distance in range(NEAR):
        yield gap - 1 - distance
        yield gap + distance


def may_nest(outer: Token, inner: Token) -> bool:
    """Whether one element may go around another that was beside it.

    Links must not contain links.
    """
    return outer.name != inner.name and {outer.name, inner.name} <= INLINE
