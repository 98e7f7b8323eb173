"""Places the markup of a sentence in its translation.

An element wraps the longest run of translated words aligned with its source words. Other tags go
between words.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import inf
from typing import NamedTuple

import regex

from nmt.plugins.documents.document import Alignment
from nmt.plugins.documents.enclosures import certain, enclosed
from nmt.plugins.documents.nodes import Token
from nmt.plugins.documents.refinement import kept_names, refined, verb_is_last
from nmt.plugins.documents.words import Tokens
from nmt.plugins.protection.copies import COPIES
from nmt.text import INLINE, WITHOUT_BLANKS

BEGINS_WITH_BREAK = regex.compile(r"\A[ \t]*+\\?\r?\n[ \t>]*+")
ENDS_WITH_BREAK = regex.compile(r"\n[ \t>]*+\Z")
NEAR = 20
"""How many tokens away an element may find a word if none is aligned with it."""


def may_nest(outer: Token, inner: Token) -> bool:
    """Whether one element may go around another that was beside it: links must not contain links."""
    return outer.name != inner.name and {outer.name, inner.name} <= INLINE


def adjoin(one: Token, other: Token) -> bool:
    """True if only a blank for the model separates two nodes in the source, in any order."""
    pairs = ((one, other), (other, one))
    return any(after.is_apart and before.end + 1 == after.begin for before, after in pairs)


def after_line_break(before: Token | None, node: Token) -> str:
    """A node as written directly after another one, without a second line break.

    In Markdown, whose line breaks are optional, an empty line would end the paragraph.
    """
    if before is None or not (before.breaks and node.breaks and (before.optional or node.optional)):
        return node.raw
    return BEGINS_WITH_BREAK.sub("", node.raw) if ENDS_WITH_BREAK.search(before.raw) else node.raw


class Placed(NamedTuple):
    """A node with its span and its tokens in the translation."""

    begin: int
    end: int
    node: Token
    tokens: range


class Projection:
    """Places the markup inside `root` in a translation by aligning source and target tokens."""

    def __init__(self, plain: str, root: Token, target: str, alignment: Alignment) -> None:
        nodes = list(root.children)
        for node in nodes:
            nodes += node.children
        marks = {node.text[0] for node in nodes if node.kind == "copy"}
        self.source = Tokens(
            plain, marks, (edge for node in nodes for edge in (node.begin, node.end))
        )
        self.target = Tokens(target, marks, divided=self.source.divided)
        self.broken, self.filled = (
            set[int](),
            set[int](),
        )  # tokens after line breaks; places of copies without marks
        self.sources_of, self.targets_of = (
            defaultdict[int, list[int]](list),
            defaultdict[int, list[int]](list),
        )
        self.align(alignment)
        # Copies that a translator repeated or moved out of their element do not become text.
        self.surplus = (
            regex.compile(rf" ?([{''.join(marks)}])(?:[^\s{COPIES}]*\1)?") if marks else None
        )

    def align(self, alignment: Alignment) -> None:
        """Set the pairs of aligned tokens: a copy belongs to the one with the same mark, and to nothing else."""
        of_source, of_target = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
        for tokens, of_side in ((self.source, of_source), (self.target, of_target)):
            for token in tokens.copies:
                of_side[tokens.of(token)[0]].append(token)
        partners = dict[int, int]()  # source -> target
        for mark, sources in of_source.items():
            partners.update(zip(sources, of_target[mark], strict=False))
        lost = {*self.source.copies} - partners.keys()
        self.copies_in_target = frozenset(self.target.copies)
        names = kept_names(self.source, self.target)
        self.kept = frozenset(names.values())
        pairs = refined(self.source, self.target, Counter(self.aligned(alignment)), names)
        pairs.update(partners.items())
        for a, b in sorted(pairs.elements()):
            is_copy = b in self.copies_in_target or a in partners or a in lost
            if not is_copy or partners.get(a) == b:
                self.sources_of[b].append(a)
                self.targets_of[a].append(b)
            elif (
                a in lost and b not in self.copies_in_target
            ):  # where to put it, but not in place of this word
                self.targets_of[a].append(b)

    def aligned(self, alignment: Alignment) -> Iterator[tuple[int, int]]:
        """Refine chunk pairs into token pairs; a chunk with several partners divides its words among them."""
        sizes = len(self.source.chunks), len(self.target.chunks)
        if alignment is None:  # assume the same word order on both sides
            alignment = [(index * sizes[0] // sizes[1], index) for index in range(sizes[1])]
        pairs = sorted({(a, b) for a, b in alignment if 0 <= a < sizes[0] and 0 <= b < sizes[1]})
        partners, numbers = (
            Counter(end for pair in pairs for end in enumerate(pair)),
            Counter[tuple[int, int]](),
        )
        for pair in pairs:
            parts = [self.source.sides(pair[0]), self.target.sides(pair[1])]
            for end, part in zip(enumerate(pair), parts, strict=True):
                words, number, size = part[1], numbers[end], partners[end]
                first = min(len(words) * number // size, len(words) - 1)
                part[1] = words[first : max(len(words) * (number + 1) // size, first + 1)]
                numbers[end] += 1
            for source, target in zip(*parts, strict=True):
                size = max(len(source), len(target)) if source and target else 0
                yield from (
                    (source[n * len(source) // size], target[n * len(target) // size])
                    for n in range(size)
                )

    def render(self, place: Placed, escape: Callable[[str], str]) -> str:
        """The translated text at a place, with the markup inside it."""
        pieces = list[str]()
        at = place.begin
        before: Token | None = None
        for inner in self.places(place):
            node, is_element = inner.node, inner.node.kind == "open"
            inside = self.render(inner, escape) if is_element else ""
            text = self.text(at, inner.begin)
            if not text.strip() and before and adjoin(before, node):
                text = ""
            elif before and node.is_apart and text == self.source.text[before.end : node.begin]:
                text = text.rstrip()  # a mark between two links
            if node.is_apart and node.name == "note":
                text = text.rstrip()
            raw = node.raw if text.strip() else after_line_break(before, node)
            before = node
            pieces.append(escape(text))
            if inside or not (node.optional and is_element):
                pieces += [raw, inside, node.closing]
            at = inner.end
        pieces.append(escape(self.text(at, place.end)))
        return "".join(pieces)

    def text(self, begin: int, end: int) -> str:
        """The text of a span in which no mark has its place."""
        text = self.target.text[begin:end]
        if self.surplus:
            text = self.surplus.sub("", text)
            # Not after a mark at the beginning of the translation, either.
            text = text if begin else text.lstrip()
        return text

    def places(self, parent: Placed) -> list[Placed]:
        """The places of an element's nodes, in the order of the translation."""
        nodes, owners, runs = parent.node.children, dict[int, int](), list[tuple[int, range]]()
        for index, node in enumerate(nodes):
            owners |= dict.fromkeys(self.source.between(node.begin, node.end), index)
        for token in parent.tokens:
            sources = self.sources_of[token]
            owner = self.owner_of(sources, owners) if sources else -1
            if (
                runs and runs[-1][0] == owner and token - runs[-1][1].stop < 2
            ):  # at most one other word between
                runs[-1] = owner, range(runs[-1][1].start, token + 1)
            elif owner >= 0:
                runs.append((owner, range(token, token + 1)))
        placed = self.placed_runs(nodes, self.best_runs(runs), parent)
        taken = {token: index for index, place in placed.items() for token in place.tokens}
        for index in [index for index in range(len(nodes)) if index not in placed]:
            node = nodes[index]
            place: Placed | None = None
            if node.kind == "open":
                place = self.own_word(node, parent, taken)
                place = place or self.taken_word(node, parent, placed, taken)
            place = place or self.between(node, parent, taken)
            if place:
                placed[index] = place
                taken |= dict.fromkeys(place.tokens, index)
        return sorted(placed.values(), key=lambda place: place[:2])

    def placed_runs(
        self,
        nodes: Sequence[Token],
        runs: dict[int, range],
        parent: Placed,
    ) -> dict[int, Placed]:
        """The places of nodes with aligned words, given their runs, which brackets may change."""
        placed = dict[int, Placed]()
        taken = dict[int, int]()
        for index, run in runs.items():
            node = nodes[index]
            if node.kind == "open":
                of_element = self.source.between(node.begin, node.end)
                run = certain(self.source, of_element, self.target, run)
            taken |= dict.fromkeys(run, index)

        def is_free(token: int) -> bool:
            return token in parent.tokens and taken.get(token, index) == index

        for index, run in runs.items():
            if nodes[index].kind == "open":
                run = self.enclosed(nodes[index], run, is_free)
            if run:
                placed[index] = self.covering(nodes[index], run)
                taken |= dict.fromkeys(run, index)
        return placed

    def owner_of(self, sources: Sequence[int], owners: dict[int, int]) -> int:
        """The owner of most of these source tokens; -1 if they have none."""
        if len(sources) == 1:  # usual, and worth the speed in deeply nested elements
            return owners.get(sources[0], -1)
        votes = Counter(owners.get(source, -1) for source in sources)
        return max(votes, key=lambda index: (votes[index], index))

    def best_runs(self, runs: Sequence[tuple[int, range]]) -> dict[int, range]:
        """For each owner, the run with the most marks; of several, the longest and then the first.

        If several of its runs have marks, and no run of another owner is between them, the owner gets them all.
        """
        marks, runs_of = self.copies_in_target, defaultdict[int, list[range]](list)
        owner_of = {token: owner for owner, run in runs for token in run}
        for owner, run in runs:
            runs_of[owner].append(run)
        best = dict[int, range]()
        for owner, of_owner in runs_of.items():
            if len(of_owner) == 1:
                best[owner] = of_owner[0]
                continue
            marked = [run for run in of_owner if not marks.isdisjoint(run)]
            if len(marked) > 1:
                whole = range(marked[0].start, marked[-1].stop)
                if all(owner_of.get(token, owner) == owner for token in whole):
                    of_owner = [whole]
            best[owner] = max(
                of_owner, key=lambda run: (len(marks.intersection(run)), len(run), -run.start)
            )
        return best

    def enclosed(self, node: Token, run: range, is_free: Callable[[int], bool]) -> range:
        """A run with the brackets that belong to an element; it may grow by tokens that are free."""
        of_element = self.source.between(node.begin, node.end)
        return enclosed(self.source, of_element, self.target, run, is_free)

    def covering(self, node: Token, tokens: range) -> Placed:
        return Placed(self.target.starts[tokens[0]], self.target.ends[tokens[-1]], node, tokens)

    def own_word(self, node: Token, parent: Placed, taken: dict[int, int]) -> Placed | None:
        """The place of an element without aligned words: the nearest free word."""
        at = self.gap(node, parent)
        candidates = [at - 1, at] if node.is_glued else [at, at - 1]
        if WITHOUT_BLANKS.search(self.target.text):
            candidates += self.near(at)
        inside = [token for token in candidates if token in parent.tokens]
        free = [token for token in inside if token not in taken and token not in self.kept]

        def is_free(token: int) -> bool:
            return token in parent.tokens and token not in taken

        for is_usable in (self.target.is_content, self.target.is_word):
            for token in filter(is_usable, free):
                run = self.enclosed(node, range(token, token + 1), is_free)
                return self.covering(node, run) if run else None
        return None

    def near(self, at: int) -> Iterator[int]:
        """The tokens before and after a place, nearest first."""
        for distance in range(NEAR):
            yield at - 1 - distance
            yield at + distance

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
        around: int | None = None  # index of an element with one word
        for token in self.near(self.gap(node, parent)):
            index = taken.get(token, -1)
            if index not in placed or placed[index].node.kind != "open":
                continue
            other = placed[index]
            words = [word for word in other.tokens if self.target.is_content(word)]
            if len(words) > 1 and token in (words[0], words[-1]):
                rest = [word for word in words if word != token]
                spare = frozenset(other.tokens).difference([token])
                left = range(rest[0], rest[-1] + 1)
                left = self.enclosed(other.node, left, spare.__contains__) or left[:1]
                placed[index] = self.covering(other.node, left)
                spare = spare.difference(left)
                run = range(token, token + 1)
                run = self.enclosed(node, run, spare.__contains__) or run
                return self.covering(node, run)
            if around is None and may_nest(node, other.node):
                around = index
        if around is None:
            return None
        inner = placed.pop(around)
        outer = replace(node, children=[*node.children, inner.node])
        return inner._replace(node=outer)

    def between(self, node: Token, parent: Placed, taken: dict[int, int]) -> Placed | None:
        """The place for a tag or an empty element: between tokens, and in no element."""

        def is_border(gap: int) -> bool:
            return gap not in taken or taken[gap] != taken.get(gap - 1)

        target = self.target
        low = parent.tokens.start
        high = parent.tokens.stop
        at = self.gap(node, parent)
        around = (at + sign * step for step in range(high - low + 1) for sign in (-1, 1))
        within = (gap for gap in around if low <= gap <= high)
        gaps = (gap for gap in within if gap in (low, high) or is_border(gap))
        if node.breaks:
            inner = (gap for gap in gaps if low < gap < high)
            unbroken = (gap for gap in inner if not (node.optional and gap in self.broken))
            at = self.nearest_break(unbroken, at)
            if at < 0 and node.optional:
                return None  # two consecutive line breaks would create an empty line
            self.broken.add(at)
        if not node.breaks or at < 0:
            at = next(gaps, high)
        begin = target.ends[at - 1] if at > low else parent.begin
        end = target.starts[at] if at < high else parent.end
        if not (node.breaks and low < at < high):
            begin = end = begin if node.is_glued or at == high else end
        if node.kind == "copy":  # a translator lost its mark
            is_joined = low < at and not target.text[begin - 1].isspace() and not node.is_glued
            before = " " if is_joined or begin in self.filled else ""
            after = " " if at < high and not target.text[end : end + 1].isspace() else ""
            node = replace(node, raw=before + node.raw + after)
            self.filled.add(begin)
        return Placed(begin, end, node, range(at, at))

    def nearest_break(self, gaps: Iterator[int], at: int) -> int:
        """The place of a line break: of these gaps, which are sorted by their distance, the best one.

        Returns -1 if there is none.
        """
        best, least = -1, inf
        for gap in gaps:
            distance = abs(gap - at)
            if distance >= least:
                break
            detour = distance + self.target.detour(gap)
            if detour < least:
                best, least = gap, detour
        return best

    def gap(self, node: Token, parent: Placed) -> int:
        """The token before which to put a node without aligned words, based on an adjacent source word's partner."""
        low, high = parent.tokens.start, parent.tokens.stop
        words = self.source.between(parent.node.begin, parent.node.end)
        following = bisect_left(self.source.starts, node.begin)
        before = (
            [token + 1 for token in self.targets_of[following - 1]]
            if following > words.start
            else []
        )
        after = self.targets_of[following] if following < words.stop else []
        if not (before or after):
            share = (following - words.start) / max(len(words), 1)
            is_first = node.kind == "open" and following == words.start
            if is_first and verb_is_last(self.source, self.target):
                share = 1
            return low + round(share * (high - low))
        return min(
            max(max(before) if before and (node.is_glued or not after) else min(after), low), high
        )
