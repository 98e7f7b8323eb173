"""Segments of a line: sentences, parts of long sentences, and stretches to copy."""

import math
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from nmt.config import DecodeConfig, TokenizerConfig
from nmt.files import ModelDescription
from nmt.search import Hypothesis, TokenScores
from nmt.text import Tokenizer, train_tokenizer, word_spans
from nmt.translation import Line, Segmenter, Translator
from nmt.translation.copying import copied_spans
from nmt.translation.limits import Limits, limits_of

TEXT = "ka lo mi nu. Pe ri so, tu va? We KaLo 123 das \u6f22\u5b57"
KNOWN = frozenset(TEXT)
SENTENCES = ["Ka lo mi nu.", "Pe ri so tu.", "Va we ka lo."]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer([TEXT] * 9, TokenizerConfig("bpe", 300))


class Echo:
    """An engine that translates each source into its prefix and itself.

    The n-th target token attends to the n-th source token.
    """

    config = DecodeConfig()

    def search(self, sentences, prefixes, constraints=None):
        self.asked = list(sentences)
        results = []
        for prefix, ids in zip(prefixes, sentences, strict=True):
            results.append([Hypothesis([*prefix, *ids], -1.0, -0.5)])
        return results

    def token_scores(self, pairs):
        results = []
        for source, target in pairs:
            diagonal = np.eye(max(len(source), len(target)), dtype=np.float32)
            attention = diagonal[: len(target), : len(source)]
            results.append(TokenScores([-1.0] * (len(target) + 1), attention))
        return results


@pytest.mark.parametrize(
    ("line", "copied"),
    [
        ("<b>ka</b> lo", ["<b>", "</b>"]),
        ("<b>ka</b>, <i>lo</i>.", ["<b>", "</b>, <i>", "</i>."]),
        ("ka < lo > mi", ["<", ">"]),
        ("ka <a href='x'>mi lo</a>", ["<a href='x'>", "</a>"]),
        ("\u0141\u00f3d\u017a, ka \u201clo\u201d", ["\u0141\u00f3d\u017a,", "\u201c", "\u201d"]),
        ("ka \U0001f600\U0001f600!", ["\U0001f600\U0001f600!"]),
        ("\u6f22\u6f23\u5b57", ["\u6f23"]),
        ("ka {lo} x", ["{", "} x"]),
    ],
)
def test_copied_spans(line, copied):
    spans = copied_spans(line, KNOWN)
    assert [line[begin:end].strip() for begin, end in spans] == copied


WRITTEN = "kalomi 12 \uc7a0\uc218\u0633\u0648\u0631\u05d0\u05d1\u0915\u093e\u0e01\u6f22."


@pytest.mark.parametrize(
    ("line", "copied"),
    [
        # Grapheme clusters: keycaps, pictures of signs, enclosing marks, families, flags, tones.
        ("ka 1\ufe0f\u20e3 lo 2\ufe0f\u20e3.", ["1\ufe0f\u20e3", "2\ufe0f\u20e3."]),
        ("ka \u203c\ufe0f lo", ["\u203c\ufe0f"]),
        ("\u2139\ufe0f ka", ["\u2139\ufe0f"]),
        ("ka \u24c2\ufe0f lo", ["\u24c2\ufe0f"]),
        ("ka a\u20dd lo", ["a\u20dd"]),
        (
            "ka \U0001f469\u200d\U0001f469\u200d\U0001f467 lo",
            ["\U0001f469\u200d\U0001f469\u200d\U0001f467"],
        ),
        ("ka \U0001f1e9\U0001f1ea lo", ["\U0001f1e9\U0001f1ea"]),
        ("ka \U0001f44d\U0001f3fd lo", ["\U0001f44d\U0001f3fd"]),
        # Words, in scripts with and without case.
        ("ka \uc7a0\uae50\uc218 lo", ["\uc7a0\uae50\uc218"]),
        ("ka \u0633\u0648\u067e\u0631 lo", ["\u0633\u0648\u067e\u0631"]),
        ("ka \u05d0\u05d2\u05d1 lo", ["\u05d0\u05d2\u05d1"]),
        ("ka \u0915\u093e\u092e lo", ["\u0915\u093e\u092e"]),
        ("ka 2\u00bd lo", ["2\u00bd"]),
        ("\u05d0\u05d1\u05f3\u05d2\u05d0 lo", ["\u05d0\u05d1\u05f3\u05d2\u05d0"]),
        ("ka l'\u00e9 lo", ["l'\u00e9"]),
        # Punctuation that adjoins it, too.
        ("ka \u05d0\u05d2, lo", ["\u05d0\u05d2,"]),
        ('ka ("\u05d0\u05d2") lo', ['("\u05d0\u05d2")']),
        ("ka m\u00b2. lo", ["m\u00b2."]),
        # Without spaces between words, only the character.
        ("\u6f22\u6f23\u6f22", ["\u6f23"]),
        ("\u0e01\u0e02\u0e33\u0e01", ["\u0e02\u0e33"]),
    ],
)
def test_copied_spans_cover_the_cluster_or_word_of_a_character(line, copied):
    spans = copied_spans(line, frozenset(WRITTEN))
    assert [line[begin:end].strip() for begin, end in spans] == copied


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("ka \ufb01x lo", "ka \ufb01x lo"),  # read as fix; the word is unknown
        ("ka\u00ad\u0142o lo", "ka\u00ad\u0142o lo"),
        ("ka e\u0301 lo", "ka e\u0301 lo"),
        ("ka \uff38\u00b2 lo", "ka \uff38\u00b2 lo"),
        ("ka \u2122\u00a0 lo", "ka \u2122 lo"),
        ("ka \u263a\u2028lo", "ka \u263a lo"),
    ],
)
def test_copies_are_not_normalized(tokenizer, line, text):
    ours = Translator(Echo(), tokenizer, Limits(characters=KNOWN))
    assert ours.translate([line])[0][0].text == text


@pytest.mark.parametrize(
    "sign", ["\u200b", "\u200c", "\u2060", "\u00ad", "\ufe0f", "\U000e0100", "\u200e"]
)
def test_unknown_invisible_characters_are_ignored(tokenizer, sign):
    ours = Translator(Echo(), tokenizer, Limits(characters=KNOWN))
    [[best]] = ours.translate([f"ka{sign} lo {sign}mi \u6f22{sign}\u5b57"])
    assert (best.text, best.copied) == ("ka lo mi \u6f22\u5b57", [])


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("Жук ka", "жук ka"),  # learned only in lower case
        ("ёж", "Ёж"),  # learned only in upper case
        ("ЖУК", "жуК"),  # one of its letters is learned as it is
        ("ŻUK", "ŻUK"),  # not learned in either case, but rare
        ("舌 ka", "舌 ka"),
    ],
)
def test_letters_are_read_in_the_case_that_the_model_has_learned(tokenizer, line, read):
    learned = frozenset("жукКUЁ ") | KNOWN
    rare = frozenset("ЖŻ舌")
    engine = Echo()
    ours = Translator(engine, tokenizer, Limits(characters=learned | rare, rare=rare))
    [[best]] = ours.translate([line])
    assert best.copied == []
    assert engine.asked == tokenizer.encode([read])


def test_words_with_unknown_letters_are_copied(tokenizer):
    translator = Translator(Echo(), tokenizer, Limits(characters=KNOWN))
    [[best]] = translator.translate(["ka Жук lo"])
    assert best.copied == ["Жук"]


SIGNS = [
    "---",
    "***",
    "* * *",
    "\u2022",
    "1.",
    "12:30",
    ":-)",
    "\u00af\\_(\u30c4)_/\u00af"[:3],
    "=====  =====",
    "\u2500\u2500\u2500",
    "50 %",
    "3.14",
    "2\u00bd",
    "\U0001f600",
    "(1)",
    "\u2026",
    "\u2192",
    "$5",
]


@pytest.mark.parametrize("line", SIGNS)
def test_lines_without_a_letter_are_copied(tokenizer, line):
    limits = Limits(characters=KNOWN, copies_signs=True, split=True, language="en")
    engine = Echo()
    translator = Translator(engine, tokenizer, limits)
    [alone], [after_sentence] = translator.translate([f" {line}", f"Ka lo. {line}"])
    assert alone.text == line
    assert after_sentence.text == f"Ka lo. {line}"
    assert engine.asked == tokenizer.encode(["Ka lo."])


def test_a_model_of_digits_translates_lines_without_letters():
    for characters, copies_signs in (("0123 ", False), ("0123 a", True)):
        description = described(characters={"source": characters})
        assert limits_of([description], split=False).copies_signs is copies_signs


def test_adjacent_copied_sentences_become_one_copy(tokenizer):
    # A copy takes no position.
    limits = Limits(split=True, language="en", characters=KNOWN, positions=4)
    line = "ka \u2603. \u2603! lo"
    [[best]] = Translator(Echo(), tokenizer, limits, details=True).translate([line])
    assert best.text == line
    assert best.copied == ["\u2603. \u2603!"]


@pytest.mark.parametrize(
    ("known", "text"),
    [("'", "ka'lo \u2013 mi"), ("'\u2019-", "ka\u2019lo - mi"), ("", "ka\u2019lo \u2013 mi")],
)
def test_unknown_quotes_and_dashes_are_read_as_plain_ones(tokenizer, known, text):
    ours = Translator(Echo(), tokenizer, Limits(characters=KNOWN | set(known)))
    assert ours.translate(["ka\u2019lo \u2013 mi"])[0][0].text == text


def test_copied_spans_take_linear_time():
    assert copied_spans("x" * 200_000, KNOWN) == [(0, 200_000)]
    assert copied_spans("k" * 200_000 + "x", KNOWN) == [(0, 200_001)]
    assert len(copied_spans("<ka " * 50_000, KNOWN)) == 50_000


lines = st.lists(
    st.one_of(
        st.text(max_size=9),
        st.sampled_from(
            [*TEXT.split(), "<b>", "</b>", "<", ">", " ", "\u00ef", "\u201c", "\U0001f600", "-"]
        ),
    ),
    max_size=9,
).map("".join)


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(line=lines, known=st.sampled_from([KNOWN, frozenset("ka "), frozenset(" ")]))
def test_an_engine_that_echoes_its_input_reproduces_the_line(tokenizer, line, known):
    """With its blanks. The engine gets only characters that the model knows."""
    characters = known | {" "}
    ours = Translator(Echo(), tokenizer, Limits(characters=characters), details=True)
    [[best]] = ours.translate([line])
    read = ours.segmenter.clean(line)
    assert ours.segmenter.clean(best.text) == read
    has_copies = not characters.issuperset(read)
    assert bool(best.copied) == has_copies
    on_one_line = re.sub("[\\s\x1c-\x1f]", " ", line)
    assert all(re.sub(r"\s", " ", typed) in on_one_line for typed in best.copied)
    assert all(characters.issuperset(tokenizer.decode(ids)) for ids in ours.engine.asked)
    # The end symbol has a score, but is listed only between segments.
    scores = best.details.token_log_probabilities
    assert len(scores) == len(best.details.tokens) + bool(ours.engine.asked)
    assert sum(scores) <= 0
    words = range(len(word_spans(best.text)))
    assert all(target in words for _, target in best.details.alignment)


@pytest.mark.parametrize("prefix", ["", "lo", "Lo, mi"])
@pytest.mark.parametrize("line", ["<b>ka</b> mi", "ka <b>", "<b>", "ka", ""])
def test_the_target_prefix_also_precedes_copies(tokenizer, line, prefix):
    limits = Limits(characters=KNOWN)
    ours = Translator(Echo(), tokenizer, limits, target_prefix=prefix, details=True)
    [[best]] = ours.translate([line])
    assert best.text == (f"{prefix} {line}".strip() if line else "")
    words = range(len(word_spans(best.text)))
    assert all(target in words for _, target in best.details.alignment)


def test_copied_stretches_do_not_count_in_the_score(tokenizer):
    translator = Translator(Echo(), tokenizer, Limits(characters=KNOWN))
    [plain], [marked] = translator.translate(["ka", "<b>ka"])
    length = len(tokenizer.encode(["ka"])[0]) + 1
    assert marked.score == pytest.approx(-1.0 / ((5 + length) / 6) ** 0.6)
    assert marked.log_probability == pytest.approx(-1.0)
    assert plain.copied == []


def test_blank_and_copied_lines_have_score_0(tokenizer):
    engine = Echo()
    engine.config = DecodeConfig(length_penalty=0.2, length_penalty_kind="marian", n_best=2)
    lines = ["", "   ", "\t", "\u3000 \u00a0", "\u2603"]
    rows = Translator(engine, tokenizer, Limits(characters=KNOWN)).translate(lines)
    assert [translations[0].text for translations in rows] == ["", "", "", "", "\u2603"]
    for [translation] in rows:
        assert translation.score == 0


def texts(tokenizer: Tokenizer, line: str, **options) -> list[str]:
    segmenter = Segmenter(tokenizer, Limits(language="en", **options), "")
    segmenter.splitter = lambda line, language: line.replace(". ", ".\n").split("\n")
    [segments] = segmenter.segment([Line(line)])
    return [tokenizer.decode(segment.ids).strip() for segment in segments]


def test_lines_are_cut_into_sentences_and_parts(tokenizer):
    paragraph = " ".join(SENTENCES)
    assert texts(tokenizer, paragraph) == [paragraph]
    assert texts(tokenizer, paragraph, split=True) == SENTENCES
    sentence = " ".join(["ka"] * 30)
    assert texts(tokenizer, sentence, split=True, longest=99) == [sentence]
    assert texts(tokenizer, sentence, positions=99) == [sentence]
    tokens = len(tokenizer.encode([sentence])[0])
    parts = texts(tokenizer, sentence, split=True, longest=20)
    assert len(parts) == math.ceil(tokens / 20)


def described(**training) -> ModelDescription:
    return ModelDescription(
        {"positions": "sinusoidal", "max_positions": 9}, 300, "en", "de", "", training
    )


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
def test_limits_of_one_model(training, split, longest):
    limits = limits_of([described(**training)], split)
    assert (limits.split, limits.longest) == (split, longest)


def test_limits_of_an_ensemble():
    other = {"lengths": {"source": {"p99": 40, "max": 50}}, "characters": {"source": "bcd"}}
    characters = {"source": "abc", "rare": "dé"}
    models = [described(**LENGTHS, characters=characters), described(**other)]
    limits = limits_of(models, split=True)
    assert limits.longest == 50
    assert limits.characters == frozenset(" bcd")
    assert limits.rare == {"d"}
    # Without a record for one of the models, any character may be translated.
    models = [described(**LENGTHS), described(**other)]
    assert limits_of(models, split=True).characters is None
