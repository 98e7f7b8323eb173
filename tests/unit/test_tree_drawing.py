"""Two trees in one drawing: each bracket over its words, and those that only one tree has marked."""

from xml.etree import ElementTree

import pytest

from nmt.parsing.brackets import compare_trees, tree_of
from nmt.report.trees import LETTER, draw_trees

REFERENCE = "(TOP (S (NP (DT the) (NN end)) (VP (VBZ is) (ADJP (JJ near))) (. .)))"
HYPOTHESIS = "(TOP (S (NP (DT the) (NN end)) (PP (VBZ is)) (RB near)) (. .))"


def drawn(reference, hypothesis):
    """(class, x, right, y) of each box, and the words with (class, x, y)."""
    root = ElementTree.fromstring(draw_trees(tree_of(reference, ""), tree_of(hypothesis, "")))
    space = "{http://www.w3.org/2000/svg}" if root.tag.startswith("{") else ""
    boxes = []
    for box in root.iter(f"{space}rect"):
        x, width, y = (float(box.get(key)) for key in ("x", "width", "y"))
        boxes.append((box.get("class"), x, x + width, y))
    texts = [(text.text, text.get("class"), float(text.get("x")), float(text.get("y"))) for text in root.iter("text")]
    return boxes, texts, root


def test_every_word_and_tag_and_label_is_there():
    _, texts, _ = drawn(REFERENCE, HYPOTHESIS)
    words = [text for text, kind, *_ in texts if kind == "word"]
    assert words == ["the", "end", "is", "near", "."]
    assert sorted(text for text, kind, *_ in texts if kind != "word") == sorted(
        [*["DT", "NN", "VBZ", "JJ", ".", "S", "NP", "VP", "ADJP"], *["DT", "NN", "VBZ", "RB", ".", "S", "NP", "PP"]]
    )


def test_what_only_one_tree_has_is_marked_and_punctuation_moves_nothing():
    """The parser's S ends before the full stop, which is no mistake by EVALB's rules."""
    boxes, _, _ = drawn(REFERENCE, HYPOTHESIS)
    assert sorted(kind or "" for kind, *_ in boxes) == ["", "", "", "", "missed", "missed", "wrong"]
    counts = compare_trees([HYPOTHESIS], [REFERENCE])
    assert counts.reference - counts.matched == 2
    assert counts.hypothesis - counts.matched == 1


def test_a_bracket_lies_over_its_words_and_over_those_that_it_holds():
    boxes, texts, root = drawn(REFERENCE, REFERENCE)
    words = {text: (x, y) for text, kind, x, y in texts if kind == "word"}
    line = words["the"][1]
    above = sorted((box for box in boxes if box[3] < line), key=lambda box: box[3])
    below = [box for box in boxes if box[3] > line]
    assert len(above) == len(below) == 4
    assert len({y for *_, y in above}) == 3  # S over VP over ADJP and NP
    _, left, right, _ = above[0]
    assert left <= words["the"][0]
    assert words["."][0] < right <= float(root.get("viewBox").split()[2])
    for _, left, right, y in boxes:
        for _, other_left, other_right, other_y in boxes:
            apart = other_right <= left or right <= other_left
            assert (left, y) == (other_left, other_y) or y != other_y or apart


@pytest.mark.parametrize("tree", ["(TOP (INTJ (UH hush)))", "(TOP (UH hush))", "(TOP (PRT|ADVP (RB a)))"])
def test_labels_fit_over_short_words(tree):
    boxes, texts, root = drawn(tree, tree)
    widest = max(LETTER * len(text) for text, *_ in texts)
    assert all(right - left >= widest for _, left, right, _ in boxes)
    assert float(root.get("viewBox").split()[2]) >= widest


def test_foreign_text_is_escaped():
    _, texts, _ = drawn("(TOP (NN <b>&amp;))", "(TOP (NN <b>&amp;))")
    assert "<b>&amp;" in [text for text, *_ in texts]
