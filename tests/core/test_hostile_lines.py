"""Lines that nobody trained on: whatever they hold, line i is answered by line i, and by it alone."""

import json

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from test_translate import written
from test_translator import random_model

from nmt.config import DecodeConfig, TokenizerConfig
from nmt.search import Hypothesis, TorchEngine, penalty
from nmt.text import Tokenizer, canonical, clean, train_tokenizer
from nmt.translation import Translator
from nmt.translation.limits import Limits

WORDS = ["ka", "lo", "mi", "nu", "pe", "ri", "so", "tu", "va", "we"]
TEXT = [" ".join(WORDS[i:] + WORDS[:i]) + "." for i in range(10)]
KINDS = {"bpe": 300, "unigram": 300, "wordpiece": 600}
SEPARATORS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\t\u00a0\u3000"
NASTY = [
    *(
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
    ),
    *(
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
    ),
    *(f"ka{separator}lo" for separator in SEPARATORS),
]
few = settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
any_line = st.one_of(
    st.text(max_size=20),
    st.text(alphabet=st.sampled_from(SEPARATORS + " ka.<>\0\ufeff"), max_size=20),
    st.sampled_from(NASTY),
    st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join),
).map(lambda line: line.replace("\n", " "))
raw_line = st.one_of(
    any_line.map(str.encode), st.binary(max_size=9), st.sampled_from([b"\xed\xa0\x80", b"\r", b""])
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
    config = DecodeConfig(**{"beam_size": 2, "max_length": 5, **settings})
    engine = TorchEngine([random_model(tokenizer)], config)
    return Translator(engine, tokenizer, limits or Limits(), target_prefix=target_prefix)


class Recorder:
    """An engine that translates every segment into its own tokens, the worst first where it is asked for several."""

    def __init__(self, n_best: int = 1, length_penalty: float = 0.6) -> None:
        self.config = DecodeConfig(n_best=n_best, length_penalty=length_penalty)
        self.n_best, self.segments, self.prefixes = n_best, [], []

    def search(self, sentences, prefixes, constraints=None):
        self.segments, self.prefixes = list(sentences), list(prefixes)
        return [
            [Hypothesis([*prefix, *ids], -1.0 - n, -1.0 - n) for n in range(self.n_best)]
            for ids, prefix in zip(sentences, prefixes, strict=True)
        ]


@few
@given(lines=st.lists(any_line, max_size=7))
def test_hostile_lines_are_translated_alike_alone_together_and_streamed(tokenizer, lines):
    ours = translator(tokenizer)
    alone = [ours.translate([line])[0][0].text for line in lines]
    assert [found[0].text for found in ours.translate(lines)] == alone
    assert [found[0].text for found in ours.translate(lines[::-1])] == alone[::-1]
    assert [found[0].text for found in ours.stream(iter(lines), 2)] == alone
    assert all(text == " ".join(text.split()) for text in alone)
    assert all(not text for text, line in zip(alone, lines, strict=True) if not line.strip())


@few
@given(
    content=any_bytes,
    end=st.sampled_from([b"", b"\n", b"\r\n"]),
    buffer=st.sampled_from([1, 2, 2000]),
)
def test_whatever_the_bytes_there_is_a_line_for_a_line(
    checkpoint, tmp_path_factory, content, end, buffer
):
    content += end
    folder = tmp_path_factory.mktemp("bytes")
    text = written(checkpoint, folder, content, buffer=buffer)
    count = content.count(b"\n") + (content != b"" and not content.endswith(b"\n"))
    assert text.count(b"\n") == count
    assert not text or text.endswith(b"\n")
    rows = written(checkpoint, folder, content, format="tsv").decode().split("\n")[:-1]
    assert [row.split("\t")[0] for row in rows] == [str(n + 1) for n in range(count)]
    assert [row.split("\t")[2:] for row in rows] == [
        [cell] for cell in text.decode().split("\n")[:-1]
    ]
    records = [
        json.loads(line)
        for line in written(checkpoint, folder, content, format="jsonl").split(b"\n")[:-1]
    ]
    assert [record["translations"][0]["text"] for record in records] == text.decode().split("\n")[
        :-1
    ]


@few
@given(
    line=st.lists(
        st.one_of(any_line, st.sampled_from([*TEXT, "ka!", "Lo?"])), min_size=1, max_size=9
    ).map(" ".join),
    longest=st.integers(4, 40),
    tag=st.sampled_from(["", "ka ", "lo mi "]),
)
def test_every_token_of_a_long_line_is_in_some_segment_behind_its_prefix(
    tokenizer, line, longest, tag
):
    engine, prefix = Recorder(), tokenizer.encode([clean(tag)])[0]
    longest += len(prefix)
    limits = Limits(split=True, longest=longest)
    ours = Translator(engine, tokenizer, limits, tag)
    [[found]] = ours.translate([line])
    assert all(0 < len(segment) <= longest for segment in engine.segments)
    assert all(segment[: len(prefix)] == prefix for segment in engine.segments)
    # A character may be spelt in bytes of two segments: tokens are joined before they are decoded.
    together = tokenizer.decode(
        [id for segment in engine.segments for id in segment[len(prefix) :]]
    )
    assert together.replace(" ", "") == clean(line).replace(" ", "")
    texts = [clean(tag + sentence) for sentence in ours.segmenter.splitter(clean(line), "")]
    assert bool(found.notes) == any(len(ids) > longest for ids in tokenizer.encode(texts))


def test_joined_translations_are_scored_as_one_and_the_best_come_first(bpe):
    ours = Translator(Recorder(3, 0.7), bpe, Limits(split=True, longest=5))
    [found] = ours.translate([" ".join(TEXT[:2])])
    segments = ours.engine.segments
    length = sum(len(segment) + 1 for segment in segments)
    assert [t.log_probability for t in found] == [-float(len(segments) * n) for n in (1, 2, 3)]
    lp = penalty(length, ours.engine.config)
    assert [t.score for t in found] == pytest.approx([t.log_probability / lp for t in found])


@pytest.mark.parametrize(
    "decode", [{"n_best": 2}, {"do_sample": True, "n_best": 3}, {"max_length": 1}], ids=str
)
@pytest.mark.parametrize(
    ("prefix", "longest"), [("Lo, mi \ufb01", None), ("漢字 ", 4), (" ka  lo mi nu ", 4)]
)
def test_every_translation_begins_with_the_target_prefix_once(bpe, prefix, longest, decode):
    lines = ["ka", "", TEXT[0], " \t", "漢字\0", " ".join(TEXT[:3])]
    plain = translator(bpe, Limits(longest is not None, longest), **decode).translate(lines)
    found = translator(bpe, Limits(longest is not None, longest), prefix, **decode).translate(lines)
    for line, translations, without in zip(lines, found, plain, strict=True):
        # With a prefix as long as a translation may be there is no second one.
        assert 1 <= len(translations) <= len(without)
        for translation in translations:
            assert translation.text.startswith(canonical(prefix) if line.strip() else "")
            assert translation.text.count(canonical(prefix)) == bool(line.strip())
