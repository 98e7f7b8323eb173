"""How well a model translates or parses a held-out set: scores, by source length, the best and the worst."""

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from nmt.evaluation.scores import Score, score
from nmt.parsing.brackets import compare_trees

BUCKET = 5
"""Source words that a bucket of lengths spans."""
BUCKETS = 10
"""Buckets at most; the last takes all longer sentences."""


@dataclass(frozen=True)
class Measure:
    """What a set is judged by, and each of its sentences."""

    corpus: list[str]
    """Metrics of the set; the first also tells one length from another."""
    sentence: Callable[[str, str], float]
    """Of a hypothesis and its reference, 0 to 100."""
    sentence_name: str


def sentence_chrf(hypothesis: str, reference: str) -> float:
    return score([hypothesis], [reference], ["chrf"])[0].value


def sentence_f1(hypothesis: str, reference: str) -> float:
    """Of a tree; 100 where neither has a bracket."""
    counts = compare_trees([hypothesis], [reference])
    return 100.0 if counts.complete else counts.f1


TEXT = Measure(["bleu", "chrf"], sentence_chrf, "chrF2")
TREES = Measure(["brackets"], sentence_f1, "F1")


@dataclass
class Example:
    """A source sentence, its reference and its translation."""

    source: str
    reference: str
    hypothesis: str
    value: float
    """The sentence's own score."""


@dataclass
class Bucket:
    """The sentences of similar length."""

    label: str
    """Source words, from-to."""
    count: int
    value: float


@dataclass
class Quality:
    """What came of translating a held-out set."""

    measure: Measure
    scores: list[Score]
    buckets: list[Bucket]
    histogram: list[int]
    """Sentences whose own score is in 0-10, 10-20, ... 90-100."""
    examples: dict[str, list[Example]]
    """Best, median and worst."""


def in_blocks(
    translate: Callable[[list[str]], list[str]], lines: list[str], advance: Callable[[int], None], size: int = 32
) -> list[str]:
    """All lines translated, block by block; `advance` is told of each block's lines. Similar lengths go together."""
    places = sorted(range(len(lines)), key=lambda place: len(lines[place]))
    translations = [""] * len(lines)
    for start in range(0, len(lines), size):
        block = places[start : start + size]
        for place, text in zip(block, translate([lines[place] for place in block]), strict=True):
            translations[place] = text
        advance(len(block))
    return translations


def by_length(metric: str, sources: list[str], references: list[str], hypotheses: list[str]) -> list[Bucket]:
    """The score of sentences with 1-5 source words, 6-10, ...; lengths that do not occur beyond either end left out."""
    members: list[list[int]] = [[] for _ in range(BUCKETS)]
    for place, source in enumerate(sources):
        members[min(max(len(source.split()) - 1, 0) // BUCKET, BUCKETS - 1)].append(place)
    filled = [bucket for bucket in range(BUCKETS) if members[bucket]]
    buckets = []
    for bucket in range(filled[0], filled[-1] + 1):
        chosen = members[bucket]
        first, end = bucket * BUCKET + 1, (bucket + 1) * BUCKET
        label = f"{first}+" if bucket == BUCKETS - 1 else f"{first}-{end}"
        pairs = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
        value = score(*pairs, [metric])[0].value if chosen else 0.0
        buckets.append(Bucket(label, len(chosen), value))
    return buckets


def pick(examples: list[Example], count: int) -> dict[str, list[Example]]:
    """`count` examples each that are best, in the middle, and worst; of equal ones the longest, and none twice.

    A short sentence that is wholly right or wrong tells little.
    """
    best_first = sorted(examples, key=lambda e: (-e.value, -len(e.source)))
    best, rest = best_first[:count], best_first[count:]
    worst = sorted(rest, key=lambda e: (e.value, -len(e.source)))[:count]
    between = [example for example in rest if not any(example is other for other in worst)]
    middle = max((len(between) - count) // 2, 0)
    groups = {"Best": best, "Median": between[middle : middle + count], "Worst": worst}
    return {name: group for name, group in groups.items() if group}


def assess(
    sources: list[str], references: list[str], hypotheses: list[str], examples: int, measure: Measure
) -> Quality:
    """Scores of translations, or of trees, and `examples` of each kind."""
    triples = zip(sources, references, hypotheses, strict=True)
    rated = [Example(s, r, h, measure.sentence(h, r)) for s, r, h in triples]
    return Quality(
        measure=measure,
        scores=score(hypotheses, references, measure.corpus),
        buckets=by_length(measure.corpus[0], sources, references, hypotheses),
        histogram=[sum(min(int(e.value // 10), 9) == tenth for e in rated) for tenth in range(10)],
        examples=pick(rated, examples),
    )


def differences(reference: str, hypothesis: str) -> tuple[list[tuple[str, bool]], list[tuple[str, bool]]]:
    """Both texts in pieces, each with whether the other text has something else at that place."""
    a_pieces, b_pieces = (re.findall(r"\w+|[^\w\s]|\s+", text) for text in (reference, hypothesis))
    sides: tuple[list[tuple[str, bool]], list[tuple[str, bool]]] = ([], [])
    matcher: difflib.SequenceMatcher[str] = difflib.SequenceMatcher(str.isspace, a_pieces, b_pieces, autojunk=False)
    for what, a, b, c, d in matcher.get_opcodes():
        for side, piece in ((0, "".join(a_pieces[a:b])), (1, "".join(b_pieces[c:d]))):
            if piece:
                sides[side].append((piece, what != "equal"))
    return sides
