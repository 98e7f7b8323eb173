"""Constituency trees, written with brackets as in the Penn Treebank or in one line for a model."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from nmt.config import NMTError
from nmt.text import MalformedLine, compatible

TOPS = ("", "TOP", "ROOT", "S1")
"""Labels of a tree's outermost bracket, which is not a constituent."""
TRACE = "-NONE-"
"""The tag of an empty element, such as the place from which a phrase was moved."""
UNKNOWN = "XX"
"""The tag of a non-punctuation word whose tag is unknown."""
PUNCTUATION_TAGS = {
    ",": ",",
    ".": ".",
    ":": ":",
    "``": "``",
    "''": "''",
    "-LRB-": "-LRB-",
    "-RRB-": "-RRB-",
    "?": ".",
    "!": ".",
    ";": ":",
    "--": ":",
    "...": ":",
}
"""Punctuation mark -> the Penn Treebank tag by which scorers recognize it."""
TOKEN = re.compile(
    r"\(\s*(?P<tag>[^\s()]+)\s+(?P<word>[^\s()]+)\s*\)"
    r"|(?P<opens>\()\s*(?P<label>[^\s()]*)"
    r"|(?P<closes>\))"
    r"|[^\s()]+"
)
"""A word with its tag, an opening bracket with its label, a closing bracket, or other text."""
PLAIN_LABEL = re.compile(r"-[^-]+-|[^-=]+|.+")
"""The label at the beginning of NP-SBJ-1 and NP=2, but -LRB- is a whole tag."""


def broken(problem: str) -> MalformedLine:
    return MalformedLine("broken tree", problem)


@dataclass
class Constituent:
    """A phrase."""

    label: str
    start: int  # the index of its first word
    end: int  # the index after its last word


@dataclass
class Tree:
    """A sentence's words, the tag of each word, and its constituents."""

    words: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    constituents: list[Constituent] = field(default_factory=list)
    """The constituents in the order in which they open."""
    opened: list[int] = field(default_factory=list)
    """While the tree is being built: indices of the open constituents, the innermost last."""

    def open(self, label: str) -> None:
        self.opened.append(len(self.constituents))
        self.constituents.append(Constituent(label, len(self.words), -1))

    def close(self) -> None:
        index = self.opened.pop()
        self.constituents[index].end = len(self.words)

    def add(self, tag: str, word: str) -> None:
        # Scorers recognize punctuation by its tag. With XX, it would shift all brackets.
        if tag == UNKNOWN:
            tag = PUNCTUATION_TAGS.get(word, UNKNOWN)
        self.words.append(word)
        self.tags.append(tag)

    def without_empty(self) -> "Tree":
        """The tree without constituents that have no words."""
        kept = [phrase for phrase in self.constituents if phrase.start < phrase.end]
        return Tree(self.words, self.tags, kept)

    def steps(self, leaves: list[str], close: Callable[[str], str]) -> Iterator[str]:
        """Brackets and leaves from left to right; `close` turns a label into a closing bracket."""
        waiting = self.constituents[::-1]  # the next one to open is last
        opened = list[Constituent]()
        for index in range(len(self.words) + 1):
            # Constituents close before the next ones open at the same place, the innermost first.
            while opened and opened[-1].end == index:
                yield close(opened.pop().label)
            # Of those that open at the same place, the outer one comes first, as in the list.
            while waiting and waiting[-1].start == index:
                opened.append(waiting.pop())
                yield f"({opened[-1].label}"
            if index < len(self.words):
                yield leaves[index]

    def bracketed(self) -> str:
        """The tree on one line, such as (TOP (S (NP (DT The) (NN end)))); empty without words."""
        if not self.words:
            return ""
        leaves = [f"({tag} {word})" for tag, word in zip(self.tags, self.words, strict=True)]
        steps = " ".join(self.steps(leaves, lambda label: ")"))
        # Words contain no bracket: they are escaped when they are read.
        return f"(TOP {steps.replace(' )', ')')})"

    def linear(self) -> str:
        """The sequence that a model learns to write (after Vinyals et al. 2015).

        For example, (S (NP (DT) The (NN) end )NP )S.
        """
        leaves = []
        for tag, word in zip(self.tags, self.words, strict=True):
            # Vinyals et al. write only tags. With the words, the model finds its place in the
            # sentence sooner.
            leaves.append(f"({tag}) {model_word(word)}")
        return " ".join(self.steps(leaves, lambda label: f"){label}"))


def escape(text: str) -> str:
    """Escape brackets as treebanks do, so that they cannot be mistaken for a tree's brackets."""
    return text.replace("(", "-LRB-").replace(")", "-RRB-")


def model_word(word: str) -> str:
    """A word as a model reads and writes it."""
    # Without spaces, which compatible forms may contain: the words of a sentence are counted.
    return escape("".join(compatible(word).split()))


def model_sentence(line: str) -> str:
    """A sentence as the model reads it: cleaned, and with escaped brackets."""
    return " ".join(map(model_word, line.split()))


def plain_label(label: str) -> str:
    """A tag or label without function tags and indices."""
    match = PLAIN_LABEL.match(label)
    assert match
    return match[0]


def parse(text: str) -> Iterator[Tree]:
    """The trees in a text, without traces, function tags or indices.

    MalformedLine if any text is not a tree.
    """
    tree = Tree()
    labels: list[str] = []  # of the brackets that are open
    # A loop, because a file with deeply nested brackets would exceed Python's limit of recursion.
    for token in TOKEN.finditer(text):
        if token["tag"]:
            tag = plain_label(token["tag"])
            # A trace is not a word of the sentence.
            if tag != TRACE:
                tree.add(tag, token["word"])
        elif token["opens"]:
            open_bracket(tree, labels, token["label"])
        elif token["closes"]:
            close_bracket(tree, labels)
        else:
            raise broken(f"{token[0]!r} is not in brackets with a tag")
        if not labels:
            yield tree.without_empty()
            tree = Tree()
    if labels:
        raise broken("a tree is not closed")


def open_bracket(tree: Tree, labels: list[str], label: str) -> None:
    """Open a constituent, unless the bracket is the outermost one; adds to the open `labels`."""
    if labels and not label:
        raise broken("a bracket opens without a label, or the previous tree is not closed")
    # Only the outermost bracket: some treebanks have none, and their trees begin with S.
    is_top = not labels and label in TOPS
    labels.append(label)
    if not is_top:
        tree.open(plain_label(label))


def close_bracket(tree: Tree, labels: list[str]) -> None:
    """Close the innermost constituent; removes its label from the open `labels`."""
    if not labels:
        raise broken("a closing bracket has no opening bracket")
    label = labels.pop()
    is_top = not labels and label in TOPS
    if not is_top:
        tree.close()


def tree_of(line: str, where: str) -> Tree:
    """The tree on a line, without words if the line is blank.

    NMTError, which begins with `where`, if there are several trees or a broken one.
    """
    try:
        trees = list(parse(line))
    except MalformedLine as error:
        raise NMTError(f"{where}: not a tree ({error})") from error
    # Line N of the trees belongs to line N of the sentences.
    if len(trees) > 1:
        raise NMTError(f"{where}: {len(trees)} trees; write one tree per line")
    return trees[0] if trees else Tree()
