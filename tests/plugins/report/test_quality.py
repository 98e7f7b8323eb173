"""Scores by length and examples, against sacreBLEU itself."""

import pytest
import sacrebleu

from nmt.plugins.report.quality import Example, assess, by_length, differences, pick

SOURCES = ["a b c", "a b c d e f g", "a b", "a b c d e f", " ".join("x" * 60), ""]
REFERENCES = [
    "eins zwei drei vier",
    "fünf sechs sieben acht neun",
    "zehn",
    "elf zwölf dreizehn vierzehn",
    "a b c d e",
    "",
]
HYPOTHESES = ["eins zwei drei vier", "fünf sechs sieben acht", "neun", "elf zwölf dreizehn vierzehn", "a b c d f", ""]


def test_bleu_by_length_is_sacrebleus_of_the_lines_of_that_length():
    buckets = by_length("bleu", SOURCES, REFERENCES, HYPOTHESES)
    lines = {"1-5": [0, 2, 5], "6-10": [1, 3], "46+": [4]}
    assert [bucket.label for bucket in buckets] == [
        "1-5",
        "6-10",
        *(f"{n + 1}-{n + 5}" for n in range(10, 45, 5)),
        "46+",
    ]
    for bucket in buckets:
        chosen = lines.get(bucket.label, [])
        assert bucket.count == len(chosen)
        expected = (
            sacrebleu.corpus_bleu([HYPOTHESES[i] for i in chosen], [[REFERENCES[i] for i in chosen]])
            if chosen
            else None
        )
        assert bucket.value == (expected.score if expected else 0)


def test_lengths_beyond_the_longest_are_left_out():
    assert [bucket.label for bucket in by_length("bleu", SOURCES[:4], REFERENCES[:4], HYPOTHESES[:4])] == [
        "1-5",
        "6-10",
    ]


def test_scores_and_sentence_scores_are_sacrebleus():
    quality = assess(SOURCES, REFERENCES, HYPOTHESES, trees=False)
    bleu, chrf = quality.scores
    assert bleu.value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert chrf.value == sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert "tok:13a" in bleu.signature
    for example in quality.examples:
        assert example.value == sacrebleu.sentence_chrf(example.hypothesis, [example.reference]).score
    assert sum(quality.histogram) == len(SOURCES)


def test_trees_are_judged_by_their_brackets():
    """By hand: S and NP are right, VP and ADJP are not found, PP is too many; a word alone has nothing to find."""
    reference = "(TOP (S (NP (DT the) (NN end)) (VP (VBZ is) (ADJP (JJ near)))))"
    hypothesis = "(TOP (S (NP (DT the) (NN end)) (PP (VBZ is)) (JJ near)))"
    sources, references = ["the end is near", "hush"], [reference, "(TOP (UH hush))"]
    quality = assess(sources, references, [hypothesis, "(TOP (NN hush))"], trees=True)
    assert [item.value for item in quality.scores] == pytest.approx([400 / 7, 200 / 3, 50, 50])
    assert [e.value for e in quality.examples] == pytest.approx([400 / 7, 100])
    assert [(bucket.label, bucket.value) for bucket in quality.buckets] == [("1-5", pytest.approx(400 / 7))]


def examples(values) -> list[Example]:
    return [Example("s" * (1 + i), "r", "h", value) for i, value in enumerate(values)]


def test_the_best_the_median_and_the_worst_are_told_and_none_twice():
    groups = pick(examples([50, 10, 90, 30, 70, 20, 60, 80, 40]), 2)
    assert {name: [e.value for e in group] for name, group in groups.items()} == {
        "Best": [90, 80],
        "Median": [60, 50],
        "Worst": [10, 20],
    }


def test_of_equal_ones_the_longest_are_shown():
    groups = pick(examples([100, 100, 100, 0, 0, 0]), 1)
    assert [len(groups[name][0].source) for name in ("Best", "Worst")] == [3, 6]


def test_few_lines_give_few_examples():
    assert pick(examples([5]), 3) == {"Best": examples([5])}
    assert pick(examples([5, 6, 7]), 0) == {}


def test_parts_spell_both_texts_and_mark_what_differs():
    reference, hypothesis = "Der rote Hund läuft.", "Der blaue Hund läuft schnell!"
    missed, wrong = differences(reference, hypothesis)
    assert "".join(text for text, _ in missed) == reference
    assert "".join(text for text, _ in wrong) == hypothesis
    assert [text for text, differs in missed if differs] == ["rote", "."]
    assert [text for text, differs in wrong if differs] == ["blaue", "schnell!"]


def test_equal_texts_differ_nowhere_and_an_empty_one_everywhere():
    assert differences("Ja, gut.", "Ja, gut.") == ([("Ja, gut.", False)], [("Ja, gut.", False)])
    assert differences("Ja", "") == ([("Ja", True)], [])
