"""What a line is cut into: sentences, parts of those longer than training's lines, and what can only be copied."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from nmt.config import DecodeConfig, TokenizerConfig
from nmt.files import ModelDescription
from nmt.search import Hypothesis, TokenScores
from nmt.text import Tokenizer, clean, train_tokenizer
from nmt.translation import Line, Segmenter, Translator
from nmt.translation.segments import Limits, copied_spans, limits

TEXT = "ka lo mi nu. Pe ri so, tu va? We KaLo 123 das \u6f22\u5b57"
KNOWN = frozenset(TEXT)
SENTENCES = ["Ka lo mi nu.", "Pe ri so tu.", "Va we ka lo."]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([TEXT] * 9, TokenizerConfig("bpe", 300))


class Echo:
    """An engine that answers with the prefix and the source; the n-th token of one side is seen in the n-th token."""

    config = DecodeConfig()

    def search(self, sentences, prefixes, constraints=None):
        self.asked = list(sentences)
        return [[Hypothesis([*p, *ids], -1.0, -0.5)] for p, ids in zip(prefixes, sentences, strict=True)]

    def token_scores(self, pairs):
        shapes = [(len(target), len(source)) for source, target in pairs]
        return [TokenScores([-1.0] * (t + 1), np.eye(max(s, t), dtype=np.float32)[:t, :s]) for t, s in shapes]


@pytest.mark.parametrize(
    ("line", "copied"),
    [
        ("<b>ka</b> lo", ["<b>", "</b>"]),
        ("<b>ka</b>, <i>lo</i>.", ["<b>", "</b>, <i>", "</i>."]),
        ("ka < lo > mi", ["<", ">"]),
        ("ka <a href='x'>mi lo</a>", ["<a href='x'>", "</a>"]),
        ("\u0141\u00f3d\u017a, ka \u201clo\u201d", ["\u0141\u00f3d\u017a", "\u201c", "\u201d"]),
        ("ka \U0001f600\U0001f600!", ["\U0001f600\U0001f600!"]),
        ("\u6f22\u6f23\u5b57", ["\u6f23"]),
        ("ka {lo} x", ["{", "} x"]),
    ],
)
def test_what_is_copied_by_hand(line, copied):
    assert [line[begin:end].strip() for begin, end in copied_spans(line, KNOWN)] == copied


def test_sentences_of_characters_that_the_model_does_not_know_are_copied_as_one(tokenizer):
    limits = Limits(split=True, language="en", characters=KNOWN, positions=4)  # the copy takes no position
    [[found]] = Translator(Echo(), tokenizer, limits, details=True).translate(["ka \u2603. \u2603! lo"])
    assert (found.text, found.copied) == ("ka \u2603. \u2603! lo", ["\u2603. \u2603!"])


@pytest.mark.parametrize(
    ("known", "text"), [("'", "ka'lo \u2013 mi"), ("'\u2019-", "ka\u2019lo - mi"), ("", "ka\u2019lo \u2013 mi")]
)
def test_quotes_and_dashes_that_the_model_does_not_know_become_plain_ones_that_it_knows(tokenizer, known, text):
    ours = Translator(Echo(), tokenizer, Limits(characters=KNOWN | set(known)))
    assert ours.translate(["ka\u2019lo \u2013 mi"])[0][0].text == text


def test_a_long_word_takes_no_quadratic_time():
    assert copied_spans("x" * 200_000, KNOWN) == [(0, 200_000)]
    assert copied_spans("k" * 200_000 + "x", KNOWN) == [(0, 200_001)]
    assert len(copied_spans("<ka " * 50_000, KNOWN)) == 50_000


lines = st.lists(
    st.one_of(
        st.text(max_size=9),
        st.sampled_from([*TEXT.split(), "<b>", "</b>", "<", ">", " ", "\u00ef", "\u201c", "\U0001f600", "-"]),
    ),
    max_size=9,
).map("".join)


@settings(max_examples=150, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(line=lines, known=st.sampled_from([KNOWN, frozenset("ka "), frozenset(" ")]))
def test_what_is_copied_and_what_an_echo_gives_are_the_line(tokenizer, line, known):
    """Blanks and all; no stretch that is searched holds a character that is not known."""
    ours = Translator(Echo(), tokenizer, Limits(characters=known | {" "}), details=True)
    [[found]] = ours.translate([line])
    assert found.text == clean(line)
    assert bool(found.copied) == (not (known | {" "}).issuperset(clean(line)))
    assert all((known | {" "}).issuperset(tokenizer.decode(ids)) for ids in ours.engine.asked)
    assert len(found.details.token_log_probabilities) == len(found.details.tokens) + bool(ours.engine.asked)
    assert sum(found.details.token_log_probabilities) <= 0
    assert {target for _, target in found.details.alignment} <= set(range(len(found.text.split())))


@pytest.mark.parametrize("prefix", ["", "lo", "Lo, mi"])
@pytest.mark.parametrize("line", ["<b>ka</b> mi", "ka <b>", "<b>", "ka", ""])
def test_every_translation_begins_with_the_target_prefix_also_where_it_is_copied(tokenizer, line, prefix):
    ours = Translator(Echo(), tokenizer, Limits(characters=KNOWN), target_prefix=prefix, details=True)
    [[found]] = ours.translate([line])
    assert found.text == " ".join(filter(None, [prefix if line else "", line]))
    words = len(found.text.split())
    assert all(0 <= target < words for _, target in found.details.alignment)


def test_copied_stretches_are_neither_scored_nor_counted(tokenizer):
    plain, marked = Translator(Echo(), tokenizer, Limits(characters=KNOWN)).translate(["ka", "<b>ka"])
    assert (marked[0].score, marked[0].log_probability) == pytest.approx(
        (-1.0 / ((5 + len(tokenizer.encode(["ka"])[0]) + 1) / 6) ** 0.6, -1.0)
    )
    assert plain[0].copied == []


def test_a_line_that_is_blank_or_only_copied_has_a_score_by_every_length_penalty(tokenizer):
    engine = Echo()
    engine.config = DecodeConfig(length_penalty=0.2, length_penalty_kind="marian", n_best=2)
    lines = ["", "   ", "\t", "\u3000 \u00a0", "\u2603"]
    rows = Translator(engine, tokenizer, Limits(characters=KNOWN)).translate(lines)
    assert [[(best.text, best.score) for best in row] for row in rows] == [[("", 0)]] * 4 + [[("\u2603", 0)]]


def texts(tokenizer: Tokenizer, line: str, **options) -> list[str]:
    segmenter = Segmenter(tokenizer, Limits(language="en", **options), "")
    segmenter.splitter = lambda line, language: line.replace(". ", ".\n").split("\n")
    return [tokenizer.decode(segment.ids).strip() for segment in segmenter.segment([Line(line)])[0]]


def test_lines_are_cut_into_sentences_and_longer_ones_than_were_seen_into_parts(tokenizer):
    paragraph, one = " ".join(SENTENCES), " ".join(["ka"] * 30)
    assert texts(tokenizer, paragraph) == [paragraph]
    assert texts(tokenizer, paragraph, split=True) == SENTENCES
    assert texts(tokenizer, one, split=True, longest=99) == [one.strip()]
    assert len(texts(tokenizer, one, split=True, longest=20)) == -(-len(tokenizer.encode([one])[0]) // 20)
    assert texts(tokenizer, one, positions=99) == [one.strip()]


def described(**training) -> ModelDescription:
    return ModelDescription({"positions": "sinusoidal", "max_positions": 9}, 300, "en", "de", "", training)


LENGTHS = {"lengths": {"source": {"p99": 23, "max": 125}, "target": {"p99": 1, "max": 1}}}


@pytest.mark.parametrize(
    ("training", "split", "longest"),
    [
        ({}, True, None),
        (LENGTHS, True, 125),
        (LENGTHS, False, None),
        ({"lengths": ["odd"]}, True, None),
        ({"lengths": {"source": {"max": -1}}}, True, None),
    ],
)
def test_limits_are_what_a_model_has_seen(training, split, longest):
    found = limits([described(**training)], split)
    assert (found.split, found.longest) == (split, longest)


def test_limits_of_an_ensemble_are_those_of_all_its_models():
    other = {"lengths": {"source": {"p99": 40, "max": 50}}, "characters": {"source": "bcd"}}
    found = limits([described(**LENGTHS, characters={"source": "abc"}), described(**other)], True)
    assert (found.longest, found.characters) == (50, frozenset(" bc"))
    assert limits([described(**LENGTHS), described(**other)], True).characters is None
