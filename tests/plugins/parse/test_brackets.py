"""Bracketing scores, against counts by hand."""

import random

import pytest

from nmt.errors import NMTError
from nmt.plugins.parse.brackets import compare_trees

GOLD = "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (DT the) (NN mat)))) (. .)))"


@pytest.mark.parametrize(
    ("hypothesis", "reference", "counts"),
    [
        # matched, in the hypothesis, in the reference, complete, compared
        (GOLD, GOLD, (5, 5, 5, 1, 1)),
        # The inner NP is missing, and PP is called NP.
        (
            "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits) (NP (IN on) (DT the) (NN mat))) (. .)))",
            GOLD,
            (3, 4, 5, 0, 1),
        ),
        # Tags do not count, nor what the top is called.
        (GOLD.replace("TOP", "ROOT").replace("DT", "XX"), GOLD, (5, 5, 5, 1, 1)),
        # The full stop moves no bracket: S and VP end with the mat wherever it hangs.
        (
            "(TOP (S (NP (DT the) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (DT the) (NN mat))) (. .))))",
            GOLD,
            (5, 5, 5, 1, 1),
        ),
        # Not even where the hypothesis takes it for a word; a bracket around it alone is none.
        (
            "(S1 (S (NP (DT the) (NN cat)) (VP (VBZ sits) (PP (IN on) (NP (DT the) (NN mat)))) (NP (NN .))))",
            GOLD,
            (5, 5, 5, 1, 1),
        ),
        ("(S (NP (NN it)) (ADVP (RP up)))", "(S (NP (NN it)) (PRT (RP up)))", (3, 3, 3, 1, 1)),
        # Every bracket of the reference is matched once: of two NP over the same words, one.
        ("(NP (NP (NN it)))", "(NP (NN it))", (1, 2, 1, 0, 1)),
        ("(NP (NN it))", "(NP (NP (NN it)))", (1, 1, 2, 0, 1)),
        # Brackets of parentheses are words, commas, dashes and quotes are not.
        ("(S (-LRB- -LRB-) (NP (NN a)))", "(S (-LRB- -LRB-) (NP (-RRB- a)))", (2, 2, 2, 1, 1)),
        ("(S (`` ``) (NP (NN a) (: -)) ('' ''))", "(S (`` ``) (NP (NN a)) (: -) ('' ''))", (2, 2, 2, 1, 1)),
        # Traces and function tags are taken out of both.
        ("(S (NP (NN a)))", "( (S (NP-SBJ-1 (NN a)) (VP (-NONE- *T*-1))) )", (2, 2, 2, 1, 1)),
        # Other words, or a line without a tree: an error, that counts nowhere.
        ("(S (NN b))", "(S (NN a))", (0, 0, 0, 0, 0)),
        ("", "(S (NN a))", (0, 0, 0, 0, 0)),
        ("", "", (0, 0, 0, 0, 0)),
        # Punctuation that only one of them has, or that they spell in different ways, is taken out before words are
        # compared; a sentence of nothing else is left out.
        ("(S (NP (NN a)) (VP (VB b)))", "(S (NP (NN a)) (VP (VB b)) (. .))", (3, 3, 3, 1, 1)),
        ("(S (NP (NN a)) (. !))", "(S (NP (NN a)) (. .))", (2, 2, 2, 1, 1)),
        ("(S (NN a) (NN .))", "(S (NN a) (. !))", (0, 0, 0, 0, 0)),
        ("(X (: --))", "(X (: --))", (0, 0, 0, 0, 0)),
        # No bracket at all in either: complete, though there is nothing to match.
        ("(TOP (NN a))", "(TOP (NN a))", (0, 0, 0, 1, 1)),
    ],
)
def test_counts_by_hand(hypothesis: str, reference: str, counts: tuple[int, ...]) -> None:
    found = compare_trees([hypothesis], [reference])
    assert (found.matched, found.hypothesis, found.reference, found.complete, found.sentences) == counts


def random_tree(generator: random.Random, words: list[str]) -> str:
    if len(words) == 1:
        return f"({generator.choice(['NN', ',', 'VB'])} {words[0]})"
    cut = generator.randint(1, len(words) - 1)
    parts = random_tree(generator, words[:cut]), random_tree(generator, words[cut:])
    return f"({generator.choice(['NP', 'VP', 'ADVP', 'PRT'])} {' '.join(parts)})"


def test_a_tree_is_its_own_and_precision_is_recall_seen_from_the_other_side() -> None:
    generator = random.Random(1)
    sentences = [[f"w{i}" for i in range(generator.randint(1, 9))] for _ in range(50)]
    one, other = ([random_tree(generator, words).replace("(,", "(NN") for words in sentences] for _ in range(2))
    assert [item.value for item in compare_trees(one, one).scores()] == [100, 100, 100, 100]
    there, back = ([item.value for item in compare_trees(*sides).scores()] for sides in ((one, other), (other, one)))
    assert there[0] > 0
    assert there[:3] == [back[0], back[2], back[1]]


def test_a_line_that_is_no_tree_is_named() -> None:
    with pytest.raises(NMTError, match=r"hypothesis, line 2: no tree \(a tree does not close\)"):
        compare_trees([GOLD, "(S (NN a)"], [GOLD, GOLD])
    with pytest.raises(NMTError, match="reference, line 1: 2 trees"):
        compare_trees([GOLD], [GOLD + GOLD])
