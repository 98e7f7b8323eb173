"""Places the markup of a sentence in its translation: around the words that align to the words it had.

Both texts are cut into tokens: words, punctuation at their edges, and characters of scripts without blanks. A tag
stands between tokens. A protected item is one token, except where the source had a tag inside the same item.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import regex

from nmt.text import USUAL, WITHOUT_BLANKS, Finder

Span = tuple[int, int]
Alignment = Iterable[tuple[int, int]]
ONE = WITHOUT_BLANKS.pattern
WORD = regex.compile(rf"(?={ONE})\X[\p{{Pe}}\p{{Pf}}\p{{Po}}]*+|(?:(?!{ONE})\X)++")
"""In a script without blanks, each grapheme is a word, with the punctuation that closes after it."""
WIDE = re.compile(f"{ONE}|[\u3000-\u303f\uff00-\uffef]")
"""A character of a script without blanks, or its punctuation, beside which no blank stands."""
IN_WORD = regex.compile(rf"(?!{ONE})\w")
EDGE = re.compile(r"\W*")
MOST_PLACES, MOST_CUTS = 50, 10
"""Occurrences of copied text from which the nearest is chosen; places at which a word is cut as in the source."""


@dataclass
class Node:
    """An element, a tag between words, or copied text; `begin` and `end` are characters of the plain text."""

    open: str
    """Its tag, or all of what is copied."""
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
    """A node, the tokens of the translation that it covers, and their characters."""

    node: Node
    first: int
    last: int
    begin: int
    end: int
    before: str = ""
    after: str = ""


class Tokens:
    """The tokens of a text; `chunks` are its stretches between blanks, which alignments count."""

    def __init__(self, text: str) -> None:
        self.text, self.chunks = text, [chunk.span() for chunk in re.finditer(r"\S+", text)]
        items = [(stretch.start, stretch.end) for stretch in Finder([USUAL]).stretches(text)]
        self.items, self.item_edges = (
            {text[begin:end] for begin, end in items},
            {edge for span in items for edge in span},
        )
        self.in_items = {place for begin, end in items for place in range(begin + 1, end)}
        self.clusters = {0, *(cluster.end() for cluster in regex.finditer(r"\X", text))}

    def core(self, chunk: int) -> Span:
        """The characters of a chunk without the punctuation at its edges; all of them if there is nothing else."""
        begin, end = self.chunks[chunk]
        text = self.text[begin:end]
        lead, trail = (EDGE.match(side).end() for side in (text, text[::-1]))  # type: ignore[union-attr]
        return (begin + lead, end - trail) if lead < len(text) else (begin, end)

    def split(self, cuts: set[int]) -> None:
        """Find the tokens; one begins at each of these places."""
        places, self.starts, self.ends = sorted(cuts | self.item_edges), list[int](), list[int]()
        for chunk, (begin, end) in enumerate(self.chunks):
            words = (word.span() for word in WORD.finditer(self.text, begin, end))
            inside = places[bisect_left(places, begin) : bisect_left(places, end)]
            edges = {begin, end, *(edge for word in words for edge in word), *inside, *self.core(chunk)}
            for low, high in pairwise(sorted(edges)):
                if self.starts and low not in cuts and (low in self.in_items or low not in self.clusters):
                    self.ends[-1] = high
                else:
                    self.starts.append(low)
                    self.ends.append(high)

    def between(self, begin: int, end: int) -> range:
        """The tokens that begin between two characters."""
        return range(bisect_left(self.starts, begin), bisect_left(self.starts, end))

    def sides(self, chunk: int) -> list[range]:
        """The punctuation before the words of a chunk, the words, and the punctuation after them."""
        (begin, end), (first, last) = self.chunks[chunk], self.core(chunk)
        tokens = [bisect_right(self.starts, at) - 1 for at in (begin, first)]
        tokens += [bisect_left(self.starts, at) for at in (last, end)]
        return [range(*edges) for edges in pairwise(tokens)]

    def token(self, index: int) -> str:
        return self.text[self.starts[index] : self.ends[index]]

    def is_inside(self, place: int) -> bool:
        """Whether a place is in a protected item, or between two characters of a word in a script with blanks."""
        in_word = place and IN_WORD.match(self.text, place - 1) and IN_WORD.match(self.text, place)
        return bool(place in self.in_items or in_word)

    def is_gap(self, token: int) -> bool:
        """Whether a tag may stand before a token without cutting what blanks separate."""
        touch = self.ends[token - 1] == self.starts[token]
        return not touch or any(WITHOUT_BLANKS.match(self.text, self.starts[n]) for n in (token - 1, token))


def spread(source: Sequence[int], target: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs of two sequences of tokens in the same order."""
    size = max(len(source), len(target)) if source and target else 0
    return ((source[n * len(source) // size], target[n * len(target) // size]) for n in range(size))


def share(words: range, number: int, size: int) -> range:
    """The part with that number, counted from 0, of `size` parts of words; a part has one word or more."""
    first = words.start + min(len(words) * number // size, len(words) - 1)
    return range(first, max(words.start + len(words) * (number + 1) // size, first + 1))


def aligned_tokens(source: Tokens, target: Tokens, pairs: Sequence[Span]) -> Iterator[tuple[int, int]]:
    """Pairs of tokens, given pairs of chunks; a chunk with several partners gives each a share of its words."""
    sizes, numbers = Counter(end for pair in pairs for end in enumerate(pair)), Counter[tuple[int, int]]()
    for pair in pairs:
        parts = [source.sides(pair[0]), target.sides(pair[1])]
        for end, part in zip(enumerate(pair), parts, strict=True):
            part[1] = share(part[1], numbers[end], sizes[end])
            numbers[end] += 1
        for sides in zip(*parts, strict=True):
            yield from spread(*sides)


def best_run(tokens: Sequence[int], taken: Sequence[int], low: int, literal: set[int]) -> range:
    """The run of tokens that holds most of a node's tokens and fewest of nobody's, and none of other nodes.

    Literal tokens outweigh all others. `taken` counts the tokens from `low` to each that are somebody's.
    """
    best, most, begin, previous, score = range(0), (0, 0), low, low - 1, -1
    for token in tokens:
        score -= token - previous - 1
        if score < 0 or taken[token - low] > taken[previous + 1 - low]:
            begin, score = token, 0
        score, previous = score + (len(taken) if token in literal else 1), token
        if (score, token - begin) > most:
            best, most = range(begin, token + 1), (score, token - begin)
    return best


class Projection:
    """The tokens of a sentence and of its translation, and how they align."""

    def __init__(self, plain: str, nodes: Sequence[Node], target: str, alignment: Alignment | None) -> None:
        self.plain, self.target, self.broken = plain, target, set[int]()
        """`broken`: the tokens of the translation that a line break stands before."""
        self.source, self.translation = Tokens(plain), Tokens(target)
        everywhere = [node for top in nodes for node in (*top.below(), top)]
        edges = {edge for node in everywhere for edge in (node.begin, node.end)}
        sizes = len(self.source.chunks), len(self.translation.chunks)
        if alignment is None:  # as if both had the same order
            alignment = ((index * sizes[0] // sizes[1], index) for index in range(sizes[1]))
        pairs = sorted({(a, b) for a, b in alignment if 0 <= a < sizes[0] and 0 <= b < sizes[1]})
        literal = self.find_literal(everywhere, pairs)
        self.source.split(edges)
        self.translation.split({*self.cuts(pairs, edges), *(edge for _, span in literal for edge in span)})
        self.literal = {id(node): self.translation.between(*span) for node, span in literal}
        """The tokens of the translation that are the text of a node, by its identity."""
        self.literal_tokens = {token for tokens in self.literal.values() for token in tokens}
        replaced = {token for node, _ in literal for token in self.source.between(node.begin, node.end)}
        aligned = {
            (a, b)
            for a, b in aligned_tokens(self.source, self.translation, pairs)
            if a not in replaced and b not in self.literal_tokens
        }
        for node, _ in literal:
            aligned.update(spread(self.source.between(node.begin, node.end), self.literal[id(node)]))
        self.sources_of, self.targets_of = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        for a, b in sorted(aligned):
            self.sources_of[b].append(a)
            self.targets_of[a].append(b)

    def find_literal(self, nodes: Sequence[Node], pairs: Sequence[Span]) -> list[tuple[Node, Span]]:
        """Where the translation has the text of copied nodes, or of elements around a protected item."""
        literal, places, taken = list[tuple[Node, Span]](), dict[str, list[Span]](), bytearray(len(self.target))
        starts, first_targets = [begin for begin, _ in self.source.chunks], dict(reversed(pairs))
        for node in nodes:
            text = " ".join(self.plain[node.begin : node.end].split())
            if not text or not (node.copied or text in self.source.items):
                continue
            if text not in places:
                places[text] = [match.span() for match in re.finditer(re.escape(text), self.target)]
            chunk = first_targets.get(max(bisect_left(starts, node.begin + 1) - 1, 0), 0)
            near = self.translation.chunks[chunk][0]
            free = (
                span
                for span in places[text][:MOST_PLACES]
                if not any(taken[slice(*span)]) and all(map(self.may_cut, span, (node.begin, node.end)))
            )
            if span := min(free, key=lambda span: abs(span[0] - near), default=None):
                places[text].remove(span)
                literal.append((node, span))
                taken[slice(*span)] = b"\1" * (span[1] - span[0])
        return literal

    def may_cut(self, place: int, edge: int) -> bool:
        """Whether a tag may stand at a place of the translation, if it stood at this edge in the source."""
        inside = self.translation.is_inside(place) and not self.source.is_inside(edge)
        return place in self.translation.clusters and not inside

    def cuts(self, pairs: Sequence[Span], edges: set[int]) -> Iterator[int]:
        """Where words of the translation begin or end with the same characters as theirs, cut by a tag."""
        ordered = sorted(edges)
        for a, b in pairs:
            (begin, end), (first, last) = self.source.core(a), self.translation.core(b)
            text, inside = self.target[first:last], ordered[bisect_left(ordered, begin + 1) : bisect_left(ordered, end)]
            for edge in inside[:MOST_CUTS]:
                head, tail = self.plain[begin:edge], self.plain[edge:end]
                place = first + len(head) if text.startswith(head) else last - len(tail) * text.endswith(tail)
                if place < last and self.may_cut(place, edge):
                    yield place

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
        owner_of = dict[int, int]()
        for index, node in enumerate(nodes):
            if not node.copied or id(node) in self.literal:
                owner_of |= dict.fromkeys(self.source.between(node.begin, node.end), index)
        words_of, taken = defaultdict[int, list[int]](list), [0]
        for token in range(parent.first, parent.last):
            votes = Counter(owner_of.get(source, -1) for source in self.sources_of[token])
            owner = max(votes, key=lambda index: (votes[index], index >= 0, -index), default=-1)
            taken.append(taken[-1] + (owner >= 0))
            words_of[owner].append(token)
        placed, runs, between = list[Placed](), dict[int, Placed](), list[Node]()
        for index, node in enumerate(nodes):
            run = best_run(words_of[index], taken, parent.first, self.literal_tokens)
            if not run or (node.copied and run != self.literal[id(node)]):
                between.append(node)
            else:
                placed.append(self.covering(node, run))
                runs |= dict.fromkeys(run, placed[-1])
        for node in between:
            if (place := self.between(node, parent, runs)) is not None:
                placed.append(place)
                runs |= dict.fromkeys(range(place.first, place.last), place)
        return sorted(placed, key=lambda place: (place.begin, place.end))

    def covering(self, node: Node, tokens: range) -> Placed:
        begin, end = self.translation.starts[tokens.start], self.translation.ends[tokens.stop - 1]
        return Placed(node, tokens.start, tokens.stop, begin, end)

    def between(self, node: Node, parent: Placed, runs: dict[int, Placed]) -> Placed | None:
        """The place of a node to which no token aligns: around a free word beside it, or between tokens."""
        low, high, at = parent.first, parent.last, self.gap(node, parent)
        if node.end > node.begin and not node.copied:
            for token in (at, at - 1):
                if low <= token < high and token not in runs and not EDGE.fullmatch(self.translation.token(token)):
                    return self.covering(node, range(token, token + 1))
        if low < at < high and (run := runs.get(at)) and run is runs.get(at - 1):
            at = run.first if node.begin < run.node.begin else run.last
        around = (gap for step in range(high - low + 1) for gap in (at - step, at + step) if low <= gap <= high)
        free = (gap for gap in around if self.is_free(gap, parent, runs))
        if node.breaks:
            inner = (gap for gap in free if low < gap < high and not (node.optional and gap in self.broken))
            if (place := next(inner, None)) is None and node.optional:
                return None  # two line breaks at one place would be an empty line
            at = place if place is not None else at if self.is_free(at, parent, runs) else high
            self.broken.add(at)
        else:
            at = next(free)
        return self.in_gap(node, at, parent)

    def is_free(self, gap: int, parent: Placed, runs: dict[int, Placed]) -> bool:
        """Whether a tag may stand before a token: it cuts no element, and not what blanks separate."""
        if gap in (parent.first, parent.last):
            return True
        return self.translation.is_gap(gap) and not (gap in runs and runs[gap] is runs.get(gap - 1))

    def beside(self, node: Node) -> tuple[str, str]:
        """The characters beside a tag in the source, empty for blanks."""
        before, after = max(node.begin - 1, 0), node.end + node.breaks
        sides = self.plain[before : node.begin], self.plain[after : after + 1]
        left, right = (WIDE.sub("", side) if node.copied else side for side in sides)
        return left.strip(), right.strip()

    def in_gap(self, node: Node, at: int, parent: Placed) -> Placed:
        """A node between tokens, with blanks around it as they were."""
        begin = self.translation.ends[at - 1] if parent.first < at else parent.begin
        end = self.translation.starts[at] if at < parent.last else parent.end
        left, right = ("", "") if node.end > node.begin else self.beside(node)
        if left and right and node.breaks and parent.first < at < parent.last:
            return Placed(node, at, at, begin, end)
        place = begin if left or at == parent.last else end
        sides = (
            self.target[place - 1 : place] * (parent.first < at),
            self.target[place : place + 1] * (at < parent.last),
        )
        blanks = [" " * bool(side.strip() and not WIDE.match(side)) for side in sides]
        is_bare = not any(inside.copied or inside.breaks for inside in node.below())
        within_chunk = parent.first < at < parent.last and begin == end
        if not node.copied and ((node.end > node.begin and is_bare) or within_chunk):
            blanks = ["", ""]
        return Placed(node, at, at, place, place, "" if left else blanks[0], "" if right else blanks[1])

    def gap(self, node: Node, parent: Placed) -> int:
        """The token of the translation before which a node without aligned tokens stands.

        It follows what the token before it aligns to if no blank separated them, else it precedes what the next does.
        """
        low, high, words = parent.first, parent.last, self.source.between(parent.node.begin, parent.node.end)
        following = bisect_left(self.source.starts, node.begin)
        before = [token + 1 for token in self.targets_of[following - 1]] if following > words.start else []
        after = self.targets_of[following] if following < words.stop else []
        if not (before or after):
            return low + round((following - words.start) / max(len(words), 1) * (high - low))
        best = max(before) if before and (self.beside(node)[0] or not after) else min(after)
        return min(max(best, low), high)


def project(
    plain: str, nodes: Sequence[Node], target: str, alignment: Alignment | None, escape: Callable[[str], str]
) -> str:
    """The translation of a plain text with the markup of that text."""
    projection = Projection(plain, nodes, target, alignment)
    root = Placed(Node("", 0, len(plain)), 0, len(projection.translation.starts), 0, len(target))
    return projection.render(nodes, root, escape)
