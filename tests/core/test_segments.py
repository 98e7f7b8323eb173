"""What a line is cut into: sentences, parts of those longer than training's lines, and what can only be copied."""

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
    """An engine that answers with the prefix and the source; the n-th token of one side is seen in the n-th token."""

    config = DecodeConfig()

    def search(self, sentences, prefixes, constraints=None):
        self.asked = list(sentences)
        return [
            [Hypothesis([*p, *ids], -1.0, -0.5)] for p, ids in zip(prefixes, sentences, strict=True)
        ]

    def token_scores(self, pairs):
        shapes = [(len(target), len(source)) for source, target in pairs]
        return [
            TokenScores([-1.0] * (t + 1), np.eye(max(s, t), dtype=np.float32)[:t, :s])
            for t, s in shapes
        ]


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
def test_what_is_copied_by_hand(line, copied):
    assert [line[begin:end].strip() for begin, end in copied_spans(line, KNOWN)] == copied


WRITTEN = "kalomi 12 \uc7a0\uc218\u0633\u0648\u0631\u05d0\u05d1\u0915\u093e\u0e01\u6f22."


@pytest.mark.parametrize(
    ("line", "copied"),
    [
        # Grapheme clusters: keycaps, pictures of signs, enclosing marks, families, flags, skin tones.
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
def test_a_copied_character_takes_its_cluster_and_its_word_with_it(line, copied):
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
def test_what_is_copied_stays_as_it_was_typed(tokenizer, line, text):
    ours = Translator(Echo(), tokenizer, Limits(characters=KNOWN))
    assert ours.translate([line])[0][0].text == text


@pytest.mark.parametrize(
    "sign", ["\u200b", "\u200c", "\u2060", "\u00ad", "\ufe0f", "\U000e0100", "\u200e"]
)
def test_invisible_characters_that_the_model_does_not_know_do_not_cut_a_sentence(tokenizer, sign):
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
def test_letters_that_occur_in_training_in_either_case_are_translated(tokenizer, line, read):
    learned = frozenset("жукКUЁ ") | KNOWN
    rare = frozenset("ЖŻ舌")
    engine = Echo()
    ours = Translator(engine, tokenizer, Limits(characters=learned | rare, rare=rare))
    [[best]] = ours.translate([line])
    assert best.copied == []
    assert engine.asked == tokenizer.encode([read])


def test_letters_that_never_occur_are_copied_with_their_word(tokenizer):
    [[best]] = Translator(Echo(), tokenizer, Limits(characters=KNOWN)).translate(["ka Жук lo"])
    assert best.copied == ["Жук"]


SIGNS = [
    *(
        "---",
        "***",
        "* * *",
        "\u2022",
        "1.",
        "12:30",
        ":-)",
        "\u00af\\_(\u30c4)_/\u00af"[:3],
        "=====  =====",
    ),
    *(
        "\u2500\u2500\u2500",
        "50 %",
        "3.14",
        "2\u00bd",
        "\U0001f600",
        "(1)",
        "\u2026",
        "\u2192",
        "$5",
    ),
]


@pytest.mark.parametrize("line", SIGNS)
def test_lines_without_a_letter_are_copied(tokenizer, line):
    limits = Limits(characters=KNOWN, copies_signs=True, split=True, language="en")
    engine = Echo()
    translated, told = Translator(engine, tokenizer, limits).translate(
        [f" {line}", f"Ka lo. {line}"]
    )
    assert translated[0].text == line
    assert told[0].text == f"Ka lo. {line}"
    assert engine.asked == tokenizer.encode(["Ka lo."])


def test_a_model_that_has_never_seen_a_letter_reads_lines_of_digits():
    for characters, copies_signs in (("0123 ", False), ("0123 a", True)):
        description = described(characters={"source": characters})
        assert limits_of([description], split=False).copies_signs is copies_signs


def test_sentences_of_characters_that_the_model_does_not_know_are_copied_as_one(tokenizer):
    limits = Limits(
        split=True, language="en", characters=KNOWN, positions=4
    )  # the copy takes no position
    [[found]] = Translator(Echo(), tokenizer, limits, details=True).translate(
        ["ka \u2603. \u2603! lo"]
    )
    assert (found.text, found.copied) == ("ka \u2603. \u2603! lo", ["\u2603. \u2603!"])


@pytest.mark.parametrize(
    ("known", "text"),
    [("'", "ka'lo \u2013 mi"), ("'\u2019-", "ka\u2019lo - mi"), ("", "ka\u2019lo \u2013 mi")],
)
def test_quotes_and_dashes_that_the_model_does_not_know_become_plain_ones_that_it_knows(
    tokenizer, known, text
):
    ours = Translator(Echo(), tokenizer, Limits(characters=KNOWN | set(known)))
    assert ours.translate(["ka\u2019lo \u2013 mi"])[0][0].text == text


def test_a_long_word_takes_no_quadratic_time():
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
def test_what_is_copied_and_what_an_echo_gives_are_the_line(tokenizer, line, known):
    """Blanks and all; no stretch that is searched holds a character that is not known."""
    ours = Translator(Echo(), tokenizer, Limits(characters=known | {" "}), details=True)
    [[found]] = ours.translate([line])
    read = ours.segmenter.clean(line)
    assert ours.segmenter.clean(found.text) == read
    assert bool(found.copied) == (not (known | {" "}).issuperset(read))
    on_one_line = re.sub("[\\s\x1c-\x1f]", " ", line)
    assert all(re.sub(r"\s", " ", typed) in on_one_line for typed in found.copied)
    assert all((known | {" "}).issuperset(tokenizer.decode(ids)) for ids in ours.engine.asked)
    assert len(found.details.token_log_probabilities) == len(found.details.tokens) + bool(
        ours.engine.asked
    )
    assert sum(found.details.token_log_probabilities) <= 0
    assert {target for _, target in found.details.alignment} <= set(
        range(len(word_spans(found.text)))
    )


@pytest.mark.parametrize("prefix", ["", "lo", "Lo, mi"])
@pytest.mark.parametrize("line", ["<b>ka</b> mi", "ka <b>", "<b>", "ka", ""])
def test_every_translation_begins_with_the_target_prefix_also_where_it_is_copied(
    tokenizer, line, prefix
):
    ours = Translator(
        Echo(), tokenizer, Limits(characters=KNOWN), target_prefix=prefix, details=True
    )
    [[found]] = ours.translate([line])
    assert found.text == " ".join(filter(None, [prefix if line else "", line]))
    words = len(word_spans(found.text))
    assert all(0 <= target < words for _, target in found.details.alignment)


def test_copied_stretches_are_neither_scored_nor_counted(tokenizer):
    plain, marked = Translator(Echo(), tokenizer, Limits(characters=KNOWN)).translate(
        ["ka", "<b>ka"]
    )
    assert (marked[0].score, marked[0].log_probability) == pytest.approx(
        (-1.0 / ((5 + len(tokenizer.encode(["ka"])[0]) + 1) / 6) ** 0.6, -1.0)
    )
    assert plain[0].copied == []


def test_a_line_that_is_blank_or_only_copied_has_a_score_by_every_length_penalty(tokenizer):
    engine = Echo()
    engine.config = DecodeConfig(length_penalty=0.2, length_penalty_kind="marian", n_best=2)
    lines = ["", "   ", "\t", "\u3000 \u00a0", "\u2603"]
    rows = Translator(engine, tokenizer, Limits(characters=KNOWN)).translate(lines)
    assert [[(best.text, best.score) for best in row] for row in rows] == [[("", 0)]] * 4 + [
        [("\u2603", 0)]
    ]


def texts(tokenizer: Tokenizer, line: str, **options) -> list[str]:
    segmenter = Segmenter(tokenizer, Limits(language="en", **options), "")
    segmenter.splitter = lambda line, language: line.replace(". ", ".\n").split("\n")
    return [tokenizer.decode(segment.ids).strip() for segment in segmenter.segment([Line(line)])[0]]


def test_lines_are_cut_into_sentences_and_longer_ones_than_were_seen_into_parts(tokenizer):
    paragraph, one = " ".join(SENTENCES), " ".join(["ka"] * 30)
    assert texts(tokenizer, paragraph) == [paragraph]
    assert texts(tokenizer, paragraph, split=True) == SENTENCES
    assert texts(tokenizer, one, split=True, longest=99) == [one.strip()]
    assert len(texts(tokenizer, one, split=True, longest=20)) == -(
        -len(tokenizer.encode([one])[0]) // 20
    )
    assert texts(tokenizer, one, positions=99) == [one.strip()]


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
def test_limits_are_what_a_model_has_seen(training, split, longest):
    found = limits_of([described(**training)], split)
    assert (found.split, found.longest) == (split, longest)


def test_limits_of_an_ensemble_are_those_of_all_its_models():
    other = {"lengths": {"source": {"p99": 40, "max": 50}}, "characters": {"source": "bcd"}}
    characters = {"source": "abc", "rare": "dé"}
    found = limits_of([described(**LENGTHS, characters=characters), described(**other)], True)
    assert (found.longest, found.characters) == (50, frozenset(" bcd"))
    assert found.rare == {"d"}
    assert limits_of([described(**LENGTHS), described(**other)], True).characters is None
