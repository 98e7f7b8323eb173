"""Chunks of sentences that a model trained on joined pairs translates together."""

from dataclasses import replace

import pytest

from nmt.config import TokenizerConfig
from nmt.files import ModelDescription
from nmt.search import Hypothesis
from nmt.text import Tokenizer, train_tokenizer
from nmt.translation import Translator
from nmt.translation.limits import Limits, limits_for
from tests.core.test_segments import Echo

LINE = "Ka lo. Mi nu! Pe ri?  So tu va. We ka."
SPLIT = Limits(split=True, longest=40, language="en", target="en")


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([LINE] * 9, TokenizerConfig("bpe", 300))


def searched(tokenizer: Tokenizer, limits: Limits, line: str = LINE) -> tuple[list[str], str]:
    """The texts that an engine is asked for, and the translation, which repeats the source."""
    engine = Echo()
    translator = Translator(engine, tokenizer, limits)
    [[translation]] = translator.translate([line])
    return [tokenizer.decode(ids) for ids in engine.asked], translation.text


@pytest.mark.parametrize(
    ("together", "expected"),
    [
        (1, ["Ka lo.", "Mi nu!", "Pe ri?", "So tu va.", "We ka."]),
        (2, ["Ka lo. Mi nu!", "Pe ri? So tu va.", "We ka."]),
        # Of similar sizes, not four and one.
        (4, ["Ka lo. Mi nu! Pe ri?", "So tu va. We ka."]),
        (9, ["Ka lo. Mi nu! Pe ri? So tu va. We ka."]),
    ],
)
def test_chunks_have_up_to_as_many_sentences(tokenizer, together, expected):
    asked, translation = searched(tokenizer, replace(SPLIT, together=together))
    assert asked == expected
    assert translation == LINE.replace("  ", " ")


def test_a_chunk_has_no_more_tokens_than_a_training_sentence(tokenizer):
    lengths = [len(ids) for ids in tokenizer.encode(LINE.replace("  ", " ").split(". "))]
    limits = replace(SPLIT, together=9, longest=max(lengths))
    asked, translation = searched(tokenizer, limits)
    assert 1 < len(asked) < 5
    assert all(len(ids) <= max(lengths) for ids in tokenizer.encode(asked))
    assert translation == LINE.replace("  ", " ")


def test_a_copied_stretch_is_in_no_chunk(tokenizer):
    limits = replace(SPLIT, together=9, characters=frozenset(LINE))
    asked, translation = searched(tokenizer, limits, "Ka lo. Mi \u6f22 nu! Pe ri? So.")
    assert asked == ["Ka lo. Mi", "nu! Pe ri? So."]
    assert translation == "Ka lo. Mi \u6f22 nu! Pe ri? So."


class Forgetful(Echo):
    """Loses the last sentence of each source with several."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.calls: list[list[str]] = []

    def search(self, sentences, prefixes, constraints=None):
        self.calls.append([self.tokenizer.decode(ids) for ids in sentences])
        results = []
        for text in self.calls[-1]:
            marks = [place for place, letter in enumerate(text) if letter in ".!?"]
            kept = text if len(marks) < 2 else text[: marks[-2] + 1]
            results.append([Hypothesis(self.tokenizer.encode([kept])[0], -1.0, -0.5)])
        return results


def test_a_chunk_that_lost_a_sentence_is_translated_sentence_by_sentence(tokenizer):
    engine = Forgetful(tokenizer)
    translator = Translator(engine, tokenizer, replace(SPLIT, together=2))
    lines = ["Ka lo. Mi nu!", "So tu va."]
    translations = [best.text for [best] in translator.translate(lines)]
    assert translations == lines
    assert engine.calls == [lines, ["Ka lo.", "Mi nu!"]]


def described(training: dict) -> ModelDescription:
    return ModelDescription(
        model={"positions": "sinusoidal"},
        vocabulary_size=9,
        source="en",
        target="de",
        tokenizer="",
        training=training,
    )


@pytest.mark.parametrize(
    ("data", "split", "together"),
    [
        ({"join": 4}, "paragraph", 4),
        ({"join": 4}, "auto", 1),
        ({"join": 4}, "never", 1),
        ({"join": 1, "sources": [{"join": 3}, {}]}, "paragraph", 3),
        ({}, "paragraph", 1),
        ({"join": "x", "sources": 7}, "paragraph", 1),
        ({"join": 10**9}, "paragraph", 100),
    ],
)
def test_the_model_records_how_many_sentences_it_reads_together(data, split, together):
    limits = limits_for([described({"config": {"data": data}})], split)
    assert limits.together == together
    assert limits.split == (split != "never")
