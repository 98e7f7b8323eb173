"""Where the markup of a sentence goes in its translation: around the words that align to the words that it had.

An element covers one run of words of the translation, so that none is split or lost; within another element it stays.
No tag is put inside a protected item, unless it was inside it in the source.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from nmt.documents.words import Words, best_runs, fit, places_in

Alignment = Iterable[tuple[int, int]]
NEAR = 20
"""Words by which a line break moves at most, to find a place of its own."""
MOST_WORDS, MOST_PLACES = 10, 50
"""Words of what is copied whose alignment is followed, and places of it in a translation that are looked at."""


@dataclass
class Node:
    """An element, a tag between words, or a stretch that is copied; it covers characters of the plain text."""

    open: str
    """Its tag; of what is copied, all of it."""
    begin: int
    end: int = -1
    close: str = ""
    children: list["Node"] = field(default_factory=list)
    copied: bool = False
    breaks: bool = False
    optional: bool = False

    def __post_init__(self) -> None:
        self.end = max(self.begin, self.end)


@dataclass
class Placed:
    """A node, the words of the translation that it covers, and the characters, of which none may be left."""

    node: Node
    words: tuple[int, int]
    begin: int
    end: int
    before: str = ""
    after: str = ""


class Projection:
    """The words of a sentence and of its translation, and how they align."""

    def __init__(self, plain: str, nodes: Sequence[Node], target: str, alignment: Alignment | None) -> None:
        self.plain, self.target = plain, target
        source = Words(plain, edges_of(nodes))
        self.translation = Words(target, cuts=source.cuts)
        self.sources, self.targets, self.source_items = source.spans, self.translation.spans, source.items
        self.starts, self.target_starts = source.starts, self.translation.starts
        if alignment is None:  # as if both had the same order
            count, own = len(self.targets), len(self.sources)
            pairs = {(index * own // count, index) for index in range(count)}
        else:
            numbers = source.numbers, self.translation.numbers
            both = ((a, b) for a, b in alignment if 0 <= a < len(numbers[0]) and 0 <= b < len(numbers[1]))
            pairs = {(numbers[0][a], numbers[1][b]) for a, b in both}
        self.broken = set[int]()
        """The words of the translation that a line break stands before."""
        self.sources_of: list[list[int]] = [[] for _ in self.targets]
        self.targets_of: list[list[int]] = [[] for _ in self.sources]
        for word, target_word in sorted(pairs):
            self.sources_of[target_word].append(word)
            self.targets_of[word].append(target_word)

    def words_in(self, node: Node) -> range:
        """The words of the sentence that a node covers, or a part of which it covers."""
        first = bisect_left(self.starts, node.begin)
        if first and self.sources[first - 1][1] > node.begin:
            first -= 1
        return range(first, bisect_left(self.starts, node.end)) if node.end > node.begin else range(0)

    def owners(self, nodes: Sequence[Node], words: tuple[int, int]) -> list[int | None]:
        """The node that each of these words of the translation belongs to, as its index; None: to no node."""
        source_owners = dict[int, int]()
        for index, node in enumerate(nodes):
            for word in self.words_in(node):
                source_owners.setdefault(word, index)
        owners: list[int | None] = []
        for word in range(*words):
            votes = Counter(source_owners.get(source, -1) for source in self.sources_of[word])
            best = max(votes, key=lambda owner: (votes[owner], owner >= 0, -owner), default=-1)
            owners.append(best if best >= 0 else None)
        return owners

    def place(self, nodes: Sequence[Node], parent: Placed) -> list[Placed]:
        """The places of nodes in the place of the element around them, in the order of the translation."""
        low, _ = parent.words
        owners = self.owners(nodes, parent.words)
        copies = self.find_copies(nodes, owners, parent)
        self.claim_items([index for index, node in enumerate(nodes) if index not in copies], nodes, owners, low)
        placed, runs, between = list[Placed](), dict[int, Placed](), list[Node]()
        for index, run in enumerate(best_runs(owners, len(nodes))):
            if index in copies:
                placed.append(copies[index])
            elif run and not self.holds_another_item(nodes[index], low + run[0], low + run[1]):
                placed.append(self.covering(nodes[index], (low + run[0], low + run[1]), parent))
            else:
                between.append(nodes[index])
                continue
            runs.update(dict.fromkeys(range(*placed[-1].words), placed[-1]))
        for node in between:
            placed.append(self.between(node, parent, runs))
            runs.update(dict.fromkeys(range(*placed[-1].words), placed[-1]))
        return sorted(placed, key=lambda each: (each.begin, each.end))

    def holds_another_item(self, node: Node, first: int, last: int) -> bool:
        """True if what is copied would take the place of an item that it does not hold, in a word that joins both."""
        own, (begin, end) = self.plain[node.begin : node.end], (self.targets[first][0], self.targets[last - 1][1])
        items = self.translation.items
        near = items[max(bisect_left(items, (begin, 0)) - 1, 0) : bisect_left(items, (end, 0))]
        return node.copied and any(begin < b and self.target[a:b] not in own for a, b in near)

    def covering(self, node: Node, words: tuple[int, int], parent: Placed) -> Placed:
        """A node around these words of the translation."""
        begin = self.targets[words[0]][0] + self.outside(node, words[0], 1)
        end = self.targets[words[1] - 1][1] - self.outside(node, words[1] - 1, -1)
        if begin >= end:
            begin, end = self.targets[words[0]][0], self.targets[words[1] - 1][1]
        begin, end = self.translation.item_at(begin)[0], self.translation.item_at(end)[1]
        begin = min(max(begin, parent.begin), parent.end)
        return Placed(node, words, begin, max(begin, min(end, parent.end)))

    def outside(self, node: Node, word: int, step: int) -> int:
        """How many characters at the beginning of a word, or with step -1 at its end, stay outside of a node."""
        own = self.words_in(node)
        aligned = [source for source in self.sources_of[word] if source in own]
        begin, end = self.sources[aligned[0] if aligned else own[0 if step > 0 else -1]]
        inside = self.plain[max(begin, node.begin) : min(end, node.end)]
        other = self.plain[begin : node.begin] if step > 0 else self.plain[node.end : end]
        return fit(self.target[slice(*self.targets[word])][::step], other[::step], inside[::step], bool(aligned))

    def find_copies(self, nodes: Sequence[Node], owners: list[int | None], parent: Placed) -> dict[int, Placed]:
        """Places where the translation itself has what is copied, as the index of a node and its place.

        Such words belong to that node from then on.
        """
        found, low, taken = dict[int, Placed](), parent.words[0], set[int]()
        own = defaultdict[int | None, list[int]](list)
        for word, owner in enumerate(owners):
            own[owner].append(word)
        for index, node in enumerate(nodes):
            places = self.places_of(node, parent) if node.copied or self.is_item(node) else ()
            for place in (each for each in places if taken.isdisjoint(range(each.begin, each.end))):
                found[index] = place
                taken.update(range(place.begin, place.end))
                for word in own[index]:
                    if owners[word] == index:
                        owners[word] = None
                for word in range(*place.words):
                    owners[word - low] = index
                break
        return found

    def claim_items(self, indices: list[int], nodes: Sequence[Node], owners: list[int | None], low: int) -> None:
        """Let what is copied take the place of a word with an item that it holds: the item would be there twice."""
        places = defaultdict[str, list[int]](list)
        for begin, end in self.translation.items:
            places[self.target[begin:end]].append(bisect_left(self.target_starts, begin + 1) - 1)
        for index in (index for index in indices if nodes[index].copied):
            held = [at for at in places[self.first_item(nodes[index])] if low <= at < low + len(owners)]
            if held:
                aligned = (at for at in held if index == owners[at - low])
                own = next(aligned, held[0])
                owners[:] = [None if owner == index else owner for owner in owners]
                owners[own - low] = index

    def is_item(self, node: Node) -> bool:
        """True for an element whose whole content is a protected item."""
        return bool(item := self.first_item(node)) and item == self.plain[node.begin : node.end].strip()

    def first_item(self, node: Node) -> str:
        """The first protected item that a node holds; empty if there is none."""
        at = bisect_left(self.source_items, (node.begin, 0))
        return next((self.plain[a:b] for a, b in self.source_items[at : at + 1] if b <= node.end), "")

    def places_of(self, node: Node, parent: Placed) -> Iterator[Placed]:
        """Where the translation has the text of a node: in the words that align to it, then anywhere."""
        text = " ".join(self.plain[node.begin : node.end].split())
        words, (low, high) = self.words_in(node), parent.words
        near = [word for source in words[:MOST_WORDS] for word in self.targets_of[source] if low <= word < high]
        windows = [(self.targets[word][0], self.targets[min(word + len(words), high) - 1][1]) for word in near]
        for begin, end in [*windows, (parent.begin, parent.end)] if text else ():
            for at, last in islice(places_in(self.target, text, max(begin, parent.begin), end), MOST_PLACES):
                around = self.target[max(at - 1, 0) : at] + text[:1], text[-1:] + self.target[last : last + 1]
                inside = (self.translation.item_at(edge) != (edge, edge) for edge in (at, last))
                if not any(len(each) == 2 and each.isalnum() for each in around) and not any(inside):
                    first = bisect_left(self.target_starts, at + 1) - 1
                    yield Placed(node, (first, bisect_left(self.target_starts, last)), at, last)

    def gap(self, node: Node, parent: Placed, after: bool) -> int:
        """The index of the word of the translation that a node without words of its own there stands before.

        It stands `after` what the word before it aligns to, or else before what the word after it does.
        """
        low, high = parent.words
        own = self.words_in(parent.node)
        following = bisect_left(self.starts, node.begin)
        places = [word + 1 for word in self.targets_of[following - 1]] if following > own.start else []
        others = self.targets_of[following] if following < own.stop else []
        if not (places or others):
            share = (following - own.start) / max(len(own), 1)
            return low + round(share * (high - low))
        best = max(places) if places and (after or not others) else min(others)
        return min(max(best, low), high)

    def between(self, node: Node, parent: Placed, runs: dict[int, Placed]) -> Placed:
        """The place of a node that no word of the translation belongs to: between words, or around a free one.

        Blanks stand around a tag as they did.
        """
        own = self.words_in(node)
        left = self.plain[node.begin - 1 : node.begin].strip() if node.begin and not own else ""
        right = "" if own else self.plain[node.end + node.breaks :][:1].strip()
        low, high = parent.words
        at = self.gap(node, parent, bool(left))
        if node.breaks:
            near = sorted(range(max(low + 1, at - NEAR), min(high, at + NEAR + 1)), key=lambda each: abs(each - at))
            taken = self.broken if node.optional else ()
            inner = [each for each in near if each not in taken and runs.get(each, 0) is not runs.get(each - 1)]
            if not inner and node.optional:  # two line breaks at one place would be an empty line
                return Placed(replace(node, open=""), (at, at), parent.end, parent.end)
            at = inner[0] if inner else at
            self.broken.add(at)
        other = runs.get(at) if at - 1 in runs and low < at < high else None
        if other and other is runs[at - 1]:
            at = other.words[0] if node.begin < other.node.begin else other.words[1]
        if own and not node.copied:
            free = [word for word in (at, at - 1) if low <= word < high and word not in runs]
            given = free[0] if free else self.given((at, at - 1), runs, parent) if not node.optional else None
            if given is not None:
                return self.covering(node, (given, given + 1), parent)
        begin = self.targets[at - 1][1] if low < at else parent.begin
        end = self.targets[at][0] if at < high else parent.end
        begin, end = (max(parent.begin, min(edge, parent.end)) for edge in (begin, end))
        if left and right and node.breaks and low < at < high:
            return Placed(node, (at, at), begin, end)
        blank = " " * (node.copied or bool(node.children) or not own)  # none for an element that stays empty
        if left or at == high:
            return Placed(node, (at, at), begin, begin, before=blank * (not left and low < high))
        return Placed(node, (at, at), end, end, after=blank * (not right))

    def given(self, words: Iterable[int], runs: dict[int, Placed], parent: Placed) -> int | None:
        """The first of these words that an element around more words than it had gives away, from its end."""
        for word in words:
            if (other := runs.get(word)) and not other.node.copied:
                first, last = other.words
                if last - first > len(self.words_in(other.node)) > 0:
                    left = self.covering(other.node, (first + (word == first), last - (word != first)), parent)
                    other.words, other.begin, other.end = left.words, left.begin, left.end
                    return word
        return None

    def render(self, nodes: Sequence[Node], parent: Placed, escape: Callable[[str], str]) -> str:
        """The characters of a place, with the nodes in it."""
        pieces, at = list[str](), parent.begin
        for each in self.place(nodes, parent):
            pieces.append(escape(self.target[at : each.begin]))
            inside = "" if each.node.copied or each.node.breaks else self.render(each.node.children, each, escape)
            if inside or not (each.node.optional and each.node.close):
                pieces += [each.before, each.node.open, inside, each.node.close, each.after]
            at = each.end
        return "".join(pieces) + escape(self.target[at : parent.end])


def edges_of(nodes: Sequence[Node]) -> Iterator[int]:
    """The characters of the plain text before which nodes begin and end."""
    for node in nodes:
        yield from (node.begin, node.end)
        yield from edges_of(node.children)


def project(
    plain: str, nodes: Sequence[Node], target: str, alignment: Alignment | None, escape: Callable[[str], str]
) -> str:
    """The translation of a plain text with the markup that this had."""
    projection = Projection(plain, nodes, target, alignment)
    root = Placed(Node("", 0, len(plain)), (0, len(projection.targets)), 0, len(target))
    return projection.render(nodes, root, escape)
