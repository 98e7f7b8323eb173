"""Where the markup of a sentence goes in its translation: around the words that align to the words that it had.

An element covers one run of words of the translation, so that none is split or lost; within another element it stays.
No tag is put inside a protected item, unless it was inside it in the source.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, count, islice, pairwise

import regex

from nmt.text import MEASURE, USUAL, WITHOUT_BLANKS, Finder, form

Span = tuple[int, int]
Alignment = Iterable[tuple[int, int]]
ONE = WITHOUT_BLANKS.pattern
WORD = regex.compile(rf"(?={ONE})\X[\p{{Pe}}\p{{Pf}}\p{{Po}}]*+|(?:(?!{ONE})\X)++")
"""In a script without blanks, each character a reader sees is a word, with the marks that close after it."""
WIDE = re.compile(f"{ONE}|[\u3000-\u303f\uff00-\uffef]")
"""A character of a script without blanks, or punctuation of one, beside which no blank stands."""
IN_WORD = regex.compile(rf"(?!{ONE})\w")
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

    def below(self) -> Iterator["Node"]:
        """All nodes inside a node."""
        for child in self.children:
            yield from child.below()
            yield child


@dataclass
class Placed:
    """A node, the words of the translation that it covers, and the characters, of which none may be left."""

    node: Node
    words: Span
    begin: int
    end: int
    before: str = ""
    after: str = ""


class Words:
    """The words of a text and its protected items.

    Items are cut at these `edges` of elements. With `cuts`, of another text, an item is cut as the same one was there.
    """

    def __init__(self, text: str, edges: Iterable[int] = (), cuts: dict[str, list[int]] | None = None) -> None:
        self.text = text
        self.between_blanks = [match.span() for match in re.finditer(r"\S+", text)]
        """What blanks separate, which alignments count."""
        line = " ".join(text.split())
        places = [at for begin, end in self.between_blanks for at in range(begin, end + 1)]
        inside = sorted({bisect_left(places, edge) for edge in edges})
        self.items, self.cuts = list[Span](), dict[str, list[int]]()
        for stretch in Finder([USUAL]).stretches(line):
            item = line[stretch.start : stretch.end]
            between = inside[bisect_left(inside, stretch.start + 1) : bisect_left(inside, stretch.end)]
            at_edges = [edge - stretch.start for edge in between]
            if at_edges:
                self.cuts[item] = at_edges
            for begin, end in pairwise([0, *(at_edges if cuts is None else cuts.get(item, ())), len(item)]):
                part = item[begin:end]
                first, last = end - len(part.lstrip()), begin + len(part.rstrip())
                if first < last:
                    self.items.append((places[stretch.start + first], places[stretch.start + last - 1] + 1))
        self.clusters = {0, *(match.end() for match in regex.finditer(r"\X", text))}
        """Between which characters, as a reader sees them, the text may be cut."""

    def split(self, places: Iterable[int]) -> None:
        """Find the words, which end at these places, too, and at items; those that an item spans are one."""
        self.spans, numbers, counts = list[Span](), list[int](), [0]
        items, cuts = deque(self.items), sorted(set(places))
        for begin, end in self.between_blanks:
            inside = cuts[bisect_left(cuts, begin + 1) : bisect_left(cuts, end)]
            for word in (
                w.span() for edges in pairwise([begin, *inside, end]) for w in WORD.finditer(self.text, *edges)
            ):
                while items and items[0][1] <= word[0]:
                    items.popleft()
                if self.spans and items and items[0][0] < self.spans[-1][1]:
                    self.spans[-1] = (self.spans[-1][0], word[1])
                else:
                    self.spans.append(word)
                numbers.append(len(self.spans) - 1)
            counts.append(len(numbers))
        self.starts = [begin for begin, _ in self.spans]
        self.parts = [range(numbers[first], numbers[last - 1] + 1) for first, last in pairwise(counts)]
        """The words in each stretch between blanks."""

    def item_at(self, place: int) -> Span:
        """The item that a character other than its first one is in; else nothing, at that place."""
        before = bisect_left(self.items, (place, 0)) - 1
        return self.items[before] if before >= 0 and self.items[before][1] > place else (place, place)

    def is_inside_word(self, place: int) -> bool:
        """True between two characters of a word, in a script with blanks."""
        return bool(place and IN_WORD.match(self.text, place - 1) and IN_WORD.match(self.text, place))

    def is_gap(self, word: int) -> bool:
        """True if a tag may stand between this word and the one before it, without cutting what blanks separate."""
        if not 0 < word < len(self.spans):
            return True
        end, begin = self.spans[word - 1][1], self.spans[word][0]
        return end < begin or any(WITHOUT_BLANKS.match(self.text, at) for at in (self.spans[word - 1][0], begin))


def share(words: range, number: int, count: int) -> range:
    """The part with that number, counted from 0, of about equal parts of words; a part has one word or more."""
    first = words.start + min(len(words) * number // count, len(words) - 1)
    return range(first, max(words.start + len(words) * (number + 1) // count, first + 1))


def aligned_words(source: Words, target: Words, pairs: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Pairs of words, given those of stretches between blanks: words of a stretch are taken to be in the same order."""
    ordered, before = sorted(set(pairs)), (Counter[int](), Counter[int]())
    counts = [Counter(pair[side] for pair in ordered) for side in (0, 1)]
    for pair in ordered:
        a, b = (
            share(words.parts[pair[side]], before[side][pair[side]], counts[side][pair[side]])
            for side, words in ((0, source), (1, target))
        )
        for side in (0, 1):
            before[side][pair[side]] += 1
        size = max(len(a), len(b))
        yield from ((a[n * len(a) // size], b[n * len(b) // size]) for n in range(size))


def places_in(target: str, text: str, begin: int, end: int) -> Iterator[Span]:
    """Where a text is between two places of a translation; a measure, as that writes it."""
    pattern = form(text) if MEASURE.fullmatch(text) else re.escape(text)
    yield from (match.span() for match in re.compile(pattern).finditer(target, begin, end))


def fit(word: str, outside: str, inside: str, aligned: bool) -> int:
    """How many characters at the beginning of a word stay outside of an element.

    In the source, `outside` stood before it in the same word, and `inside` in it. To be used for the end of a word, all
    are turned round. Only punctuation, and what both words have in common, is told apart from the rest of a word.
    """
    if outside and aligned and word.startswith(outside):
        return len(outside) % len(word)
    if any(map(str.isalnum, outside)):
        return len(word) - len(inside) if aligned and word.endswith(inside) else 0
    if outside or inside[:1].isalnum():
        return next((index for index, character in enumerate(word) if character.isalnum()), 0)
    return 0


def best_run(words: Sequence[int], taken: Sequence[int], held: Collection[int]) -> Span | None:
    """The run of words that holds most of an owner's words and fewest that are nobody's, and none of other owners.

    It holds all of the words that are `held`. `taken` counts the words before each that are somebody's.
    """
    best, most, begin, previous, score = None, (0, 0), 0, -1, -1
    for word in words:
        score -= word - previous - 1
        if score < 0 or taken[word] > taken[previous + 1]:
            begin, score = word, 0
        score, previous = score + (len(taken) if word in held else 1), word
        if (score, word - begin) > most:
            best, most = (begin, word + 1), (score, word - begin)
    return best


class Projection:
    """The words of a sentence and of its translation, and how they align."""

    def __init__(self, plain: str, nodes: Sequence[Node], target: str, alignment: Alignment | None) -> None:
        self.plain, self.target = plain, target
        everywhere = [node for top in nodes for node in (*top.below(), top)]
        self.source = Words(plain, [edge for node in everywhere for edge in (node.begin, node.end)])
        self.translation = Words(target, cuts=self.source.cuts)
        counts = len(self.source.between_blanks), len(self.translation.between_blanks)
        if alignment is None:  # as if both had the same order
            alignment = ((index * counts[0] // counts[1], index) for index in range(counts[1]))
        pairs = [(a, b) for a, b in alignment if 0 <= a < counts[0] and 0 <= b < counts[1]]
        literal = self.find_literal(everywhere, pairs)
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
        for node, span in literal:
            targets = range(*(bisect_left(self.translation.starts, place) for place in span))
            self.literal[id(node)], words = targets, self.words_in(node)
            for number, word in enumerate(words):
                self.targets_of[word] = list(share(targets, number, len(words)))
        self.literal_words = {word for words in self.literal.values() for word in words}

    def words_in(self, node: Node) -> range:
        """The words of the sentence that a node covers, or a part of which it covers."""
        first = bisect_left(self.source.starts, node.begin)
        if first and self.sources[first - 1][1] > node.begin:
            first -= 1
        return range(first, bisect_left(self.source.starts, node.end)) if node.end > node.begin else range(0)

    def find_literal(self, nodes: Sequence[Node], pairs: Sequence[tuple[int, int]]) -> list[tuple[Node, Span]]:
        """Where the translation has the text of what is copied, or an item in it, or of an element that is one."""
        targets_of, starts = defaultdict[int, list[int]](list), [begin for begin, _ in self.source.between_blanks]
        for word, target_word in sorted(pairs):
            targets_of[word].append(target_word)
        literal, taken, searched = list[tuple[Node, Span]](), bytearray(len(self.target)), Counter[str]()
        for node in nodes:
            at = bisect_left(self.source.items, (node.begin, 0))
            item = next((self.plain[a:b] for a, b in self.source.items[at : at + 1] if b <= node.end), "")
            content = " ".join(self.plain[node.begin : node.end].split())
            if not content or not (node.copied or item == content):
                continue
            first, last = bisect_right(starts, node.begin) - 1, bisect_left(starts, node.end)
            near = [target for word in range(first, last)[:MOST_WORDS] for target in targets_of[word]]
            spans = (span for text in (content, item) if text for span in self.places_of(text, near, searched))
            for span in chain(spans, self.runs_of(content, near)):
                if not any(taken[slice(*span)]) and self.fits(node, span):
                    literal.append((node, span))
                    taken[slice(*span)] = b"\1" * (span[1] - span[0])
                    break
        return literal

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
        words = {number: self.target[slice(*spans[number])].lower() for number in near}
        for first in sorted(words):
            left, last = Counter(text.lower().split()), first
            while last in words and left[words[last]]:
                left[words[last]] -= 1
                last += 1
            best = max(best, range(first, last), key=len)
        if best:
            yield spans[best[0]][0], spans[best[-1]][1]

    def fits(self, node: Node, span: Span) -> bool:
        """True where a node may stand around these characters: it cuts no item, and no word that it did not cut."""
        return all(
            place in self.translation.clusters
            and self.translation.item_at(place) == (place, place)
            and (self.source.is_inside_word(edge) or not self.translation.is_inside_word(place))
            for place, edge in zip(span, (node.begin, node.end), strict=True)
        )

    def render(self, nodes: Sequence[Node], parent: Placed, escape: Callable[[str], str]) -> str:
        """The characters of a place, with the nodes in it."""
        pieces, at, last = list[str](), parent.begin, parent
        for placed in self.place(nodes, parent):
            node = placed.node
            pieces.append(escape(self.target[at : placed.begin]))
            if node.copied and last.node.copied and at == placed.begin in (placed.end, last.begin):
                placed.before = " "  # two stretches of code are not one
            inside = "" if node.copied or node.breaks else self.render(node.children, placed, escape)
            if inside or not (node.optional and node.close):
                pieces += [placed.before, node.open, inside, node.close, placed.after]
            at, last = placed.end, placed
        return "".join(pieces) + escape(self.target[at : parent.end])

    def place(self, nodes: Sequence[Node], parent: Placed) -> list[Placed]:
        """The places of nodes in the place of the element around them, in the order of the translation."""
        low, high = parent.words
        owners, held = self.owners(nodes, parent.words), self.held_words(nodes, low, high)
        for index, words in held.items():
            owners[words.start - low : words.stop - low] = [index] * len(words)
        held_words = {word - low for words in held.values() for word in words}
        taken = list(accumulate((owner is not None for owner in owners), initial=0))
        words_of: list[list[int]] = [[] for _ in nodes]
        for word, owner in enumerate(owners):
            if owner is not None:
                words_of[owner].append(word)
        placed, runs, between = list[Placed](), dict[int, Placed](), list[Node]()
        for index, node in enumerate(nodes):
            if run := best_run(words_of[index], taken, held_words):
                placed.append(self.covering(node, (low + run[0], low + run[1]), parent, held.get(index)))
                runs.update(dict.fromkeys(range(*placed[-1].words), placed[-1]))
            else:
                between.append(node)
        for node in between:
            placed.append(self.between(node, parent, runs))
            runs.update(dict.fromkeys(range(*placed[-1].words), placed[-1]))
        return sorted(placed, key=lambda place: (place.begin, place.end))

    def owners(self, nodes: Sequence[Node], words: Span) -> list[int | None]:
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

    def held_words(self, nodes: Sequence[Node], low: int, high: int) -> dict[int, range]:
        """For the index of each node, the words from the first to the last that are literally its own, or in it."""
        hulls, held, reached = list[tuple[int, int, int]](), dict[int, range](), low
        for index, node in enumerate(nodes):
            if inside := [self.literal[id(n)] for n in (node, *node.below()) if id(n) in self.literal]:
                hulls.append((min(words.start for words in inside), max(words.stop for words in inside), index))
        for first, last, index in sorted(hulls):
            if reached <= first and last <= high:
                held[index], reached = range(first, last), last
            else:  # the words of siblings are mixed
                for node in (nodes[index], *nodes[index].below()):
                    self.literal.pop(id(node), None)
        return held

    def covering(self, node: Node, words: Span, parent: Placed, held: range | None = None) -> Placed:
        """A node around these words of the translation, and around all of those that it holds."""
        edges = self.targets[words[0]][0], self.targets[words[1] - 1][1]
        is_literal = id(node) in self.literal
        begin = edges[0] + (0 if is_literal else self.outside(node, words[0], 1))
        end = edges[1] - (0 if is_literal else self.outside(node, words[1] - 1, -1))
        if begin >= end or not self.translation.clusters.issuperset((begin, end)):
            begin, end = edges
        begin, end = self.translation.item_at(begin)[0], self.translation.item_at(end)[1]
        if held:
            begin, end = min(begin, self.targets[held.start][0]), max(end, self.targets[held.stop - 1][1])
        begin = min(max(begin, parent.begin), parent.end)
        return Placed(node, words, begin, max(begin, min(end, parent.end)))

    def outside(self, node: Node, word: int, step: int) -> int:
        """How many characters at the beginning of a word, or with step -1 at its end, stay outside of a node."""
        words = self.words_in(node)
        aligned = [source for source in self.sources_of[word] if source in words]
        begin, end = self.sources[aligned[0] if aligned else words[0 if step > 0 else -1]]
        inside = self.plain[max(begin, node.begin) : min(end, node.end)]
        outside = self.plain[begin : node.begin] if step > 0 else self.plain[node.end : end]
        return fit(self.target[slice(*self.targets[word])][::step], outside[::step], inside[::step], bool(aligned))

    def between(self, node: Node, parent: Placed, runs: dict[int, Placed]) -> Placed:
        """The place of a node that no word of the translation belongs to: around a free word, or between words."""
        low, high = parent.words
        words = self.words_in(node)
        at = self.gap(node, parent)
        if node.breaks:
            taken = self.broken if node.optional else ()
            near = sorted(range(max(low + 1, at - NEAR), min(high, at + NEAR + 1)), key=lambda gap: abs(gap - at))
            inner = [gap for gap in near if gap not in taken and self.is_free(gap, parent, runs)]
            if not inner and node.optional:  # two line breaks at one place would be an empty line
                return Placed(replace(node, open=""), (at, at), parent.end, parent.end)
            at = inner[0] if inner else at
            self.broken.add(at)
        around = runs.get(at) if low < at < high else None
        if around and around is runs.get(at - 1):
            at = around.words[0] if node.begin < around.node.begin else around.words[1]
        if words and not node.copied:
            free = [word for word in (at, at - 1) if low <= word < high and word not in runs]
            given = free[0] if free else self.given((at, at - 1), runs, parent) if not node.optional else None
            if given is not None:
                return self.covering(node, (given, given + 1), parent)
        gaps = (gap for step in count() for gap in (at - step, at + step) if low <= gap <= high)
        return self.in_gap(node, next(gap for gap in gaps if self.is_free(gap, parent, runs)), parent)

    def beside(self, node: Node) -> tuple[str, str]:
        """The characters beside a tag in the source, empty for blanks and beside words; blanks stand as they did."""
        if self.words_in(node):
            return "", ""
        sides = self.plain[node.begin - 1 : node.begin] if node.begin else "", self.plain[node.end + node.breaks :][:1]
        left, right = (WIDE.sub("", side) if node.copied else side.strip() for side in sides)
        return left.strip(), right.strip()

    def gap(self, node: Node, parent: Placed) -> int:
        """The index of the word of the translation that a node without words of its own there stands before.

        It stands after what the word before it aligns to, if they were together, or else before what the next one does.
        """
        low, high = parent.words
        words = self.words_in(parent.node)
        following = bisect_left(self.source.starts, node.begin)
        places = [word + 1 for word in self.targets_of[following - 1]] if following > words.start else []
        others = self.targets_of[following] if following < words.stop else []
        if not (places or others):
            return low + round((following - words.start) / max(len(words), 1) * (high - low))
        best = max(places) if places and (self.beside(node)[0] or not others) else min(others)
        return min(max(best, low), high)

    def is_free(self, gap: int, parent: Placed, runs: dict[int, Placed]) -> bool:
        """True if a tag may stand before this word: it cuts no element, and not what blanks separate."""
        low, high = parent.words
        is_inside = low < gap < high and gap in runs and runs[gap] is runs.get(gap - 1)
        return not is_inside and (gap in (low, high) or self.translation.is_gap(gap))

    def in_gap(self, node: Node, at: int, parent: Placed) -> Placed:
        """A node between words, with blanks around it as they were, or empty."""
        low, high = parent.words
        begin = self.targets[at - 1][1] if low < at else parent.begin
        end = self.targets[at][0] if at < high else parent.end
        begin, end = (max(parent.begin, min(edge, parent.end)) for edge in (begin, end))
        left, right = self.beside(node)
        if left and right and node.breaks and low < at < high:
            return Placed(node, (at, at), begin, end)
        place = begin if left or at == high else end
        is_bare = not any(inside.copied or inside.breaks for inside in node.below())
        if not node.copied and ((self.words_in(node) and is_bare) or (low < at < high and begin == end)):
            return Placed(node, (at, at), place, place)
        sides = self.target[place - 1 : place] * (low < at), self.target[place : place + 1] * (at < high)
        blanks = [" " * bool(side.strip() and not WIDE.match(side)) for side in sides]
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


def project(
    plain: str, nodes: Sequence[Node], target: str, alignment: Alignment | None, escape: Callable[[str], str]
) -> str:
    """The translation of a plain text with the markup that this had."""
    projection = Projection(plain, nodes, target, alignment)
    root = Placed(Node("", 0, len(plain)), (0, len(projection.targets)), 0, len(target))
    return projection.render(nodes, root, escape)
