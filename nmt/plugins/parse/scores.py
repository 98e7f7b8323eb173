"""Bracket scores of trees (table 4).

They count labeled brackets as EVALB does with COLLINS.prm (Collins 1997): a bracket is a
constituent's label with the words that it spans. The top bracket and tags do not count.
Punctuation is removed first, so that it does not shift brackets; ADVP and PRT count as the same
label.
"""

from collections import Counter
from itertools import compress

from nmt import __version__
from nmt.evaluation import Score, Scoring
from nmt.plugins.parse.trees import TOPS, Tree, tree_of

SAME_LABEL = {"PRT": "ADVP"}
NOT_SCORED = (",", ":", "``", "''", ".")
"""Tags of words that are removed before brackets are counted."""
RULES = "nrefs:1|rules:COLLINS|punct:by-reference-tags|length:all"

Brackets = Counter[tuple[str, int, int]]
"""Label, index of the first word and index after the last one."""


def brackets(tree: Tree, is_word: list[bool]) -> Brackets:
    """A tree's brackets; positions count only words that are not punctuation."""
    words_before = [0]
    for is_counted in is_word:
        words_before.append(words_before[-1] + is_counted)
    counts = Brackets()
    for phrase in tree.constituents:
        label = SAME_LABEL.get(phrase.label, phrase.label)
        start = words_before[phrase.start]
        end = words_before[phrase.end]
        # A constituent of only punctuation has no words left.
        if label not in TOPS and start < end:
            counts[label, start, end] += 1
    return counts


def scored_words(tree: Tree) -> list[bool]:
    """Whether each word is scored, by the tree's tags."""
    return [tag not in NOT_SCORED for tag in tree.tags]


def compare_trees(hypotheses: list[str], references: list[str]) -> Counter[str]:
    """Count all brackets and the matching brackets in trees, one per line, for F1 (table 4).

    Also counts the sentences that were compared, those with exactly the reference's brackets
    (complete), and errors: sentences that were not compared because their words differ, ignoring
    punctuation. The reference's tags decide what is punctuation; if the words differ, each tree's
    own tags do, as in EVALB.
    """
    sums = Counter[str]()
    for number, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True), 1):
        ours = tree_of(hypothesis, f"hypothesis, line {number}")
        theirs = tree_of(reference, f"reference, line {number}")
        are_words = scored_words(theirs)
        # Both trees by the same tags: a punctuation mark with a wrong tag must not shift brackets.
        are_our_words = are_words if ours.words == theirs.words else scored_words(ours)
        words = list(compress(theirs.words, are_words))
        our_words = list(compress(ours.words, are_our_words))
        if not words:
            continue  # like EVALB, skip sentences of only punctuation
        # As in EVALB, such a sentence counts neither for nor against the score, but is reported.
        if our_words != words:
            sums["errors"] += 1
            continue
        our_brackets = brackets(ours, are_our_words)
        their_brackets = brackets(theirs, are_words)
        # The intersection of multisets: a label may occur twice over the same words.
        sums["matched"] += (our_brackets & their_brackets).total()
        sums["hypothesis"] += our_brackets.total()
        sums["reference"] += their_brackets.total()
        sums["complete"] += our_brackets == their_brackets
        sums["sentences"] += 1
    return sums


def bracket_scores(hypotheses: list[str], references: list[str], scoring: Scoring) -> list[Score]:
    """Bracketing F1 (table 4), precision, recall and complete matches of trees, one per line."""
    sums = compare_trees(hypotheses, references)
    counts = f"sentences:{sums['sentences']}|errors:{sums['errors']}"
    signature = f"{RULES}|{counts}|version:{__version__}"

    def score(metric: str, name: str, part: int, whole: int) -> Score:
        # Without any bracket, the score is 0.
        return Score(metric, name, 100 * part / max(1, whole), signature)

    matched = sums["matched"]
    both = sums["hypothesis"] + sums["reference"]
    return [
        score("brackets", "Bracketing F1", 2 * matched, both),
        score("brackets_precision", "Bracketing precision", matched, sums["hypothesis"]),
        score("brackets_recall", "Bracketing recall", matched, sums["reference"]),
        score("brackets_complete", "Complete match", sums["complete"], sums["sentences"]),
    ]
