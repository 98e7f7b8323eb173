"""Scores of a held-out set, as a whole and by source length, and its best and worst sentences."""

import difflib
import re
from dataclasses import dataclass

from nmt.evaluation import Score, score
from nmt.plugins.parse.brackets import compare_trees

BUCKET_WORDS = 5
"""Source words per bucket."""
MAX_BUCKETS = 10
"""The last bucket holds all longer sentences."""


def sentence_score(hypothesis: str, reference: str, trees: bool) -> float:
    """chrF2 of a translation; F1 of a tree, which is 100 if neither tree has a bracket."""
    if not trees:
        return score([hypothesis], [reference], ["chrf"])[0].value
    counts = compare_trees([hypothesis], [reference])
    return 100.0 if counts.complete else counts.f1


@dataclass
class Example:
    """A source sentence, its reference and its translation."""

    source: str
    reference: str
    hypothesis: str
    value: float
    """Its sentence-level score."""


@dataclass
class Bucket:
    """Sentences of similar length."""

    label: str
    """Source words, from-to."""
    count: int
    value: float


@dataclass
class Quality:
    """Scores and examples of a held-out set."""

    trees: bool
    """True for trees, False for translations."""
    scores: list[Score]
    buckets: list[Bucket]
    histogram: list[int]
    """The numbers of sentences with a score in 0-10, 10-20, ... 90-100."""
    examples: list[Example]


def length_bucket(source: str) -> int:
    """The bucket of a source sentence, counted from 0."""
    return min(max(len(source.split()) - 1, 0) // BUCKET_WORDS, MAX_BUCKETS - 1)


def length_label(bucket: int) -> str:
    """The numbers of words in a bucket, from-to."""
    first, end = bucket * BUCKET_WORDS + 1, (bucket + 1) * BUCKET_WORDS
    return f"{first}+" if bucket == MAX_BUCKETS - 1 else f"{first}-{end}"


def by_length(
    metric: str, sources: list[str], references: list[str], hypotheses: list[str], tokenize: str = "13a"
) -> list[Bucket]:
    """The score of the sentences with 1-5 source words, 6-10, ..., from the shortest to the longest that occur."""
    numbers = [length_bucket(source) for source in sources]
    buckets = []
    for bucket in range(min(numbers), max(numbers) + 1):
        chosen = [index for index, number in enumerate(numbers) if number == bucket]
        pairs = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
        value = score(*pairs, [metric], tokenize=tokenize)[0].value if chosen else 0.0
        buckets.append(Bucket(length_label(bucket), len(chosen), value))
    return buckets


def pick(examples: list[Example], count: int) -> dict[str, list[Example]]:
    """The `count` best examples, as many from the middle, and as many worst; none twice.

    Among equals the longest come first: a short sentence that is all right or all wrong says little.
    """
    best_first = sorted(examples, key=lambda e: (-e.value, -len(e.source)))
    best, rest = best_first[:count], best_first[count:]
    worst = sorted(rest, key=lambda e: (e.value, -len(e.source)))[:count]
    between = [example for example in rest if not any(example is other for other in worst)]
    middle = max((len(between) - count) // 2, 0)
    groups = {"Best": best, "Median": between[middle : middle + count], "Worst": worst}
    return {name: group for name, group in groups.items() if group}


def assess(
    sources: list[str], references: list[str], hypotheses: list[str], trees: bool, tokenize: str = "13a"
) -> Quality:
    """Scores of translations, or of trees; `tokenize` is for BLEU."""
    triples = zip(sources, references, hypotheses, strict=True)
    rated = [Example(s, r, h, sentence_score(h, r, trees)) for s, r, h in triples]
    metrics = ["brackets"] if trees else ["bleu", "chrf"]
    return Quality(
        trees=trees,
        scores=score(hypotheses, references, metrics, tokenize=tokenize),
        buckets=by_length(metrics[0], sources, references, hypotheses, tokenize),
        histogram=[sum(min(int(e.value // 10), 9) == tenth for e in rated) for tenth in range(10)],
        examples=rated,
    )


def differences(reference: str, hypothesis: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Split both texts into parts, each with True if the other text differs there; outer blanks count as equal.

    A part consists of words, punctuation and the blanks between them.
    """
    wanted, found = (re.findall(r"\w+|[^\w\s]|\s+", text) for text in (reference, hypothesis))
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    matcher: difflib.SequenceMatcher[str] = difflib.SequenceMatcher(str.isspace, wanted, found, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        for side, text in zip(sides, ("".join(wanted[a:b]), "".join(found[c:d])), strict=True):
            before, core, after = re.fullmatch(r"(\s*)(.*?)(\s*)", text, flags=re.S).groups()  # type: ignore[union-attr]
            parts = [(before, False), (core, True), (after, False)] if kind != "equal" else [(text, False)]
            side += [part for part in parts if part[0]]
    return sides
