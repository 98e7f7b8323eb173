"""Two trees on one grid: each bracket over its words, and those that only one tree has marked."""

import pytest

from nmt.plugins.parse.brackets import compare_trees
from nmt.plugins.parse.tree_drawing import draw_trees

REFERENCE = "(TOP (S (NP (DT the) (NN end)) (VP (VBZ is) (ADJP (JJ near))) (. .)))"
HYPOTHESIS = "(TOP (S (NP (DT the) (NN end)) (PP (VBZ is)) (RB near)) (. .))"
BRACKETS = ("constituent", "missed", "wrong")


def test_every_word_and_tag_and_label_is_there():
    labels = draw_trees(REFERENCE, HYPOTHESIS)
    assert [label.text for label in labels if label.kind == "word"] == ["the", "end", "is", "near", "."]
    assert sorted(label.text for label in labels if label.kind != "word") == sorted(
        [*["DT", "NN", "VBZ", "JJ", ".", "S", "NP", "VP", "ADJP"], *["DT", "NN", "VBZ", "RB", ".", "S", "NP", "PP"]]
    )


def test_what_only_one_tree_has_is_marked_and_punctuation_moves_nothing():
    """The parser's S ends before the full stop, which is no mistake by EVALB's rules."""
    kinds = [label.kind for label in draw_trees(REFERENCE, HYPOTHESIS) if label.kind in BRACKETS]
    assert sorted(kinds) == [*["constituent"] * 4, "missed", "missed", "wrong"]
    counts = compare_trees([HYPOTHESIS], [REFERENCE])
    assert counts.reference - counts.matched == 2
    assert counts.hypothesis - counts.matched == 1


@pytest.mark.parametrize("hypothesis", [REFERENCE, HYPOTHESIS])
def test_nothing_lies_on_anything_else_and_the_reference_is_above(hypothesis):
    labels = draw_trees(REFERENCE, hypothesis)
    cells = [(label.row, column) for label in labels for column in range(label.start, label.end)]
    assert len(cells) == len(set(cells))
    (line,) = {label.row for label in labels if label.kind == "word"}
    assert min(row for row, _ in cells) == 1
    above = [label for label in labels if label.kind in BRACKETS and label.row < line]
    outermost = min(above, key=lambda label: label.row)
    assert (outermost.text, outermost.start, outermost.end) == ("S", 0, 5)
    assert len({label.row for label in above}) == 3  # S over VP over ADJP and NP


@pytest.mark.parametrize("tree", ["(TOP (INTJ (UH hush)))", "(TOP (UH hush))", "(TOP (PRT|ADVP (RB a)))", ""])
def test_small_trees_are_drawn(tree):
    labels = draw_trees(tree, tree)
    assert len(labels) == {"": 0, "(TOP (UH hush))": 3}.get(tree, 5)
