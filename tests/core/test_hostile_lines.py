"""Arbitrary lines: each line has one translation, which does not depend on other lines."""

import json
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from nmt.config import DecodeConfig, TokenizerConfig
from nmt.search import Hypothesis, TorchEngine, penalty
from nmt.text import Tokenizer, canonical, clean, train_tokenizer
from nmt.translation import Translation, Translator
from nmt.translation.limits import Limits
from tests.core.test_translate import written
from tests.core.test_translator import random_model

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
TEXT = [" ".join(WORDS[first:] + WORDS[:first]) + "." for first in range(10)]
KINDS = {"bpe": 300, "unigram": 300, "wordpiece": 600}
SEPARATORS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\t\u00a0\u3000"
NASTY = [
    "",
    " ",
    "\0",
    "a\0b",
    "\ufeff",
    "\u200b",
    "\ufffd",
    "\x1b[2J",
    "\u202e",
    "\ue000",
    "\u2581",
    "\u25b8",
    "<s>",
    "</s>",
    "<pad>",
    "<0x0A>",
    "a\u0301\u0301",
    "\u0301",
    "\ufdfa",
    "😀" * 9,
    "x" * 700,
    "漢" * 200,
    *(f"ka{separator}lo" for separator in SEPARATORS),
]
LETTERS = f"{SEPARATORS} ka.<>\0\ufeff"
few = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
any_line = st.one_of(
    st.text(max_size=20),
    st.text(alphabet=st.sampled_from(LETTERS), max_size=20),
    st.sampled_from(NASTY),
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
).map(lambda line: line.replace("\n", " "))
any_sentence = st.one_of(any_line, st.sampled_from([*TEXT, "ka!", "Lo?"]))
raw_line = st.one_of(
    any_line.map(str.encode),
    st.binary(max_size=9),
    st.sampled_from([b"\xed\xa0\x80", b"\r", b""]),
)
any_bytes = st.lists(raw_line, max_size=6).map(b"\n".join)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request) -> Tokenizer:
    return train_tokenizer(TEXT * 3, TokenizerConfig(request.param, KINDS[request.param]))


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return train_tokenizer(TEXT * 3, TokenizerConfig("bpe", 300))


def translator(
    tokenizer: Tokenizer, limits: Limits | None = None, target_prefix: str = "", **settings
) -> Translator:
    """A translator with a random model."""
    defaults = {"beam_size": 2, "max_length": 5}
    config = DecodeConfig(**(defaults | settings))
    engine = TorchEngine([random_model(tokenizer)], config)
    return Translator(engine, tokenizer, limits or Limits(), target_prefix=target_prefix)


class Recorder:
    """An engine that translates each segment into its own tokens, and records the segments."""

    def __init__(self, n_best: int = 1, length_penalty: float = 0.6) -> None:
        self.config = DecodeConfig(n_best=n_best, length_penalty=length_penalty)
        self.segments = []

    def search(self, sentences, prefixes, constraints=None):
        self.segments = list(sentences)
        results = []
        for ids, prefix in zip(sentences, prefixes, strict=True):
            tokens = [*prefix, *ids]
            scores = [-1.0 - rank for rank in range(self.config.n_best)]
            results.append([Hypothesis(tokens, score, score) for score in scores])
        return results


def texts_of(rows: Iterable[list[Translation]]) -> list[str]:
    """The best translation of each line."""
    return [translations[0].text for translations in rows]


@pytest.mark.slow
@few
@given(lines=st.lists(any_line, max_size=7))
def test_a_translation_does_not_depend_on_other_lines(tokenizer, lines):
    ours = translator(tokenizer)
    alone = texts_of(ours.translate([line])[0] for line in lines)
    assert texts_of(ours.translate(lines)) == alone
    assert texts_of(ours.translate(lines[::-1])) == alone[::-1]
    assert texts_of(ours.stream(iter(lines), 2)) == alone
    for text, line in zip(alone, lines, strict=True):
        assert text == " ".join(text.split())
        if not line.strip():
            assert not text


def lines_in(content: bytes) -> list[str]:
    """The lines of an output, each of which ends with LF, whatever else it contains."""
    *lines, end = content.decode().split("\n")
    assert end == ""
    return lines


@pytest.mark.slow
@few
@given(
    content=any_bytes,
    end=st.sampled_from([b"", b"\n", b"\r\n"]),
    buffer=st.sampled_from([1, 2, 2000]),
)
def test_any_bytes_have_one_output_line_per_input_line(
    checkpoint, tmp_path_factory, content, end, buffer
):
    content += end
    count = content.count(b"\n")
    if content and not content.endswith(b"\n"):
        count += 1
    folder = tmp_path_factory.mktemp("bytes")
    translations = lines_in(written(checkpoint, folder, content, buffer=buffer))
    assert len(translations) == count
    rows = lines_in(written(checkpoint, folder, content, format="tsv"))
    for number, (row, translation) in enumerate(zip(rows, translations, strict=True), 1):
        cells = row.split("\t")
        assert cells[0] == str(number)
        assert cells[2:] == [translation]
    records = lines_in(written(checkpoint, folder, content, format="jsonl"))
    for record, translation in zip(records, translations, strict=True):
        assert json.loads(record)["translations"][0]["text"] == translation


@few
@given(
    line=st.lists(any_sentence, min_size=1, max_size=9).map(" ".join),
    longest=st.integers(4, 40),
    tag=st.sampled_from(["", "ka ", "lo mi "]),
)
def test_segments_of_a_long_line_have_all_its_tokens(tokenizer, line, longest, tag):
    engine = Recorder()
    prefix = tokenizer.encode([clean(tag)])[0]
    longest += len(prefix)
    limits = Limits(split=True, longest=longest)
    ours = Translator(engine, tokenizer, limits, tag)
    [[best]] = ours.translate([line])
    assert all(0 < len(segment) <= longest for segment in engine.segments)
    assert all(segment[: len(prefix)] == prefix for segment in engine.segments)
    # The bytes of a character may be in two segments, so tokens are joined before decoding.
    ids = list[int]()
    for segment in engine.segments:
        ids += segment[len(prefix) :]
    assert tokenizer.decode(ids).replace(" ", "") == clean(line).replace(" ", "")
    texts = [clean(tag + sentence) for sentence in ours.segmenter.splitter(clean(line), "")]
    is_cut = any(len(ids) > longest for ids in tokenizer.encode(texts))
    assert bool(best.notes) == is_cut


def test_scores_of_joined_translations(bpe):
    engine = Recorder(n_best=3, length_penalty=0.7)
    ours = Translator(engine, bpe, Limits(split=True, longest=5))
    [translations] = ours.translate([" ".join(TEXT[:2])])
    length = sum(len(segment) + 1 for segment in engine.segments)
    for rank, translation in enumerate(translations, 1):
        log_probability = -float(rank * len(engine.segments))
        assert translation.log_probability == log_probability
        score = log_probability / penalty(length, engine.config)
        assert translation.score == pytest.approx(score)
    assert len(translations) == 3


@pytest.mark.parametrize(
    "decode", [{"n_best": 2}, {"do_sample": True, "n_best": 3}, {"max_length": 1}], ids=str
)
@pytest.mark.parametrize(
    ("prefix", "longest"), [("Lo, mi \ufb01", None), ("漢字 ", 4), (" ka  lo mi nu ", 4)]
)
def test_every_translation_has_the_target_prefix_once(bpe, prefix, longest, decode):
    lines = ["ka", "", TEXT[0], " \t", "漢字\0", " ".join(TEXT[:3])]
    limits = Limits(split=longest is not None, longest=longest)
    without_prefix = translator(bpe, limits, **decode).translate(lines)
    with_prefix = translator(bpe, limits, prefix, **decode).translate(lines)
    text = canonical(prefix)
    for line, translations, others in zip(lines, with_prefix, without_prefix, strict=True):
        # If the prefix has the maximum length, there is only one translation.
        assert 1 <= len(translations) <= len(others)
        for translation in translations:
            if line.strip():
                assert translation.text.startswith(text)
                assert translation.text.count(text) == 1
            else:
                assert text not in translation.text
