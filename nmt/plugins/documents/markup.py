"""Sentences with markup: extract plain text for a translator, and put the markup back into the translation.

An element wraps the longest run of translated words aligned with its source words; other tags go between words. In the
plain text, a mark stands for each piece of code and the like, and the code replaces the mark in the translation.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, cycle, pairwise
from typing import Literal, NamedTuple

import regex

from nmt.plugins.documents.document import Alignment, Part, Translated
from nmt.plugins.protection.items import COPIES, COPY, USUAL, Finder, copy_of
from nmt.text import WITHOUT_BLANKS

DEEPEST = 50  # elements nested more deeply become single tags
ONE = WITHOUT_BLANKS.pattern
LETTER = rf"(?:(?!{ONE})\w)"
WORD = regex.compile(
    # A grapheme in a script without spaces, with any closing punctuation after it; a word; a punctuation mark.
    rf"(?={ONE})\X[\p{{Pe}}\p{{Pf}}\p{{Po}}]*+|{LETTER}(?:(?:(?!{ONE})\S)*{LETTER})?|(?!{ONE})([^\s\w])\1*+"
)
# Longer ones may be a word that only lacks a space.
LETTERS_BEFORE, LETTERS_AFTER = regex.compile(r"(?<!\w)\p{Latin}{1,9}$"), regex.compile(r"\p{Latin}{1,9}(?!\w)")
Kind = Literal["text", "open", "close", "point", "copy"]


@dataclass
class Token:
    """A span of a file: text, an opening or closing tag, any other tag ("point"), or code, which is copied."""

    kind: Kind
    raw: str  # as written in the file
    text: str = ""  # text as a reader sees it; of code, what the model may see
    name: str = ""  # a closing tag closes the last open tag with its name
    breaks: bool = False  # separates words, even without a space
    optional: bool = False  # an element to drop if it would be empty, or a line break to drop next to another
    is_script: bool = False  # opens a superscript or subscript
    closing: str = ""  # what closes an element in a translation, if not the closing tag's `raw`
    is_apart: bool = False  # directly after a blank that the file lacks
    is_dropped: bool = False  # not in a translation, such as how to pronounce the source
    # Set in the markup tree: the span in the plain text, whether a word directly precedes it, and the nodes inside.
    begin: int = 0
    end: int = 0
    is_glued: bool = False
    children: list["Token"] = field(default_factory=list)


def find_pairs(tokens: Sequence[Token]) -> dict[int, int]:
    """Map the index of each opening or closing tag to its partner's index; the pairs are properly nested."""
    partners, opened, names = dict[int, int](), list[int](), Counter[str]()
    for index, token in enumerate(tokens):
        if token.kind == "open" and len(opened) < DEEPEST:
            opened.append(index)
            names[token.name] += 1
        elif token.kind == "close" and names[token.name]:
            while tokens[last := opened.pop()].name != token.name:
                names[tokens[last].name] -= 1
            names[token.name] -= 1
            partners[last], partners[index] = index, last
    return partners


def unused_marks(text: str) -> Iterator[str]:
    """Marks that do not occur in a text; after the last one, they repeat."""
    used = set(text).intersection(COPIES)
    # If a text uses all marks, a blank separates the words around the code.
    return cycle([mark for mark in COPIES if mark not in used] or [" "])


def tree(tokens: Sequence[Token]) -> tuple[str, list[Token]]:
    """The plain text of `tokens`, with a marked item for each "copy", and their markup as a list of trees."""
    partners, pieces, size = find_pairs(tokens), list[str](), 0
    stack = [Token("open", "")]
    marks: Iterator[str] = iter(())
    if any(token.kind == "copy" for token in tokens):
        marks = unused_marks("".join(token.text for token in tokens))
    for index, token in enumerate(tokens):
        node = replace(token, begin=size, is_glued=bool(pieces and pieces[-1][-1:].strip()), children=[])
        if index not in partners:
            if token.kind == "copy":
                node.text = copy_of(next(marks), token.text)
            elif token.kind != "text":
                node.kind = "point"
            pieces += [" "] * node.breaks + [node.text] * bool(node.text)
            size += node.breaks + len(node.text)
            node = replace(node, end=node.begin + len(node.text), closing="")
            if node.kind != "text" and not node.is_dropped:
                stack[-1].children.append(node)
        elif token.kind == "open":
            stack.append(node)
        else:
            element = stack.pop()
            element.end, element.closing = size, token.closing or token.raw
            stack[-1].children += element.children if element.is_dropped else [element]
    return "".join(pieces), stack[0].children


def strip(token: Token, cut: Callable[[str], str]) -> str:
    """Strip whitespace from one end of a token and return the whitespace."""
    whole, token.raw = token.raw, cut(token.raw)
    if token.raw != whole:
        token.text = cut(token.text)
    return whole.replace(token.raw, "", 1) if token.raw else whole


def without_ends(token: Token, first: int, last: int) -> Token:
    """A text without its first and last characters."""
    end = len(token.text) - last
    return replace(token, raw=token.raw[first : len(token.raw) - last], text=token.text[first:end])


def with_whole_words(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with Latin letters that directly adjoin code joined to it: in `x`s, the s is not a separate word."""
    result = [*tokens]
    for index, token in enumerate(result):
        if token.kind != "copy":
            continue
        before = result[index - 1] if index else token
        if before.kind == "text" and (match := LETTERS_BEFORE.search(before.text)) and before.raw.endswith(match[0]):
            token = replace(token, raw=match[0] + token.raw, text=match[0] + token.text if token.text else "")
            result[index - 1] = without_ends(before, 0, len(match[0]))
        after = result[index + 1] if index + 1 < len(result) else token
        if after.kind == "text" and (match := LETTERS_AFTER.match(after.text)) and after.raw.startswith(match[0]):
            token = replace(token, raw=token.raw + match[0], text=token.text + match[0] if token.text else "")
            result[index + 1] = without_ends(after, len(match[0]), 0)
        result[index] = token
    return result


def has_text(token: Token) -> bool:
    return token.kind == "copy" or bool(token.text.strip())


def without_empty(tokens: Sequence[Token]) -> list[Token]:
    """Copies of the tokens in which each element without words is a single tag."""
    partners, result, at = find_pairs(tokens), list[Token](), 0
    words = [0, *accumulate(map(has_text, tokens))]  # the number of them before each token
    while at < len(tokens):
        last = partners.get(at, at)
        if last > at and words[at] == words[last]:
            element = tokens[at : last + 1]
            # A break or blank inside it separates the words around it.
            breaks = any(token.breaks or token.text for token in element)
            raw = "".join(token.raw for token in element)
            is_dropped = all(token.is_dropped for token in element)
            result.append(Token("point", raw, breaks=breaks, is_dropped=is_dropped))
        else:
            last = at
            result.append(replace(tokens[at]))
        at = last + 1
    return result


def core(tokens: Sequence[Token]) -> tuple[int, list[Token]]:
    """The offset and the tokens of the span from the first to the last word, extended to all elements that it touches.

    It also grows by elements to drop that contain all of it. A line break absorbs the whitespace
    around it; any other tag between two spaces absorbs one of them.
    """
    partners = find_pairs(tokens)
    worded = [index for index, token in enumerate(tokens) if has_text(token) or token.closing] or [0, -1]
    first, last = worded[0], worded[-1]
    begin = min([first, *(i for i in range(first) if first < partners.get(i, -1) <= last)])
    end = max([last, *(i for i in range(last + 1, len(tokens)) if first <= partners.get(i, -1) <= last)])
    around = (i for i in range(begin) if tokens[i].is_dropped and partners.get(i, -1) > end)
    if (outermost := next(around, None)) is not None:
        begin, end = outermost, partners[outermost]
    size = sum(len(token.raw) for token in tokens[:begin])
    inside = without_empty(tokens[begin : end + 1])
    if inside and inside[0].kind == "text":
        size += len(strip(inside[0], str.lstrip))
    if inside and inside[-1].kind == "text":
        strip(inside[-1], str.rstrip)
    absorb_blanks(inside)
    return size, inside


def absorb_blanks(tokens: Sequence[Token]) -> None:
    """Move whitespace beside tags into their `raw`, in place."""
    nothing = Token("point", "")
    for before, token, after in zip([nothing, *tokens], tokens, [*tokens[1:], nothing], strict=False):
        between_texts = before.kind == after.kind == "text"
        if token.breaks:
            if after.kind == "text":
                token.raw += strip(after, str.lstrip)
            if before.kind == "text":
                token.raw = strip(before, str.rstrip) + token.raw
        elif token.kind == "point" and between_texts and before.text[-1:].isspace():
            token.raw += strip(after, str.lstrip)


def without_optional(nodes: Iterable[Token]) -> Iterator[Token]:
    """Replace all optional elements with their content."""
    for node in nodes:
        children = list(without_optional(node.children))
        yield from children if node.optional and node.kind == "open" else [replace(node, children=children)]


class Sentence(Part):
    """A part translated as one line; its tokens start at offset `begin`, and `escape` encodes text for the file."""

    def __init__(self, begin: int, tokens: Sequence[Token], escape: Callable[[str], str]) -> None:
        size, inside = core(with_whole_words(tokens))
        self.raw, self.escape = "".join(token.raw for token in inside), escape
        self.plain, self.nodes = tree(inside)
        has_words = any(c.isalpha() for token in inside if token.kind == "text" for c in token.text)
        lines = [" ".join(self.plain.split())] if has_words else []
        super().__init__(begin + size, begin + size + len(self.raw), lines)

    def render(self, translations: Sequence[Translated]) -> str:
        return self.written(translations, self.nodes, self.escape)

    def written(self, translations: Sequence[Translated], nodes: Sequence[Token], escape: Callable[[str], str]) -> str:
        """The translation with these nodes placed in it; the source if the translation is missing or the same."""
        text = " ".join(translations[0].text.split()) if translations else ""
        if text in ("", " ".join(self.plain.split())):
            return self.raw
        root = Token("open", "", end=len(self.plain), children=list(nodes))
        projection = Projection(self.plain, root, text, translations[0].alignment)
        place = Placed(0, len(text), root, range(len(projection.target.starts)))
        return projection.render(place, escape)

    def with_copies(self, text: str) -> str:
        """A text with code in place of its marks."""
        nodes = self.nodes[:]
        for node in nodes:
            nodes += node.children
        copies = {node.text[0]: node.raw for node in nodes if node.kind == "copy"}
        return COPY.sub(lambda copy: copies.get(copy[1], copy[0]), text)


class Tokens:
    """The words, punctuation, protected items and copies in a text; `chunks` are its whitespace-separated spans."""

    def __init__(self, text: str, marks: Collection[str] = (), edges: Iterable[int] = ()) -> None:
        self.text, self.chunks = text, [chunk.span() for chunk in re.finditer(r"\S+", text)]
        copies = [copy.span() for copy in COPY.finditer(text) if copy[1] in marks] if marks else []
        items, in_items = Finder([USUAL]).stretches(text), set[int]()
        for begin, end in items:
            in_items.update(range(begin + 1, end))
        cuts = {edge for span in [*items, *(word.span() for word in WORD.finditer(text))] for edge in span}
        cuts = (cuts - in_items).union(edges, *copies)
        for begin, end in copies:
            cuts.difference_update(range(begin + 1, end))
        spans = [(begin, end) for begin, end in pairwise(sorted(cuts)) if text[begin:end].strip()]
        self.starts, self.ends = [begin for begin, _ in spans], [end for _, end in spans]
        begins = {begin for begin, _ in copies}
        self.copies = [token for token, begin in enumerate(self.starts) if begin in begins]

    def between(self, begin: int, end: int) -> range:
        """The tokens that overlap a span."""
        return range(bisect_right(self.ends, begin), bisect_left(self.starts, end))

    def of(self, token: int) -> str:
        return self.text[self.starts[token] : self.ends[token]]

    def is_word(self, token: int) -> bool:
        return bool(re.search(r"\w", self.of(token)))

    def sides(self, chunk: int) -> list[range]:
        """A chunk's leading punctuation, its words and copies, and its trailing punctuation."""
        tokens = self.between(*self.chunks[chunk])
        words = [token for token in tokens if self.is_word(token) or COPY.match(self.of(token))] or tokens
        return [range(*edges) for edges in pairwise([tokens.start, words[0], words[-1] + 1, tokens.stop])]


def adjoin(one: Token, other: Token) -> bool:
    """True if only a blank for the model separates two nodes in the source, in any order."""
    pairs = ((one, other), (other, one))
    return any(after.is_apart and before.end + 1 == after.begin for before, after in pairs)


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
        self.source = Tokens(plain, marks, (edge for node in nodes for edge in (node.begin, node.end)))
        self.target = Tokens(target, marks)
        self.broken, self.filled = set[int](), set[int]()  # tokens after line breaks; places of copies without marks
        self.sources_of, self.targets_of = defaultdict[int, list[int]](list), defaultdict[int, list[int]](list)
        self.align(alignment)
        # Copies that a translator repeated or moved out of their element do not become text.
        self.surplus = regex.compile(rf" ?([{''.join(marks)}])(?:[^\s{COPIES}]*\1)?") if marks else None

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
        for a, b in sorted({*self.aligned(alignment), *partners.items()}):
            is_copy = b in self.copies_in_target or a in partners or a in lost
            if not is_copy or partners.get(a) == b:
                self.sources_of[b].append(a)
                self.targets_of[a].append(b)
            elif a in lost and b not in self.copies_in_target:  # where to put it, but not in place of this word
                self.targets_of[a].append(b)

    def aligned(self, alignment: Alignment) -> Iterator[tuple[int, int]]:
        """Refine chunk pairs into token pairs; a chunk with several partners divides its words among them."""
        sizes = len(self.source.chunks), len(self.target.chunks)
        if alignment is None:  # assume the same word order on both sides
            alignment = [(index * sizes[0] // sizes[1], index) for index in range(sizes[1])]
        pairs = sorted({(a, b) for a, b in alignment if 0 <= a < sizes[0] and 0 <= b < sizes[1]})
        partners, numbers = Counter(end for pair in pairs for end in enumerate(pair)), Counter[tuple[int, int]]()
        for pair in pairs:
            parts = [self.source.sides(pair[0]), self.target.sides(pair[1])]
            for end, part in zip(enumerate(pair), parts, strict=True):
                words, number, size = part[1], numbers[end], partners[end]
                first = min(len(words) * number // size, len(words) - 1)
                part[1] = words[first : max(len(words) * (number + 1) // size, first + 1)]
                numbers[end] += 1
            for source, target in zip(*parts, strict=True):
                size = max(len(source), len(target)) if source and target else 0
                yield from ((source[n * len(source) // size], target[n * len(target) // size]) for n in range(size))

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
            before = node
            pieces.append(escape(text))
            if inside or not (node.optional and is_element):
                pieces += [node.raw, inside, node.closing]
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
            if runs and runs[-1][0] == owner and token - runs[-1][1].stop < 2:  # at most one other word between
                runs[-1] = owner, range(runs[-1][1].start, token + 1)
            elif owner >= 0:
                runs.append((owner, range(token, token + 1)))
        placed = {index: self.covering(nodes[index], run) for index, run in self.best_runs(runs).items()}
        taken = {token: index for index, place in placed.items() for token in place.tokens}
        for index, node in enumerate(nodes):
            if index not in placed and (place := self.between(node, parent, taken)):
                placed[index] = place
                taken |= dict.fromkeys(place.tokens, index)
        return sorted(placed.values(), key=lambda place: place[:2])

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
            best[owner] = max(of_owner, key=lambda run: (len(marks.intersection(run)), len(run), -run.start))
        return best

    def covering(self, node: Token, tokens: range) -> Placed:
        return Placed(self.target.starts[tokens[0]], self.target.ends[tokens[-1]], node, tokens)

    def between(self, node: Token, parent: Placed, taken: dict[int, int]) -> Placed | None:
        """The place for a node without aligned words: elements take an adjacent free word; tags go between tokens."""
        low, high, at, target = parent.tokens.start, parent.tokens.stop, self.gap(node, parent), self.target
        adjacent = (at - 1, at) if node.is_glued else (at, at - 1)
        for token in adjacent if node.kind == "open" else ():
            if token in parent.tokens and token not in taken and target.is_word(token):
                return self.covering(node, range(token, token + 1))
        around = (gap for step in range(high - low + 1) for gap in (at - step, at + step) if low <= gap <= high)
        gaps = (gap for gap in around if gap not in taken or taken[gap] != taken.get(gap - 1) or gap in (low, high))
        if node.breaks:
            inner = (gap for gap in gaps if low < gap < high and not (node.optional and gap in self.broken))
            if (at := next(inner, -1)) < 0 and node.optional:
                return None  # two consecutive line breaks would create an empty line
            self.broken.add(at)
        at = at if node.breaks and at >= 0 else next(gaps, high)
        begin = target.ends[at - 1] if at > low else parent.begin
        end = target.starts[at] if at < high else parent.end
        if not (node.breaks and low < at < high):
            begin = end = begin if node.is_glued or at == high else end
        if node.kind == "copy":  # a translator lost its mark
            is_joined = low < at and not target.text[begin - 1].isspace() and not node.is_glued
            before = " " * (is_joined or begin in self.filled)
            after = " " * (at < high and not target.text[end : end + 1].isspace())
            node = replace(node, raw=before + node.raw + after)
            self.filled.add(begin)
        return Placed(begin, end, node, range(at, at))

    def gap(self, node: Token, parent: Placed) -> int:
        """The token before which to put a node without aligned words, based on an adjacent source word's partner."""
        low, high = parent.tokens.start, parent.tokens.stop
        words = self.source.between(parent.node.begin, parent.node.end)
        following = bisect_left(self.source.starts, node.begin)
        before = [token + 1 for token in self.targets_of[following - 1]] if following > words.start else []
        after = self.targets_of[following] if following < words.stop else []
        if not (before or after):
            return low + round((following - words.start) / max(len(words), 1) * (high - low))
        return min(max(max(before) if before and (node.is_glued or not after) else min(after), low), high)
