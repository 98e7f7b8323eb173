"""Labeled bracketing scores, as EVALB counts them with COLLINS.prm (Collins 1997).

A bracket is the label of a constituent with the words that it spans. The top bracket and tags do not count.
Punctuation is removed first, so that it moves no bracket; ADVP and PRT count as the same label.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate, compress

from nmt import __version__
from nmt.errors import NMTError
from nmt.evaluation import Score, Scoring
from nmt.plugins.parse.trees import TOPS, BrokenTree, Tree, parse

PUNCTUATION = (",", ":", "``", "''", ".")  # tags of the words that are removed
SAME_LABEL = {"PRT": "ADVP"}
SIDES = ("hypothesis", "reference")


def brackets(tree: Tree, is_word: list[bool]) -> Counter[tuple[str, int, int]]:
    """The brackets of a tree, counted in words that are not punctuation."""
    before = [0, *accumulate(is_word)]
    spans = ((SAME_LABEL.get(label, label), before[start], before[end]) for label, start, end in tree.constituents)
    return Counter((label, start, end) for label, start, end in spans if label not in TOPS and start < end)


@dataclass
class BracketCounts:
    """Sums over the sentences of a corpus."""

    matched: int = 0
    hypothesis: int = 0
    reference: int = 0
    complete: int = 0  # sentences with exactly the brackets of the reference
    sentences: int = 0  # that were compared
    errors: int = 0  # sentences whose words without punctuation differ from the reference; they are not compared

    def scores(self) -> list[Score]:
        rules = "nrefs:1|rules:COLLINS|punct:by-reference-tags|length:all"
        signature = f"{rules}|sentences:{self.sentences}|errors:{self.errors}|version:{__version__}"
        figures = (
            ("brackets", "Bracketing F1", 2 * self.matched, self.hypothesis + self.reference),
            ("brackets_precision", "Bracketing precision", self.matched, self.hypothesis),
            ("brackets_recall", "Bracketing recall", self.matched, self.reference),
            ("brackets_complete", "Complete match", self.complete, self.sentences),
        )
        return [Score(metric, name, 100 * part / max(1, whole), signature) for metric, name, part, whole in figures]


def tree_of(line: str, where: str) -> Tree:
    """The tree of a line, without words for a blank line; NMTError unless there is one tree at most."""
    try:
        trees = list(parse(line))
    except BrokenTree as error:
        raise NMTError(f"{where}: no tree ({error})") from error
    if len(trees) > 1:
        raise NMTError(f"{where}: {len(trees)} trees, but one is wanted in each line")
    return trees[0] if trees else Tree()


def compare_trees(hypotheses: list[str], references: list[str]) -> BracketCounts:
    """Count the brackets of trees, one per line (F1 of Table 4); NMTError for a line that is not a tree.

    The tags of the reference say what is punctuation or, as in EVALB, each tree's own if their words differ.
    """
    sums = BracketCounts()
    for number, sides in enumerate(zip(hypotheses, references, strict=True), 1):
        trees = [tree_of(line, f"{side}, line {number}") for line, side in zip(sides, SIDES, strict=True)]
        tagged = trees[0] if trees[0].words != trees[1].words else trees[1]
        are_words = [[tag not in PUNCTUATION for tag in tree.tags] for tree in (tagged, trees[1])]
        written, words = ([*compress(tree.words, row)] for tree, row in zip(trees, are_words, strict=True))
        if words and written != words:
            sums.errors += 1
        elif words:  # like EVALB, not sentences of punctuation alone
            ours, theirs = map(brackets, trees, are_words)
            sums.matched += (ours & theirs).total()
            sums.hypothesis += ours.total()
            sums.reference += theirs.total()
            sums.complete += ours == theirs
            sums.sentences += 1
    return sums


def bracket_scores(hypotheses: list[str], references: list[str], scoring: Scoring) -> list[Score]:
    """Labeled bracketing of trees, one per line: F1, precision, recall, complete match."""
    return compare_trees(hypotheses, references).scores()
