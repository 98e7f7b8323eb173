"""Trees in both notations, repaired model output, and bracket scores."""

import re

import pytest
from hypothesis import given, settings, strategies as st

from nmt.errors import NMTError
from nmt.plugins.parse.linear import read_linear
from nmt.plugins.parse.scores import bracket_scores, compare_trees
from nmt.plugins.parse.trees import Constituent, Tree, parse
from nmt.text import MalformedLine

LABELS = ["S", "NP", "VP", "PRN", "-LRB-", "X"]
TAGS = ["DT", "NN", "-RRB-", ",", "``", "PRP$", ":"]
WORDS = st.text(st.sampled_from("aZ9.,'-/[{\\é語😀\u0301"), min_size=1, max_size=4)
STEPS = ["(S", "(NP", "(VP", ")S", ")NP", ")VP", "(DT)", "(NN)", "(XX)"]
FEW_WORDS = st.lists(st.sampled_from(["a", "b", "c"]), max_size=8)
quickly = settings(deadline=None, max_examples=50)


@st.composite
def brackets(draw: st.DrawFn, depth: int = 3) -> str:
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
        "(ROOT\n  (S\n    (NP (DT the)\n      (NN end))))\n",
        "(S1(S(NP(DT the)(NN end))))",
        (
            "( (S-IMP (NP-SBJ-1 (DT the) (NN end)) (VP=2 (-NONE- *T*-1))"
            " (NP-3 (NP (-NONE- *)) (PP-LOC (-NONE- *ICH*)))) )"
        ),
    ],
)
def test_parse_ignores_top_bracket_layout_and_traces(text: str) -> None:
    assert read(text) == Tree(
        words=["the", "end"],
        tags=["DT", "NN"],
        constituents=[Constituent("S", 0, 2), Constituent("NP", 0, 2)],
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("(X y) (S (NP (DT the))", "is not closed"),
        ("(S (X a)))", "no opening bracket"),
        ("(S the (NN end))", "'the' is not in brackets with a tag"),
        ("(S (X a) ((Y b)))", "without a label"),
    ],
)
def test_parse_reports_broken_tree(text: str, problem: str) -> None:
    with pytest.raises(MalformedLine, match=problem):
        list(parse(text))


@quickly
@given(brackets())
def test_both_notations_round_trip(text: str) -> None:
    tree = read(f"(TOP {text})")
    assert re.sub(r"\s+", " ", tree.bracketed()) == f"(TOP {text})"
    assert read(tree.bracketed()) == tree
    assert read_linear(tree.linear(), tree.words) == (tree, 0)


@quickly
@given(st.lists(st.sampled_from([*STEPS, "a", "b", "c"])), FEW_WORDS)
def test_read_linear_makes_a_tree_of_any_sequence(steps: list[str], words: list[str]) -> None:
    """Constituents have words, lie within the sentence, and do not cross."""
    tree, repairs = read_linear(" ".join(steps), words)
    assert tree.words == words
    assert len(tree.tags) == len(words)
    for one in tree.constituents:
        assert 0 <= one.start < one.end <= len(words)
        for other in tree.constituents:
            apart = one.end <= other.start or other.end <= one.start
            inside = one.start <= other.start and other.end <= one.end
            around = other.start <= one.start and one.end <= other.end
            assert apart or inside or around
    if words:
        assert list(parse(tree.bracketed())) == [tree]
    if tree.linear().split() == steps:
        assert not repairs


@pytest.mark.parametrize(
    ("line", "bracketed", "repairs"),
    [
        ("(S (NP (DT) a (NN) b )NP (VP (VB) c", "(TOP (S (NP (DT a) (NN b)) (VP (VB c))))", 2),
        ("(S (NP (DT) a )VP (NN) b )NP (VB) c )S )S", "(TOP (S (NP (DT a) (NN b)) (VB c)))", 2),
        ("(S (DT) a (NN) b (VB) c (VB) d (NP (NN) e )NP )S", "(TOP (S (DT a) (NN b) (VB c)))", 3),
        ("(S (NP )NP (DT) a (NN) b (VB) c )S", "(TOP (S (DT a) (NN b) (VB c)))", 1),
        ("(S (NP (DT) a )NP (VB) c )S", "(TOP (S (NP (DT a) (XX b)) (VB c)))", 1),
        ("(S (DT) a (NP (JJ) x (NN) b )NP (VB) c )S", "(TOP (S (DT a) (NP (NN b)) (VB c)))", 1),
        ("(S (DT) a (NP (JJ) b (NN) c (NN) d )NP )S", "(TOP (S (DT a) (NP (JJ b) (NN c))))", 1),
        ("(S (NP (DT) (NN) (VB) )NP )S", "(TOP (S (NP (DT a) (NN b) (VB c))))", 0),
        ("what is this", "(TOP (XX a) (XX b) (XX c))", 6),
        ("", "(TOP (XX a) (XX b) (XX c))", 3),
    ],
)
def test_read_linear_repairs_output(line: str, bracketed: str, repairs: int) -> None:
    tree, count = read_linear(line, ["a", "b", "c"])
    assert (tree.bracketed(), count) == (bracketed, repairs)


GOLD = "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (DT the) (NN mat)))) (. .)))"
FLAT = "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits) (NP (IN on) (DT the) (NN mat))) (. .)))"


@pytest.mark.parametrize(
    ("hypothesis", "reference", "counts"),
    [
        # matched, in the hypothesis, in the reference, complete, compared
        (GOLD, GOLD, (5, 5, 5, 1, 1)),
        # The inner NP is missing, and PP is called NP.
        (FLAT, GOLD, (3, 4, 5, 0, 1)),
        # Tags and the label of the top bracket do not count.
        (GOLD.replace("TOP", "ROOT").replace("DT", "XX"), GOLD, (5, 5, 5, 1, 1)),
        # A full stop in another place moves no bracket: S and VP end with "mat".
        (GOLD.replace(")))) (. .)", "))) (. .))"), GOLD, (5, 5, 5, 1, 1)),
        # The same if the hypothesis tags it as a word; a bracket around it alone does not count.
        (GOLD.replace("(. .)", "(NP (NN .))"), GOLD, (5, 5, 5, 1, 1)),
        ("(S (NP (NN it)) (ADVP (RP up)))", "(S (NP (NN it)) (PRT (RP up)))", (3, 3, 3, 1, 1)),
        # Each bracket of the reference matches once: one of two NPs over the same words.
        ("(NP (NP (NN it)))", "(NP (NN it))", (1, 2, 1, 0, 1)),
        # Parentheses are words; commas, dashes and quotes are not.
        ("(S (-LRB- -LRB-) (NP (NN a)))", "(S (-LRB- -LRB-) (NP (-RRB- a)))", (2, 2, 2, 1, 1)),
        # A line without a tree is an error, which counts nowhere else.
        ("", "(S (NN a))", (0, 0, 0, 0, 0)),
        # Punctuation is removed before words are compared.
        ("(S (NP (NN a)) (VP (VB b)))", "(S (NP (NN a)) (VP (VB b)) (. .))", (3, 3, 3, 1, 1)),
        ("(S (NP (NN a)) (. !))", "(S (NP (NN a)) (. .))", (2, 2, 2, 1, 1)),
        # A sentence of only punctuation is skipped.
        ("(X (: --))", "(X (: --))", (0, 0, 0, 0, 0)),
        # Two trees without brackets are a complete match.
        ("(TOP (NN a))", "(TOP (NN a))", (0, 0, 0, 1, 1)),
    ],
)
def test_bracket_counts_by_hand(hypothesis: str, reference: str, counts: tuple[int, ...]) -> None:
    sums = compare_trees([hypothesis], [reference])
    keys = ("matched", "hypothesis", "reference", "complete", "sentences")
    assert tuple(sums[key] for key in keys) == counts
    is_error = hypothesis == ""
    assert sums["errors"] == is_error


def test_bracket_scores_of_corpus() -> None:
    scores = bracket_scores([FLAT, GOLD], [GOLD, GOLD], None)
    assert [score.value for score in scores] == pytest.approx([1600 / 19, 800 / 9, 80, 50])
    assert "sentences:2|errors:0" in scores[0].signature


def test_compare_trees_names_line_without_tree() -> None:
    with pytest.raises(NMTError, match=r"hypothesis, line 2: not a tree \(a tree is not closed\)"):
        compare_trees([GOLD, "(S (NN a)"], [GOLD, GOLD])
    with pytest.raises(NMTError, match="reference, line 1: 2 trees"):
        compare_trees([GOLD], [GOLD + GOLD])
