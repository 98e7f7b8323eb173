"""Constituency trees: Penn-style brackets, the sequence that a model writes, and trees from what it wrote instead."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import NamedTuple

from nmt.text.tokenizers import nfkc

TOPS = ("", "TOP", "ROOT", "S1")
"""Labels of the bracket around a whole tree, which is none of its constituents."""
TRACE = "-NONE-"
UNKNOWN = "XX"
"""The tag of a word whose tag is not known, and which is no punctuation."""
PUNCTUATION_TAGS = {
    **{mark: mark for mark in (",", ".", ":", "``", "''", "-LRB-", "-RRB-")},
    **{"?": ".", "!": ".", ";": ":", "--": ":", "...": ":"},
}
"""The Penn Treebank's tags of punctuation, by which scorers know it."""
TOKEN = re.compile(r"[()]|[^\s()]+")
# NP-SBJ-1 and NP=2 are NP, but -LRB- is a tag.
PLAIN_LABEL = re.compile(r"-[^-]+-|[^-=]+")
LINEAR_STEP = re.compile(r"(\()([^()]+)(\)?)|(\))([^()]+)")


class BrokenTree(Exception):
    """Text that is no tree; `index` is that of the character where this shows."""

    def __init__(self, problem: str, index: int) -> None:
        super().__init__(problem)
        self.index = index


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

    def steps(self, word: Callable[[int], str], close: Callable[[str], str]) -> Iterator[str]:
        """Write brackets and words from left to right; `word` is given an index, `close` a label."""
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
        """(TOP (S (NP (DT The) (NN end)))), in one line; empty where there are no words."""
        steps = self.steps(lambda index: f"({self.tags[index]} {self.words[index]})", lambda label: ")")
        # A bracket opens behind a blank, but closes right behind what it holds.
        written = "".join(f" {step}" if step[0] == "(" else step for step in steps)
        return f"(TOP{written})" if self.words else ""

    def linear(self, leaves: str = "words") -> str:
        """(S (NP (DT) The (NN) end )NP )S: what a model learns to write (after Vinyals et al. 2015).

        With leaves=tags the words are left out, as (DT), and with XX their tags too, as (XX).
        """

        def leaf(index: int) -> str:
            tag = f"({UNKNOWN if leaves == 'XX' else self.tags[index]})"
            return f"{tag} {model_word(self.words[index])}" if leaves == "words" else tag

        return " ".join(self.steps(leaf, lambda label: f"){label}"))


def plain_label(label: str) -> str:
    """A label without function tags and indices."""
    found = PLAIN_LABEL.match(label)
    return found[0] if found else label


def escape(text: str) -> str:
    """Write brackets in a text as treebanks do, so that none can be taken for a tree's."""
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
        """Indices of the open ones in `constituents`, the innermost last."""

    def open(self, label: str) -> None:
        self.opened.append(len(self.constituents))
        self.constituents.append(Constituent(label, len(self.words), -1))

    def close(self) -> None:
        index = self.opened.pop()
        self.constituents[index] = self.constituents[index]._replace(end=len(self.words))

    def levels(self, label: str) -> int:
        """The constituents to close until the innermost open one of that label is; 0 if there is none."""
        inwards = (self.constituents[index].label for index in reversed(self.opened))
        return next((level for level, found in enumerate(inwards, 1) if found == label), 0)

    def add(self, tag: str, word: str) -> None:
        self.words.append(word)
        self.tags.append(PUNCTUATION_TAGS.get(word, tag) if tag == UNKNOWN else tag)

    def tree(self) -> Tree:
        """The tree that was read, without constituents that hold no word."""
        assert not self.opened
        return Tree(self.words, self.tags, [c for c in self.constituents if c.start < c.end])


def parse(text: str) -> Iterator[Tree]:
    """The trees of a text, without traces, function tags and indices; one of traces alone has no words.

    Raises BrokenTree.
    """
    tokens = [(found[0], found.start()) for found in TOKEN.finditer(text)]
    tokens += [("", len(text))] * 3
    builder, labels, i, begins = Builder(), list[str](), 0, 0
    while tokens[i][0]:
        (first, where), (second, _), (third, _) = tokens[i : i + 3]
        unlabelled = second in ("(", ")", "")
        if first == ")":
            if not labels:
                raise BrokenTree("a bracket closes that was never opened", where)
            # The outermost bracket is a constituent only under a label of its own.
            label = labels.pop()
            if labels or label not in TOPS:
                builder.close()
            i += 1
        elif first != "(":
            raise BrokenTree(f"{first!r} stands outside the brackets of a tag and its word", where)
        elif not unlabelled and third not in ("(", ")", ""):
            if tokens[i + 3][0] != ")":
                raise BrokenTree(f"({second} {third} does not close behind its word", where)
            if (tag := plain_label(second)) != TRACE:
                builder.add(tag, third)
            i += 4
        elif second == ")" or third == ")":
            raise BrokenTree("a pair of brackets holds no word", where)
        elif unlabelled and labels:
            raise BrokenTree("a bracket opens without a label, or the tree before it does not close", where)
        else:
            begins = begins if labels else where
            labels.append("" if unlabelled else second)
            if len(labels) > 1 or labels[0] not in TOPS:
                builder.open(plain_label(labels[-1]))
            i += 1 if unlabelled else 2
        if not labels:
            yield builder.tree()
            builder = Builder()
    if labels:
        raise BrokenTree("a tree does not close", begins)


def read_linear(line: str, words: list[str]) -> tuple[Tree, int]:
    """The tree over exactly these words that a model wrote, and how many words and brackets had to be mended.

    What is left open closes at the end or with what holds it, what closes without having opened is left out, and so
    are words too many. A word too few stands beside the one before it, where words are written, or else it goes to
    the end of the outermost constituent.
    """
    steps = [LINEAR_STEP.fullmatch(token) or token for token in line.split()]
    written, wanted = written_words(steps), [model_word(word) for word in words]
    aligned = align(written, wanted)
    builder, leaf = Builder(), 0
    mended = sum(abs(len(found) - 1) for found in aligned) + len(words) - sum(map(len, aligned))
    for step in steps:
        if isinstance(step, str):
            mended += leaf == 0  # a word that no leaf is for
        elif step[3]:
            # The tag is that of the word behind it; words beside that one were left out, and have none.
            same = (index for index in aligned[leaf] if wanted[index] == written[leaf])
            tagged = next(same, min(aligned[leaf], default=0))
            for index in aligned[leaf]:
                builder.add(step[2] if index == tagged and step[2] != TRACE else UNKNOWN, words[index])
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
    """The word that is written behind each leaf."""
    written = list[str]()
    for step in steps:
        if isinstance(step, str):
            written[-1:] = [written[-1] + step] if written else []
        elif step[3]:
            written.append("")
    return written


def align(written: list[str], words: list[str]) -> list[list[int]]:
    """The indices of the words that each leaf stands for: its own one if all is well.

    Leaves without words are counted; else as many of them as can be stand for the words that they say.
    """
    if not any(written):
        return [[index] if index < len(words) else [] for index in range(len(written))]
    aligned: list[list[int]] = [[] for _ in written]
    for _, begin, end, first, last in SequenceMatcher(None, written, words, autojunk=False).get_opcodes():
        for index in range(first, last):
            aligned[max(0, min(begin + index - first, end - 1))].append(index)
    return aligned


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
