"""Where the markup of a sentence goes in its translation: around the words that align to the words that it had.

An element covers one run of words of the translation, so that none is split or lost; within another element it stays.
No tag is put inside a protected item, unless it was inside it in the source.
"""

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, islice

from nmt.plugins.documents.words import WIDE, Span, Words, aligned_words, best_runs, fit, places_in, share

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
        self.source = Words(plain, edges_of(nodes))
        self.translation = Words(target, cuts=self.source.cuts)
        counts = len(self.source.between_blanks), len(self.translation.between_blanks)
        if alignment is None:  # as if both had the same order
            alignment = ((index * counts[0] // counts[1], index) for index in range(counts[1]))
        pairs = [(a, b) for a, b in alignment if 0 <= a < counts[0] and 0 <= b < counts[1]]
        literal = self.find_literal(nodes, pairs)
        self.source.split(edge for node, _ in literal for edge in (node.begin, node.end))
        self.translation.split(edge for _, span in literal for edge in span)
        self.sources, self.targets = self.source.spans, self.translation.spans
        self.broken = set[int]()
        """The words of the translation that a line break stands before."""
        self.sources_of: list[list[int]] = [[] for _ in self.targets]
        self.targets_of: list[list[int]] = [[] for _ in self.sources]
        for word, target_word in sorted(set(aligned_words(self.source, self.translation, pairs))):
            self.sources_of[target_word].append(word)
            self.targets_of[word].append(target_word)
        self.literal = dict[int, range]()
        """The words of the translation that are those of a node, by its identity: it stands around these alone."""
        for node, (begin, end) in literal:
            first, last = (bisect_left(self.translation.starts, place) for place in (begin, end))
            own = self.literal[id(node)] = range(first, last)
            words = self.words_in(node)
            for number, word in enumerate(words):
                self.targets_of[word] = list(share(own, number, len(words)))
        self.literal_words = {word for words in self.literal.values() for word in words}

    def words_in(self, node: Node) -> range:
        """The words of the sentence that a node covers, or a part of which it covers."""
        first = bisect_left(self.source.starts, node.begin)
        if first and self.sources[first - 1][1] > node.begin:
            first -= 1
        return range(first, bisect_left(self.source.starts, node.end)) if node.end > node.begin else range(0)

    def owners(self, nodes: Sequence[Node], words: tuple[int, int]) -> list[int | None]:
        """The element that each of these words of the translation belongs to, as its index; None: to none."""
        source_owners = dict[int, int]()
        for index, node in enumerate(nodes):
            for word in self.words_in(node):
                source_owners.setdefault(word, -1 if node.copied or id(node) in self.literal else index)
        owners: list[int | None] = []
        for word in range(*words):
            votes = Counter(source_owners.get(source, -1) for source in self.sources_of[word])
            best = max(votes, key=lambda owner: (votes[owner], owner >= 0, -owner), default=-1)
            owners.append(best if best >= 0 else None)
        return owners

    def place(self, nodes: Sequence[Node], parent: Placed) -> list[Placed]:
        """The places of nodes in the place of the element around them, in the order of the translation."""
        low, high = parent.words
        owners, held = self.owners(nodes, parent.words), self.held_words(nodes, low, high)
        for index, words in held.items():
            owners[words.start - low : words.stop - low] = [index] * len(words)
        held_words = {word - low for words in held.values() for word in words}
        placed, runs, between = list[Placed](), dict[int, Placed](), list[Node]()
        for index, run in enumerate(best_runs(owners, len(nodes), held_words)):
            if run:
                placed.append(self.covering(nodes[index], (low + run[0], low + run[1]), parent, held.get(index)))
                runs.update(dict.fromkeys(range(*placed[-1].words), placed[-1]))
            else:
                between.append(nodes[index])
        for node in between:
            placed.append(self.between(node, parent, runs))
            runs.update(dict.fromkeys(range(*placed[-1].words), placed[-1]))
        return sorted(placed, key=lambda each: (each.begin, each.end))

    def held_words(self, nodes: Sequence[Node], low: int, high: int) -> dict[int, range]:
        """For the index of each node, the words from the first to the last that are literally its own, or in it."""
        hulls, held, reached = list[tuple[int, int, int]](), dict[int, range](), low
        for index, node in enumerate(nodes):
            if inside := [self.literal[id(each)] for each in [node, *below(node)] if id(each) in self.literal]:
                hulls.append((min(words.start for words in inside), max(words.stop for words in inside), index))
        for first, last, index in sorted(hulls):
            if reached <= first and last <= high:
                held[index], reached = range(first, last), last
            else:  # the words of siblings are mixed
                for node in (nodes[index], *below(nodes[index])):
                    self.literal.pop(id(node), None)
        return held

    def covering(self, node: Node, words: tuple[int, int], parent: Placed, held: range | None = None) -> Placed:
        """A node around these words of the translation, and around all of those that it holds."""
        edges = self.targets[words[0]][0], self.targets[words[1] - 1][1]
        begin = edges[0] + self.outside(node, words[0], 1) * (id(node) not in self.literal)
        end = edges[1] - self.outside(node, words[1] - 1, -1) * (id(node) not in self.literal)
        if begin >= end or not self.translation.clusters.issuperset((begin, end)):
            begin, end = edges
        begin, end = self.translation.item_at(begin)[0], self.translation.item_at(end)[1]
        if held:
            begin = min(begin, self.targets[held.start][0])
            end = max(end, self.targets[held.stop - 1][1])
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

    def find_literal(self, nodes: Sequence[Node], pairs: Sequence[tuple[int, int]]) -> list[tuple[Node, Span]]:
        """Where the translation has the text of what is copied, or an item in it, or of an element that is one."""
        targets_of, starts = defaultdict[int, list[int]](list), [begin for begin, _ in self.source.between_blanks]
        for word, target_word in sorted(pairs):
            targets_of[word].append(target_word)
        found, taken, searched = list[tuple[Node, Span]](), bytearray(len(self.target)), Counter[str]()
        for node in (each for top in nodes for each in [*below(top), top]):
            item, content = self.first_item(node), " ".join(self.plain[node.begin : node.end].split())
            if not content or not (node.copied or item == content):
                continue
            first, last = bisect_right(starts, node.begin) - 1, bisect_left(starts, node.end)
            near = [target for word in range(first, last)[:MOST_WORDS] for target in targets_of[word]]
            spans = (span for text in (content, item) if text for span in self.places_of(text, near, searched))
            for span in chain(spans, self.runs_of(content, near)):
                if not any(taken[slice(*span)]) and self.fits(node, span):
                    found.append((node, span))
                    taken[slice(*span)] = b"\1" * (span[1] - span[0])
                    break
        return found

    def places_of(self, text: str, near: list[int], searched: Counter[str]) -> Iterator[Span]:
        """Where the translation has a text: near these words, then where nobody `searched`."""
        spans, size = self.translation.between_blanks, len(text.split())
        for word in near:
            window = spans[word][0], spans[min(word + size, len(spans)) - 1][1]
            yield from islice(places_in(self.target, text, *window), MOST_PLACES)
        for span in places_in(self.target, text, searched[text], len(self.target)):
            searched[text] = span[1]
            yield span

    def runs_of(self, text: str, near: list[int]) -> Iterator[Span]:
        """The longest run of these stretches between blanks that a text has, too, in whatever order and case."""
        spans, best = self.translation.between_blanks, range(0)
        for first in sorted(set(near)):
            left, last = Counter(text.lower().split()), first
            while last in near and left[word := self.folded_word(last)]:
                left[word] -= 1
                last += 1
            best = max(best, range(first, last), key=len)
        if best:
            yield spans[best[0]][0], spans[best[-1]][1]

    def folded_word(self, number: int) -> str:
        """A stretch between blanks of the translation in small letters."""
        return self.target[slice(*self.translation.between_blanks[number])].lower()

    def fits(self, node: Node, span: Span) -> bool:
        """True where a node may stand around these characters: it cuts no item, and no word that it did not cut."""
        return all(
            place in self.translation.clusters
            and self.translation.item_at(place) == (place, place)
            and (self.source.is_inside_word(edge) or not self.translation.is_inside_word(place))
            for place, edge in zip(span, (node.begin, node.end), strict=True)
        )

    def first_item(self, node: Node) -> str:
        """The first protected item that a node holds; empty if there is none."""
        at = bisect_left(self.source.items, (node.begin, 0))
        return next((self.plain[a:b] for a, b in self.source.items[at : at + 1] if b <= node.end), "")

    def gap(self, node: Node, parent: Placed, after: bool) -> int:
        """The index of the word of the translation that a node without words of its own there stands before.

        It stands `after` what the word before it aligns to, or else before what the word after it does.
        """
        low, high = parent.words
        own = self.words_in(parent.node)
        following = bisect_left(self.source.starts, node.begin)
        places = [word + 1 for word in self.targets_of[following - 1]] if following > own.start else []
        others = self.targets_of[following] if following < own.stop else []
        if not (places or others):
            return low + round((following - own.start) / max(len(own), 1) * (high - low))
        best = max(places) if places and (after or not others) else min(others)
        return min(max(best, low), high)

    def between(self, node: Node, parent: Placed, runs: dict[int, Placed]) -> Placed:
        """The place of a node that no word of the translation belongs to: between words, or around a free one.

        Blanks stand around a tag as they did.
        """
        own = self.words_in(node)
        left = self.plain[node.begin - 1 : node.begin].strip() if node.begin and not own else ""
        right = "" if own else self.plain[node.end + node.breaks :][:1].strip()
        if node.copied:
            left, right = WIDE.sub("", left), WIDE.sub("", right)
        low, high = parent.words
        at = self.gap(node, parent, bool(left))

        def is_free(gap: int) -> bool:
            inside = low < gap < high and gap in runs and runs[gap] is runs.get(gap - 1)
            return not inside and (gap in (low, high) or self.translation.is_gap(gap))

        if node.breaks:
            near = sorted(range(max(low + 1, at - NEAR), min(high, at + NEAR + 1)), key=lambda each: abs(each - at))
            taken = self.broken if node.optional else ()
            inner = [each for each in near if each not in taken and is_free(each)]
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
        at = next(gap for step in count() for gap in (at - step, at + step) if low <= gap <= high and is_free(gap))
        begin = self.targets[at - 1][1] if low < at else parent.begin
        end = self.targets[at][0] if at < high else parent.end
        begin, end = (max(parent.begin, min(edge, parent.end)) for edge in (begin, end))
        if left and right and node.breaks and low < at < high:
            return Placed(node, (at, at), begin, end)
        place = begin if left or at == high else end
        is_bare = not any(each.copied or each.breaks for each in below(node))
        if not node.copied and ((own and is_bare) or (low < at < high and begin == end)):
            return Placed(node, (at, at), place, place)  # it stays empty, or stands where no blank is
        before, after = self.target[place - 1 : place] * (low < at), self.target[place : place + 1] * (at < high)
        blanks = [" " * bool(beside.strip() and not WIDE.match(beside)) for beside in (before, after)]
        return Placed(node, (at, at), place, place, "" if left else blanks[0], "" if right else blanks[1])

    def given(self, words: Iterable[int], runs: dict[int, Placed], parent: Placed) -> int | None:
        """The first of these words that an element around more words than it had gives away, from its end."""
        for word in words:
            if (other := runs.get(word)) and not (other.node.copied or word in self.literal_words):
                first, last = other.words
                if last - first > len(self.words_in(other.node)) > 0:
                    left = self.covering(other.node, (first + (word == first), last - (word != first)), parent)
                    other.words, other.begin, other.end = left.words, left.begin, left.end
                    return word
        return None

    def render(self, nodes: Sequence[Node], parent: Placed, escape: Callable[[str], str]) -> str:
        """The characters of a place, with the nodes in it."""
        pieces, at, last = list[str](), parent.begin, parent
        for each in self.place(nodes, parent):
            pieces.append(escape(self.target[at : each.begin]))
            if each.node.copied and last.node.copied and at == each.begin in (each.end, last.begin):
                each.before = " "  # two stretches of code are not one
            inside = "" if each.node.copied or each.node.breaks else self.render(each.node.children, each, escape)
            if inside or not (each.node.optional and each.node.close):
                pieces += [each.before, each.node.open, inside, each.node.close, each.after]
            at, last = each.end, each
        return "".join(pieces) + escape(self.target[at : parent.end])


def below(node: Node) -> Iterator[Node]:
    """All nodes inside a node."""
    for child in node.children:
        yield from below(child)
        yield child


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
