"""Constituency trees: Penn-style brackets, linear trees for the model, and trees from its faulty output."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import NamedTuple

from nmt.text import nfkc

TOPS = ("", "TOP", "ROOT", "S1")  # labels of the bracket around a whole tree, which is not a constituent
TRACE = "-NONE-"
UNKNOWN = "XX"  # the tag of a word whose tag is unknown and which is not punctuation
PUNCTUATION_TAGS = {
    **{mark: mark for mark in (",", ".", ":", "``", "''", "-LRB-", "-RRB-")},
    **{"?": ".", "!": ".", ";": ":", "--": ":", "...": ":"},
}
"""Tags of the Penn Treebank by which scorers recognize punctuation."""
# A word with its tag, an opening bracket with its label, a closing bracket, or anything else.
TOKEN = re.compile(r"\(\s*([^\s()]+)\s+([^\s()]+)\s*\)|(\()\s*(?P<label>[^\s()]*)|(\))|[^\s()]+")
# NP-SBJ-1 and NP=2 are NP, but -LRB- is a tag.
PLAIN_LABEL = re.compile(r"-[^-]+-|[^-=]+|.+")
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

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    constituents: list[Constituent] = field(default_factory=list)
    opened: list[int] = field(default_factory=list)  # while the tree is built: open constituents, innermost last

    def open(self, label: str) -> None:
        self.opened.append(len(self.constituents))
        self.constituents.append(Constituent(label, len(self.words), -1))

    def close(self) -> None:
        index = self.opened.pop()
        self.constituents[index] = self.constituents[index]._replace(end=len(self.words))

    def add(self, tag: str, word: str) -> None:
        self.words.append(word)
        self.tags.append(PUNCTUATION_TAGS.get(word, tag) if tag == UNKNOWN else tag)

    def without_empty(self) -> "Tree":
        return Tree(self.words, self.tags, [part for part in self.constituents if part.start < part.end])

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
        return f"(TOP {' '.join(steps).replace(' )', ')')})" if self.words else ""

    def linear(self) -> str:
        """The sequence that a model learns to write, as (S (NP (DT) The (NN) end )NP )S (after Vinyals et al. 2015)."""
        steps = self.steps(
            lambda index: f"({self.tags[index]}) {model_word(self.words[index])}", lambda label: f"){label}"
        )
        return " ".join(steps)


def escape(text: str) -> str:
    """Escape brackets in a text as treebanks do, so that they cannot be taken for those of a tree."""
    return text.replace("(", "-LRB-").replace(")", "-RRB-")


def model_word(word: str) -> str:
    """A word as a model reads and writes it."""
    return escape("".join(nfkc(word).split()))


def parse(text: str) -> Iterator[Tree]:
    """The trees of a text, without traces, function tags and indices; BrokenTree where it has something else."""
    tree, opened = Tree(), list[re.Match[str]]()
    for token in TOKEN.finditer(text):
        tag, word, opens, label, closes = token.groups()
        if tag and (plain := PLAIN_LABEL.findall(tag)[0]) != TRACE:
            tree.add(plain, word)
        elif opens:
            if opened and not label:
                raise BrokenTree("a bracket opens without a label, or the tree before it does not close", token.start())
            opened.append(token)
            # The outermost bracket is a constituent only if it has a label.
            if len(opened) > 1 or label not in TOPS:
                tree.open(PLAIN_LABEL.findall(label)[0])
        elif closes:
            if not opened:
                raise BrokenTree("a bracket closes that was never opened", token.start())
            label = opened.pop()["label"]
            if opened or label not in TOPS:
                tree.close()
        elif not tag:
            raise BrokenTree(f"{token[0]!r} is not in brackets with a tag", token.start())
        if not opened:
            yield tree.without_empty()
            tree = Tree()
    if opened:
        raise BrokenTree("a tree does not close", opened[0].start())


def read_linear(line: str, words: list[str]) -> tuple[Tree, int]:
    """Make a tree over exactly `words` from what a model wrote; also returns the number of repairs.

    A constituent that is left open closes with the one around it, or at the end. A closing bracket without an opening
    one is left out, and so are surplus words. A missing word goes next to the one before it.
    """
    steps, written, repairs = list[re.Match[str]](), list[str](), 0  # `written`: the word after each leaf
    for token in line.split():
        if step := LINEAR_STEP.fullmatch(token):
            steps.append(step)
            written += [""] if step[3] else []
        elif written:
            written[-1] += token
        else:
            repairs += 1
    tree, leaf, correct = Tree(), 0, [model_word(word) for word in words]
    if not written:
        for word in words:
            tree.add(UNKNOWN, word)
        return tree, repairs + len(steps) + len(words)
    # The indices of the words that each leaf stands for, by the longest common parts: exactly one in a faultless tree.
    aligned: list[list[int]] = [[] for _ in written]
    for _, begin, end, first, last in SequenceMatcher(None, written, correct, autojunk=False).get_opcodes():
        for index in range(first, last):
            aligned[max(0, min(begin + index - first, end - 1))].append(index)
    repairs += sum(abs(len(indices) - 1) for indices in aligned)
    for step in steps:
        if step[3]:
            # The tag belongs to the word that follows it; missing words next to that one have no tag.
            same = (index for index in aligned[leaf] if correct[index] == written[leaf])
            tagged = next(same, min(aligned[leaf], default=0))
            for index in aligned[leaf]:
                tree.add(step[2] if index == tagged and step[2] != TRACE else UNKNOWN, words[index])
            leaf += 1
        elif step[1]:
            tree.open(step[2])
        else:  # close as many constituents as it takes to close the innermost one with that label
            inwards = [tree.constituents[index].label for index in reversed(tree.opened)]
            levels = inwards.index(step[5]) + 1 if step[5] in inwards else 0
            repairs += abs(levels - 1)
            for _ in range(levels):
                tree.close()
    repairs += len(tree.opened) + sum(part.start == part.end for part in tree.constituents)
    while tree.opened:
        tree.close()
    return tree.without_empty(), repairs
