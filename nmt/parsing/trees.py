"""Constituency trees: Penn-style brackets, the sequence that a model writes, and trees from what it wrote instead."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from nmt.text.tokenizers import nfkc

TOPS = ("", "TOP", "ROOT", "S1")
"""How treebanks label the bracket around a whole tree, which is none of its constituents."""
TRACE = "-NONE-"
UNKNOWN = "XX"
"""The tag of a word of which none is known, and which is no punctuation."""
PUNCTUATION_TAGS = {
    **{mark: mark for mark in (",", ".", ":", "``", "''", "-LRB-", "-RRB-")},
    **{"?": ".", "!": ".", ";": ":", "--": ":", "...": ":"},
}
"""How the Penn Treebank tags its punctuation, by which scorers know it."""
TOKEN = re.compile(r"[()]|[^\s()]+")
# NP-SBJ-1 and NP=2 are NP, but -LRB- is a tag.
PLAIN_LABEL = re.compile(r"-[^-]+-|[^-=]+")
LINEAR_STEP = re.compile(r"(\()([^()]+)(\)?)|(\))([^()]+)")


class BrokenTree(Exception):
    """Text that is no tree; `place` is where this shows, in characters."""

    def __init__(self, problem: str, place: int) -> None:
        super().__init__(problem)
        self.place = place


class Constituent(NamedTuple):
    """The words from `start` to before `end`, at least one."""

    label: str
    start: int
    end: int


@dataclass
class Tree:
    """A sentence with the tag of each word, and its constituents as they open: the outer before the inner."""

    words: list[str]
    tags: list[str]
    constituents: list[Constituent]

    def steps(self) -> Iterator[tuple[str, str | int]]:
        """From left to right: ("open", label), ("word", its place) and ("close", label)."""
        waiting, opened = self.constituents[::-1], list[Constituent]()
        for place in range(len(self.words) + 1):
            while opened and opened[-1].end == place:
                yield "close", opened.pop().label
            while waiting and waiting[-1].start == place:
                opened.append(waiting.pop())
                yield "open", opened[-1].label
            if place < len(self.words):
                yield "word", place

    def bracketed(self) -> str:
        """(TOP (S (NP (DT The) (NN end)))), in one line; empty where there are no words."""
        if not self.words:
            return ""
        written = ["(TOP"]
        for step, what in self.steps():
            if step == "word":
                assert isinstance(what, int)
                written.append(f" ({self.tags[what]} {self.words[what]})")
            else:
                written.append(f" ({what}" if step == "open" else ")")
        return "".join(written) + ")"

    def linear(self, leaves: str = "words") -> str:
        """(S (NP (DT) The (NN) end )NP )S: what a model learns to write (after Vinyals et al. 2015).

        With leaves=tags the words are left out, as (DT), and with XX their tags too, as (XX).
        """
        written = []
        for step, what in self.steps():
            if step == "word":
                assert isinstance(what, int)
                written.append(f"({UNKNOWN if leaves == 'XX' else self.tags[what]})")
                written += [model_word(self.words[what])] if leaves == "words" else []
            else:
                written.append(f"({what}" if step == "open" else f"){what}")
        return " ".join(written)


def plain_label(label: str) -> str:
    """A label without function tags and indices."""
    found = PLAIN_LABEL.match(label)
    return found[0] if found else label


def escape(text: str) -> str:
    """Text whose brackets are written as in treebanks, so that none can be taken for a tree's."""
    return text.replace("(", "-LRB-").replace(")", "-RRB-")


def model_word(word: str) -> str:
    """A word as a model reads and writes it."""
    return escape("".join(nfkc(word).split()))


class Builder:
    """A tree that grows while its brackets are read."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.tags: list[str] = []
        self.constituents: list[Constituent] = []
        self.opened: list[int] = []
        """Places in `constituents` of those that are open, the innermost last."""

    def open(self, label: str) -> None:
        self.opened.append(len(self.constituents))
        self.constituents.append(Constituent(label, len(self.words), -1))

    def close(self) -> None:
        place = self.opened.pop()
        self.constituents[place] = self.constituents[place]._replace(end=len(self.words))

    def levels(self, label: str | None) -> int:
        """How many constituents are to be closed for the innermost open one of that label to be; 0 if none is."""
        inwards = (self.constituents[place].label for place in reversed(self.opened))
        return next((level for level, found in enumerate(inwards, 1) if found == label), 0)

    def add(self, tag: str, word: str) -> None:
        self.words.append(word)
        self.tags.append(PUNCTUATION_TAGS.get(word, tag) if tag == UNKNOWN else tag)

    def tree(self) -> Tree:
        """What was read, without constituents that hold no word."""
        assert not self.opened
        return Tree(self.words, self.tags, [c for c in self.constituents if c.start < c.end])


def parse(text: str) -> Iterator[Tree]:
    """The trees of a text, without traces, function tags and indices; one of traces alone has no words.

    Raises BrokenTree.
    """
    tokens = [(found[0], found.start()) for found in TOKEN.finditer(text)]
    tokens += [("", len(text))] * 3
    builder, labels, place, begins = Builder(), list[str](), 0, 0
    while tokens[place][0]:
        (first, where), (second, _), (third, _) = tokens[place : place + 3]
        bracket = second in ("(", ")", "")
        if first == ")":
            if not labels:
                raise BrokenTree("a bracket closes that was never opened", where)
            close(builder, labels)
            place += 1
        elif first != "(":
            raise BrokenTree(f"{first!r} stands outside the brackets of a tag and its word", where)
        elif not bracket and third not in ("(", ")", ""):
            if tokens[place + 3][0] != ")":
                raise BrokenTree(f"({second} {third} does not close behind its word", where)
            if (tag := plain_label(second)) != TRACE:
                builder.add(tag, third)
            place += 4
        elif second == ")" or third == ")":
            raise BrokenTree("a pair of brackets holds no word", where)
        elif bracket and labels:
            raise BrokenTree("a bracket opens without a label, or the tree before it does not close", where)
        else:
            label = "" if bracket else second
            begins = begins if labels else where
            place += 1 if bracket else 2
            labels.append(label)
            if len(labels) > 1 or label not in TOPS:
                builder.open(plain_label(label))
        if not labels:
            yield builder.tree()
            builder = Builder()
    if labels:
        raise BrokenTree("a tree does not close", begins)


def close(builder: Builder, labels: list[str]) -> None:
    """Close the innermost bracket; the outermost is a constituent only under a label of its own."""
    label = labels.pop()
    if labels or label not in TOPS:
        builder.close()


def read_linear(line: str, words: list[str]) -> tuple[Tree, int]:
    """The tree over exactly these words that a model wrote, and how many words and brackets had to be mended.

    What is left open closes at the end or with what holds it, what closes without having opened is left out, and so
    are words too many. A word too few stands beside the one before it, where words are written, or else it goes to
    the end of the outermost constituent.
    """
    steps = [LINEAR_STEP.fullmatch(token) or token for token in line.split()]
    written, wanted = written_words(steps), [model_word(word) for word in words]
    places = align(written, wanted)
    builder, leaf = Builder(), 0
    mended = sum(abs(len(found) - 1) for found in places) + len(words) - sum(map(len, places))
    for step in steps:
        if isinstance(step, str):
            mended += leaf == 0  # a word that no leaf is for
            continue
        if step[3]:
            # The tag is that of the word behind it; words beside that one were left out, and have none.
            own = next(
                (place for place in places[leaf] if wanted[place] == written[leaf]), min(places[leaf], default=0)
            )
            for place in places[leaf]:
                builder.add(step[2] if place == own and step[2] != TRACE else UNKNOWN, words[place])
            leaf += 1
        elif step[1]:
            builder.open(step[2])
        else:
            levels = builder.levels(step[5])
            mended += abs(levels - 1)
            for _ in range(levels):
                builder.close()
    mended += len(builder.opened) + sum(c.start == c.end for c in builder.constituents)
    return close_all(builder, words), mended


def written_words(steps: list[re.Match[str] | str]) -> list[str]:
    """What is written behind each leaf."""
    written = list[str]()
    for step in steps:
        if isinstance(step, str):
            written[-1:] = [written[-1] + step] if written else []
        elif step[3]:
            written.append("")
    return written


def align(written: list[str], words: list[str]) -> list[list[int]]:
    """The places of the words that each leaf stands for: its own one if all is well.

    Leaves without words are counted; else as many of them as can be stand for the words that they say.
    """
    if not any(written):
        return [[place] if place < len(words) else [] for place in range(len(written))]
    places: list[list[int]] = [[] for _ in written]
    for _, begin, end, first, last in SequenceMatcher(None, written, words, autojunk=False).get_opcodes():
        for place in range(first, last):
            places[max(0, min(begin + place - first, end - 1))].append(place)
    return places


def close_all(builder: Builder, words: list[str]) -> Tree:
    """The tree with all of the words, and everything closed."""
    read = len(builder.words)
    while len(builder.opened) > 1:
        builder.close()
    for word in words[read:]:
        builder.add(UNKNOWN, word)
    if builder.opened:
        builder.close()
    tree = builder.tree()
    if tree.constituents and tree.constituents[0][1:] == (0, read):
        tree.constituents[0] = tree.constituents[0]._replace(end=len(words))
    return tree
