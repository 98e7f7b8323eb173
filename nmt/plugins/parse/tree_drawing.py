"""Two constituency trees over the same words on one grid: the reference above them, the parser's tree below."""

from dataclasses import dataclass

from nmt.plugins.parse.brackets import lacking, tree_of
from nmt.plugins.parse.trees import Tree


@dataclass
class Label:
    """A word, tag or constituent that spans the words from `start` to before `end`."""

    text: str
    start: int
    end: int
    row: int
    """In the grid, counted from the top."""
    kind: str
    """word, tag or constituent; missed is a constituent of the reference alone, wrong one of the parser alone."""


def heights(tree: Tree) -> list[int]:
    """The height of each constituent over its words: one more than the highest constituent in it."""
    found = [0] * len(tree.constituents)
    top = [0] * len(tree.words)  # the highest level over each word so far
    for number in reversed(range(len(found))):  # the inner before the outer
        _, start, end = tree.constituents[number]
        found[number] = max(top[start:end]) + 1
        top[start:end] = [found[number]] * (end - start)
    return found


def draw_trees(reference_line: str, hypothesis_line: str) -> list[Label]:
    """The labels of both trees; brackets that only one tree has are marked."""
    reference, hypothesis = tree_of(reference_line, "reference"), tree_of(hypothesis_line, "hypothesis")
    line = max(heights(reference), default=0) + 2  # the row of the words
    labels = [Label(word, i, i + 1, line, "word") for i, word in enumerate(reference.words)]
    for tree, other, kind, step in ((reference, hypothesis, "missed", -1), (hypothesis, reference, "wrong", 1)):
        labels += [Label(tag, i, i + 1, line + step, "tag") for i, tag in enumerate(tree.tags)]
        differing = lacking(tree, other, reference.tags)
        for (text, start, end), height, differs in zip(tree.constituents, heights(tree), differing, strict=True):
            labels.append(Label(text, start, end, line + step * (height + 1), kind if differs else "constituent"))
    return labels
