"""Trees: what is read from brackets, the sequence that a model learns, and trees from any sequence at all."""

import re

import pytest
from hypothesis import given, settings, strategies as st

from nmt.plugins.parse.trees import (
    PUNCTUATION_TAGS,
    BrokenTree,
    Constituent,
    Tree,
    parse,
    read_linear,
)

LABELS = ["S", "NP", "VP", "PRN", "-LRB-", "X"]
TAGS = ["DT", "NN", "-RRB-", ",", "``", "PRP$", ":"]
WORDS = st.text(st.sampled_from("aZ9.,'-/[{\\é語😀\u0301"), min_size=1, max_size=4)
quickly = settings(deadline=None, max_examples=50)


@st.composite
def brackets(draw: st.DrawFn, depth: int = 3) -> str:
    """A constituent as text, of children that nobody but the text knows."""
    if depth == 0 or draw(st.booleans()):
        return f"({draw(st.sampled_from(TAGS))} {draw(WORDS)})"
    children = draw(st.lists(brackets(depth=depth - 1), min_size=1, max_size=3))
    return f"({draw(st.sampled_from(LABELS))} {' '.join(children)})"


def read(text: str) -> Tree:
    [tree] = parse(text)
    return tree


@pytest.mark.parametrize(
    "text",
    [
        "( (S (NP (DT the) (NN end))) )",
        "(TOP (S (NP (DT the) (NN end))))",
        "(ROOT\n  (S\n    (NP (DT the)\n      (NN end))))\n",
        "(S1 (S (NP (DT the) (NN end))))",
        "(S(NP(DT the)(NN end)))",
        "( (S-IMP (NP-SBJ-1 (DT the) (NN end)) (VP=2 (-NONE- *T*-1)) (NP-3 (NP (-NONE- *)) (PP-LOC (-NONE- *ICH*)))) )",
    ],
)
def test_whatever_is_around_a_tree_it_is_the_same(text: str) -> None:
    assert read(text) == Tree(["the", "end"], ["DT", "NN"], [Constituent("S", 0, 2), Constituent("NP", 0, 2)])


def test_the_outer_constituent_comes_first_where_both_hold_the_same_words() -> None:
    tree = read("(S (VP (VB go)) (. .))")
    assert tree.constituents == [("S", 0, 2), ("VP", 0, 1)]
    assert tree.bracketed() == "(TOP (S (VP (VB go)) (. .)))"
    assert tree.linear() == "(S (VP (VB) go )VP (.) . )S"
    assert tree.linear("tags") == "(S (VP (VB) )VP (.) )S"
    assert tree.linear("XX") == "(S (VP (XX) )VP (XX) )S"


@pytest.mark.parametrize(
    ("text", "problem", "place"),
    [
        ("(X y) (S (NP (DT the))", "does not close", 6),
        ("(S (X a)))", "never opened", 9),
        ("(S the (NN end))", "'the' is not in brackets with a tag", 3),
        ("(NP (NN end) of)", "'of' is not in brackets", 13),
        ("(NP (NN the end))", "'the' is not in brackets", 8),
        ("(S (NP))", "holds no word", 3),
        ("()", "holds no word", 0),
        ("(S (X a) ((Y b)))", "without a label", 9),
        ("word", "is not in brackets", 0),
        ("(", "does not close", 0),
    ],
)
def test_a_broken_tree_says_what_is_wrong_and_where(text: str, problem: str, place: int) -> None:
    with pytest.raises(BrokenTree, match=problem) as raised:
        list(parse(text))
    assert raised.value.index == place


@quickly
@given(brackets())
def test_writing_and_reading_gives_the_same_tree(text: str) -> None:
    tree = read(f"(TOP {text})")
    assert re.sub(r"\s+", " ", tree.bracketed()) == f"(TOP {text})"
    assert read(tree.bracketed()) == tree


@quickly
@given(brackets())
def test_the_linear_tree_gives_the_tree_back_over_its_words(text: str) -> None:
    tree = read(f"(TOP {text})")
    assert read_linear(tree.linear(), tree.words) == (tree, 0)
    assert read_linear(tree.linear("tags"), tree.words) == (tree, 0)
    bare, mended = read_linear(tree.linear("XX"), tree.words)
    tags = [PUNCTUATION_TAGS.get(word, "XX") for word in tree.words]  # scorers know punctuation by its tag
    assert (bare.constituents, bare.tags, mended) == (tree.constituents, tags, 0)


STEPS = ["(S", "(NP", "(VP", ")S", ")NP", ")VP", "(DT)", "(NN)", "(XX)"]
FEW_WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)


def check_tree(tree: Tree, words: list[str]) -> None:
    """Constituents hold words, lie within the sentence, and do not cross; and the text of it is the same tree."""
    assert tree.words == words
    assert len(tree.tags) == len(words)
    for one in tree.constituents:
        assert 0 <= one.start < one.end <= len(words)
        for other in tree.constituents:
            apart = one.end <= other.start or other.end <= one.start
            inside = one.start <= other.start and other.end <= one.end
            around = other.start <= one.start and one.end <= other.end
            assert apart or inside or around
    read_back = list(parse(tree.bracketed())) if words else []
    assert read_back == ([tree] if words else [])


@quickly
@given(st.lists(st.sampled_from([*STEPS, "a", "b", "c"])), FEW_WORDS)
def test_any_sequence_with_words_gives_a_tree_over_exactly_the_words(steps: list[str], words: list[str]) -> None:
    tree, mended = read_linear(" ".join(steps), words)
    check_tree(tree, words)
    if tree.linear("words").split() == steps:
        assert not mended


@pytest.mark.parametrize(
    ("line", "bracketed", "mends"),
    [
        ("(S (NP (DT) (NN) )NP (VP (VB)", "(TOP (S (NP (DT a) (NN b)) (VP (VB c))))", 2),
        ("(S (NP (DT) (NN) )S", "(TOP (S (NP (DT a) (NN b)) (XX c)))", 2),
        ("(S (NP (DT) )VP (NN) )NP (VB) )S )S", "(TOP (S (NP (DT a) (NN b)) (VB c)))", 2),
        ("(S (DT) (NN) (VB) (VB) (NP (NN) )NP )S", "(TOP (S (DT a) (NN b) (VB c)))", 3),
        ("(S (NP )NP (DT) (NN) (VB) )S", "(TOP (S (DT a) (NN b) (VB c)))", 1),
        ("(NP (DT) )NP (VP (NN) )VP", "(TOP (NP (DT a)) (VP (NN b)) (XX c))", 1),
        # Written words tell which of them are missing, or wrong.
        ("(S (NP (DT) a )NP (VB) c )S", "(TOP (S (NP (DT a) (XX b)) (VB c)))", 1),
        ("(S (NP (NN) b )NP (VB) c )S", "(TOP (S (NP (XX a) (NN b)) (VB c)))", 1),
        ("(S (DT) a (NP (JJ) x (NN) b )NP (VB) c )S", "(TOP (S (DT a) (NP (NN b)) (VB c)))", 1),
        ("(S (DT) a (NP (JJ) b (NN) c (NN) d )NP )S", "(TOP (S (DT a) (NP (JJ b) (NN c))))", 1),
        ("what is this", "(TOP (XX a) (XX b) (XX c))", 6),
        ("", "(TOP (XX a) (XX b) (XX c))", 3),
    ],
)
def test_how_trees_are_mended(line: str, bracketed: str, mends: int) -> None:
    tree, mended = read_linear(line, ["a", "b", "c"])
    assert (tree.bracketed(), mended) == (bracketed, mends)
