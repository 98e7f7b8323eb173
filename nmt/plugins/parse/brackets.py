"""Labeled bracketing scores, as EVALB counts them with COLLINS.prm (Collins 1997).

A bracket is the label of a constituent with the words that it spans. The top bracket and tags do not count.
Punctuation is removed first, so that it moves no bracket; ADVP and PRT count as the same label.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate, compress

from nmt import __version__
from nmt.errors import NMTError
from nmt.evaluation import Score, Scoring
from nmt.plugins.parse.trees import TOPS, BrokenTree, Tree, parse

PUNCTUATION = frozenset((",", ":", "``", "''", "."))
"""Tags of the words that are removed."""
SAME_LABEL = {"PRT": "ADVP"}

Bracket = tuple[str, int, int]


def spans(tree: Tree, tags: list[str]) -> list[Bracket]:
    """The bracket of each constituent, over the words whose `tags` are not those of punctuation."""
    before = [0, *accumulate(tag not in PUNCTUATION for tag in tags)]
    return [(SAME_LABEL.get(c.label, c.label), before[c.start], before[c.end]) for c in tree.constituents]


def counts(bracket: Bracket) -> bool:
    """False for a top bracket, and for a bracket around punctuation only."""
    label, start, end = bracket
    return label not in TOPS and start < end


def lacking(tree: Tree, other: Tree, tags: list[str]) -> list[bool]:
    """For each constituent of a tree, True if it is a bracket that the other tree lacks."""
    left, missing = Counter(filter(counts, spans(other, tags))), list[bool]()
    for bracket in spans(tree, tags):
        missing.append(counts(bracket) and left[bracket] <= 0)
        left[bracket] -= 1
    return missing


@dataclass
class BracketCounts:
    """Sums over the sentences of a corpus."""

    matched: int = 0
    hypothesis: int = 0
    reference: int = 0
    complete: int = 0
    """Sentences with exactly the brackets of the reference."""
    sentences: int = 0
    """Sentences that were compared."""
    errors: list[int] = field(default_factory=list)
    """Lines, counted from 1, whose words without punctuation differ from the reference; they are not compared."""

    def add(self, hypothesis: Tree, reference: Tree, number: int) -> None:
        """Compare the trees of line `number`; like EVALB, skip sentences of punctuation only.

        The tags of the reference say what is punctuation or, as in EVALB, each tree's own if their words differ.
        """
        tags = reference.tags if hypothesis.words == reference.words else hypothesis.tags
        sides = (hypothesis, tags), (reference, reference.tags)
        written, words = (
            [*compress(tree.words, (tag not in PUNCTUATION for tag in of_tree))] for tree, of_tree in sides
        )
        if not words:
            return
        if written != words:
            self.errors.append(number)
            return
        ours, theirs = (Counter(filter(counts, spans(*side))) for side in sides)
        self.matched += (ours & theirs).total()
        self.hypothesis += ours.total()
        self.reference += theirs.total()
        self.complete += ours == theirs
        self.sentences += 1

    @property
    def f1(self) -> float:
        return 200 * self.matched / max(1, self.hypothesis + self.reference)

    def scores(self) -> list[Score]:
        signature = (
            f"nrefs:1|rules:COLLINS|punct:by-reference-tags|length:all|sentences:{self.sentences}"
            f"|errors:{len(self.errors)}|version:{__version__}"
        )
        figures = (
            ("brackets", "Bracketing F1", self.f1),
            ("brackets_precision", "Bracketing precision", 100 * self.matched / max(1, self.hypothesis)),
            ("brackets_recall", "Bracketing recall", 100 * self.matched / max(1, self.reference)),
            ("brackets_complete", "Complete match", 100 * self.complete / max(1, self.sentences)),
        )
        return [Score(metric, name, value, signature) for metric, name, value in figures]


def tree_of(line: str, where: str) -> Tree:
    """The tree of a line, without words for a blank line; NMTError unless there is one tree at most."""
    try:
        trees = list(parse(line))
    except BrokenTree as error:
        raise NMTError(f"{where}: no tree ({error})") from error
    if len(trees) > 1:
        raise NMTError(f"{where}: {len(trees)} trees, but one is wanted in each line")
    return trees[0] if trees else Tree([], [], [])


def compare_trees(hypotheses: list[str], references: list[str]) -> BracketCounts:
    """Count the brackets of trees, one per line (F1 of Table 4); NMTError for a line that is not a tree."""
    sums = BracketCounts()
    for number, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True), 1):
        trees = tree_of(hypothesis, f"hypothesis, line {number}"), tree_of(reference, f"reference, line {number}")
        sums.add(*trees, number)
    return sums


def bracket_scores(hypotheses: list[str], references: list[str], scoring: Scoring) -> list[Score]:
    """Labeled bracketing of trees, one per line: F1, precision, recall, complete match."""
    return compare_trees(hypotheses, references).scores()
