"""Places the nodes of a sentence in its translation.

An element covers the longest run of translated words that are aligned with its source words. Other
tags go between words.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from nmt.plugins.documents.enclosures import certain_part, with_own_brackets
from nmt.plugins.documents.gaps import Gaps
from nmt.plugins.documents.links import Links
from nmt.plugins.documents.nodes import MarkupToken, Placed
from nmt.plugins.documents.runs import best_runs, find_runs
from nmt.plugins.documents.trees import all_nodes
from nmt.text import INLINE, WITHOUT_BLANKS

# Farther away, a word has hardly anything to do with the element.
NEAR = 20
"""The maximum distance, in tokens, of a word for an element without an aligned word."""


@dataclass
class Siblings:
    """The nodes of one element while they get their places."""

    parent: Placed
    """The element, which has a place already."""

    placed: dict[int, Placed]
    """The places so far, by the index of the node among its siblings."""

    owners: dict[int, int]
    """MarkupToken of the translation -> index of the node that has it."""

    def add(self, index: int, place: Placed) -> None:
        """Place a node, which then owns the tokens of its place."""
        self.placed[index] = place
        self.owners.update(dict.fromkeys(place.tokens, index))

    def is_free(self, token: int) -> bool:
        """Whether a token belongs to the element, but to none of its nodes."""
        return token in self.parent.tokens and token not in self.owners


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
        siblings = Siblings(parent, {}, {})
        for index, place in self.with_aligned_words(parent).items():
            siblings.add(index, place)
        # Nodes without aligned words come second, because they take what the others leave.
        # A list, because `shared_word` may remove a place: of a node that it puts inside another.
        missing = [index for index in range(len(nodes)) if index not in siblings.placed]
        for index in missing:
            new_place = self.without_aligned_words(nodes[index], siblings)
            if new_place:
                siblings.add(index, new_place)
        # A tag without words comes before an element that begins at the same place.
        return sorted(siblings.placed.values(), key=lambda place: (place.begin, place.end))

    def with_aligned_words(self, parent: Placed) -> dict[int, Placed]:
        """The places of the nodes with aligned words, by the nodes' indices."""
        nodes = parent.node.children
        owners = dict[int, int]()  # source token -> index of the node
        for index, node in enumerate(nodes):
            # Nodes that overlap are in order, so the later one owns a token that both cover.
            owners.update(dict.fromkeys(self.tokens_of(node), index))
        runs = find_runs(parent.tokens, self.links.sources_of, owners)
        return self.placed_runs(nodes, best_runs(runs, self.links.copies_in_target), parent)

    def tokens_of(self, node: MarkupToken) -> range:
        """The source tokens of a node."""
        return self.source.between(node.begin, node.end)

    def placed_runs(
        self,
        nodes: Sequence[MarkupToken],
        runs: dict[int, range],
        parent: Placed,
    ) -> dict[int, Placed]:
        """The places of nodes with these runs of aligned words, which brackets may change."""
        taken = dict[int, int]()

        def is_free(index: int, token: int) -> bool:
            """Whether the node with this index may get a token."""
            # A node may have only what its parent has, and what no other node has.
            return token in parent.tokens and taken.get(token, index) == index

        # First, each node gets what is certainly its own, even if an earlier node could use it.
        for index, run in runs.items():
            node = nodes[index]
            # A bracket or a final mark at an end of a run may belong to another element.
            if node.kind == "open":
                run = certain_part(self.source, self.tokens_of(node), self.target, run)
            taken.update(dict.fromkeys(run, index))
        # Then brackets and final marks go to the first node that may have them.
        placed = dict[int, Placed]()
        for index, run in runs.items():
            node = nodes[index]
            if node.kind == "open":
                run = self.with_own_brackets(node, run, partial(is_free, index))
            if run:
                placed[index] = self.covering(node, run)
                taken.update(dict.fromkeys(run, index))
        return placed

    def with_own_brackets(
        self, node: MarkupToken, run: range, is_free: Callable[[int], bool]
    ) -> range:
        """A run with the brackets that belong to an element; it may grow by tokens that are free.

        It may also be empty.
        """
        return with_own_brackets(self.source, self.tokens_of(node), self.target, run, is_free)

    def covering(self, node: MarkupToken, tokens: range) -> Placed:
        """The place of a node that covers these tokens."""
        begin = self.target.starts[tokens[0]]
        end = self.target.ends[tokens[-1]]
        return Placed(begin, end, node, tokens)

    def without_aligned_words(self, node: MarkupToken, siblings: Siblings) -> Placed | None:
        """The place of a node that no word is aligned with; None to leave it out."""
        if node.kind == "open":
            # An element should have a word, so the words between elements come first, then those in
            # them.
            place = self.free_word(node, siblings) or self.shared_word(node, siblings)
            # A word farther away is better than an empty element, such as a link without text.
            place = place or self.free_word(node, siblings, is_far=True)
            if place:
                return place
        # An element that finds no word, and any other tag, goes between two words.
        return self.gaps.place(node, siblings.parent, siblings.owners)

    def free_word(
        self,
        node: MarkupToken,
        siblings: Siblings,
        is_far: bool = False,
    ) -> Placed | None:
        """The place of an element without aligned words: the nearest word that is free.

        The word is directly beside the element's gap, or at most NEAR tokens away if `is_far`.
        """
        gap = self.gaps.expected(node, siblings.parent)
        # A glued element, such as the call of a footnote, belongs to the word before it.
        candidates = [gap - 1, gap] if node.is_glued else [gap, gap - 1]
        # In scripts without blanks, tokens are short, and mostly not words with content.
        if is_far or WITHOUT_BLANKS.search(self.target.text):
            candidates += tokens_near(gap)
        free = [token for token in candidates if siblings.is_free(token)]
        # A name that the translation keeps is the partner of another source word.
        word = self.first_word(token for token in free if token not in self.links.kept_names)
        if word is None:
            return None
        run = self.with_own_brackets(node, range(word, word + 1), siblings.is_free)
        return self.covering(node, run) if run else None

    def first_word(self, tokens: Iterable[int]) -> int | None:
        """The first of these tokens with content or, if none has any, the first word."""
        words = [token for token in tokens if self.target.is_word(token)]
        for word in words:
            if self.target.is_content(word):
                return word
        return words[0] if words else None

    def shared_word(self, node: MarkupToken, siblings: Siblings) -> Placed | None:
        """The place of an element for which no word is left, at the expense of a sibling.

        It gets the first or last word of a near element with several words, or goes around a near
        element with one word. In both cases, the place of the sibling changes. None if there is no
        such element.
        """
        placed = siblings.placed
        # An element to go around; used only if no element has a word to spare.
        to_enclose: int | None = None
        for token in tokens_near(self.gaps.expected(node, siblings.parent)):
            owner = siblings.owners.get(token)
            if owner is None or owner not in placed or placed[owner].node.kind != "open":
                continue
            other = placed[owner]
            words = [word for word in other.tokens if self.target.is_content(word)]
            # The first and the last word can leave an element without dividing it.
            if len(words) > 1 and token in (words[0], words[-1]):
                words.remove(token)
                placed[owner], place = self.divided(other, words, node, token)
                return place
            if to_enclose is None and may_nest(node, other.node):
                to_enclose = owner
        if to_enclose is None:
            return None
        # Both elements need the same word. The inner one loses its place among the siblings: it is
        # placed again as a child of the outer one.
        inner = placed.pop(to_enclose)
        outer = replace(node, children=[*node.children, inner.node])
        return inner._replace(node=outer)

    def divided(
        self,
        other: Placed,
        words: Sequence[int],
        node: MarkupToken,
        token: int,
    ) -> tuple[Placed, Placed]:
        """The places of an element that keeps these words, and of a node that gets its `token`."""
        # What the other element gives up is free for both, except for the word itself.
        spare = frozenset(other.tokens).difference([token])
        rest = range(words[0], words[-1] + 1)
        # Brackets may leave nothing, but no element must lose its only word.
        rest = self.with_own_brackets(other.node, rest, spare.__contains__) or rest[:1]
        spare = spare.difference(rest)
        run = range(token, token + 1)
        run = self.with_own_brackets(node, run, spare.__contains__) or run
        return self.covering(other.node, rest), self.covering(node, run)


def tokens_near(gap: int) -> Iterator[int]:
    """The tokens before and after a gap, nearest first; they may be outside of the text."""
    for distance in range(NEAR):
        yield gap - 1 - distance
        yield gap + distance


def may_nest(outer: MarkupToken, inner: MarkupToken) -> bool:
    """Whether one element may go around another that was beside it.

    Links must not contain links, at any depth.
    """
    names_inside = {node.name for node in all_nodes([inner])}
    return outer.name not in names_inside and {outer.name, inner.name} <= INLINE
