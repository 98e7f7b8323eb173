"""Constituency trees: Penn-style brackets, linear trees for the model, and trees from its faulty output."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from nmt.text import nfkc

TOPS = ("", "TOP", "ROOT", "S1")
"""Labels of the bracket around a whole tree, which is not a constituent."""
TRACE = "-NONE-"
UNKNOWN = "XX"
"""The tag of a word whose tag is unknown and which is not punctuation."""
PUNCTUATION_TAGS = {
    **{mark: mark for mark in (",", ".", ":", "``", "''", "-LRB-", "-RRB-")},
    **{"?": ".", "!": ".", ";": ":", "--": ":", "...": ":"},
}
"""Tags of the Penn Treebank by which scorers recognise punctuation."""
# A word with its tag, an opening bracket with its label, a closing bracket, or anything else.
TOKEN = re.compile(r"\(\s*([^\s()]+)\s+([^\s()]+)\s*\)|(\()\s*(?P<label>[^\s()]*)|(\))|[^\s()]+")
# NP-SBJ-1 and NP=2 are NP, but -LRB- is a tag.
PLAIN_LABEL = re.compile(r"-[^-]+-|[^-=]+")
LINEAR_STEP = re.compile(r"(\()([^()]+)(\)?)|(\))([^()]+)")


class BrokenTree(Exception):
    """A text that is not a tree; `index` is the character at which it breaks."""

    def __init__(self, problem: str, index: int) -> None:
        super().__init__(problem)
        self.index = index


class Constituent(NamedTuple):
    """A label over the words from `start` to before `end`, at least one."""

    label: str
    start: int
    end: int


@dataclass
class Tree:
    """A sentence with the tag of each word, and its constituents in the order in which they open, outer first."""

    words: list[str]
    tags: list[str]
    constituents: list[Constituent]

    def steps(self, word: Callable[[int], str], close: Callable[[str], str]) -> Iterator[str]:
        """Write brackets and words from left to right; `word` takes an index, `close` a label."""
        waiting, opened = self.constituents[::-1], list[Constituent]()
        for index in range(len(self.words) + 1):
            while opened and opened[-1].end == index:
                yield close(opened.pop().label)
            while waiting and waiting[-1].start == index:
                opened.append(waiting.pop())
                yield f"({opened[-1].label}"
            if index < len(self.words):
                yield word(index)

    def bracketed(self) -> str:
        """The tree on one line, as (TOP (S (NP (DT The) (NN end)))); empty without words."""
        steps = self.steps(lambda index: f"({self.tags[index]} {self.words[index]})", lambda label: ")")
        # An opening bracket follows a blank, a closing one does not.
        written = "".join(f" {step}" if step[0] == "(" else step for step in steps)
        return f"(TOP{written})" if self.words else ""

    def linear(self, leaves: str = "words") -> str:
        """The sequence that a model learns to write, as (S (NP (DT) The (NN) end )NP )S (after Vinyals et al. 2015).

        leaves=tags leaves out the words, as (DT), and leaves=XX the tags too, as (XX).
        """

        def leaf(index: int) -> str:
            tag = f"({UNKNOWN if leaves == 'XX' else self.tags[index]})"
            return f"{tag} {model_word(self.words[index])}" if leaves == "words" else tag

        return " ".join(self.steps(leaf, lambda label: f"){label}"))


def plain_label(label: str) -> str:
    """A label without function tags and indices."""
    plain = PLAIN_LABEL.match(label)
    return plain[0] if plain else label


def escape(text: str) -> str:
    """Escape brackets in a text as treebanks do, so that they cannot be taken for those of a tree."""
    return text.replace("(", "-LRB-").replace(")", "-RRB-")


def model_word(word: str) -> str:
    """A word as a model reads and writes it."""
    return escape("".join(nfkc(word).split()))


class Builder:
    """Builds a tree while its brackets are read."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.tags: list[str] = []
        self.constituents: list[Constituent] = []
        self.opened: list[int] = []
        """Indices of the open constituents, innermost last."""

    def open(self, label: str) -> None:
        self.opened.append(len(self.constituents))
        self.constituents.append(Constituent(label, len(self.words), -1))

    def close(self) -> None:
        index = self.opened.pop()
        self.constituents[index] = self.constituents[index]._replace(end=len(self.words))

    def add(self, tag: str, word: str) -> None:
        self.words.append(word)
        self.tags.append(PUNCTUATION_TAGS.get(word, tag) if tag == UNKNOWN else tag)

    def tree(self) -> Tree:
        """The tree, without constituents that have no words."""
        assert not self.opened
        return Tree(self.words, self.tags, [c for c in self.constituents if c.start < c.end])


def parse(text: str) -> Iterator[Tree]:
    """The trees of a text, without traces, function tags and indices; a tree of traces only has no words.

    Raises BrokenTree.
    """
    builder, opened, previous = Builder(), list[re.Match[str]](), None
    for token in TOKEN.finditer(text):
        tag, word, opens, label, closes = token.groups()
        if tag:
            if (plain := plain_label(tag)) != TRACE:
                builder.add(plain, word)
        elif opens:
            if opened and not label:
                problem = "a bracket opens without a label, or the tree before it does not close"
                raise BrokenTree(problem, token.start())
            opened.append(token)
            # The outermost bracket is a constituent only if it has a label.
            if len(opened) > 1 or label not in TOPS:
                builder.open(plain_label(label))
        elif closes:
            if not opened:
                raise BrokenTree("a bracket closes that was never opened", token.start())
            if previous is opened[-1]:
                raise BrokenTree("a pair of brackets holds no word", previous.start())
            label = opened.pop()["label"]
            if opened or label not in TOPS:
                builder.close()
        else:
            raise BrokenTree(f"{token[0]!r} is not in brackets with a tag", token.start())
        if not opened:
            yield builder.tree()
            builder = Builder()
        previous = token
    if opened:
        raise BrokenTree("a tree does not close", opened[0].start())


def read_linear(line: str, words: list[str]) -> tuple[Tree, int]:
    """Make a tree over exactly `words` from what a model wrote; also returns the number of repairs.

    A constituent that is left open closes with the one around it, or at the end. A closing bracket without an opening
    one is left out, and so are surplus words. A missing word goes next to the one before it if words are written, else
    to the end of the outermost constituent.
    """
    steps = [LINEAR_STEP.fullmatch(token) or token for token in line.split()]
    written = list[str]()  # the word after each leaf
    for step in steps:
        if isinstance(step, str):
            written[-1:] = [written[-1] + step] if written else []
        elif step[3]:
            written.append("")
    correct = [model_word(word) for word in words]
    aligned = align(written, correct)
    builder, leaf = Builder(), 0
    mended = sum(abs(len(indices) - 1) for indices in aligned) + len(words) - sum(map(len, aligned))
    for step in steps:
        if isinstance(step, str):
            mended += leaf == 0  # a word before any leaf
        elif step[3]:
            # The tag belongs to the word that follows it; missing words next to that one have no tag.
            same = (index for index in aligned[leaf] if correct[index] == written[leaf])
            tagged = next(same, min(aligned[leaf], default=0))
            for index in aligned[leaf]:
                builder.add(step[2] if index == tagged and step[2] != TRACE else UNKNOWN, words[index])
            leaf += 1
        elif step[1]:
            builder.open(step[2])
        else:  # close as many constituents as it takes to close the innermost one with that label
            inwards = [builder.constituents[index].label for index in reversed(builder.opened)]
            levels = inwards.index(step[5]) + 1 if step[5] in inwards else 0
            mended += abs(levels - 1)
            for _ in range(levels):
                builder.close()
    mended += len(builder.opened) + sum(c.start == c.end for c in builder.constituents)
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
    return tree, mended


def align(written: list[str], words: list[str]) -> list[list[int]]:
    """The indices of the words that each leaf stands for: exactly one in a faultless tree.

    Leaves without words are matched by position, others by the longest common parts of both sequences.
    """
    if not any(written):
        return [[index] if index < len(words) else [] for index in range(len(written))]
    aligned: list[list[int]] = [[] for _ in written]
    for _, begin, end, first, last in SequenceMatcher(None, written, words, autojunk=False).get_opcodes():
        for index in range(first, last):
            aligned[max(0, min(begin + index - first, end - 1))].append(index)
    return aligned
