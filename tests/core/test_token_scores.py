"""Word alignments and token scores."""

import random
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from nmt.config import DecodeConfig, ModelConfig, TokenizerConfig
from nmt.model import Transformer
from nmt.search import Hypothesis, TokenScores, TorchEngine
from nmt.text import Tokenizer, clean, train_tokenizer, word_spans
from nmt.translation import Limits, Segment, Translator
from nmt.translation.alignment import Describer
from nmt.translation.joining import join
from nmt.translation.spans import Words, token_spans
from tests.core.test_segments import Echo

WORDS = ["ka", "lo", "mi", "nu.", "Pe", "ri", "so,", "tu", "va", "we"]
ODD = [
    "  zwei  \u3000 W\u00f6rter ",
    "\u00b4a b\u00b4c d",
    "\ufb01n\u2160 \u212b",
    "\u2603 \u6f22\u5b57 \U0001f600!",
    "a\u2581b \ue000 c",
]


@pytest.fixture(scope="module", params=["bpe", "unigram", "wordpiece"])
def tokenizer(request) -> Tokenizer:
    draw = random.Random(1)
    lines = []
    for _ in range(200):
        lines.append(" ".join(draw.choices(WORDS, k=draw.randint(1, 9))))
    return train_tokenizer(lines, TokenizerConfig(kind=request.param, vocabulary_size=620))


def words_by_decoding_prefixes(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """The words of tokens, in quadratic time."""
    last = max(len(tokenizer.decode(ids).split()) - 1, 0)
    words = []
    for end in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:end])
        count = len(text.split())
        # A blank at the end belongs to the next word.
        word = count if text[-1:].isspace() else max(count - 1, 0)
        words.append(min(word, last))
    return words


def words_of_tokens(tokenizer: Tokenizer, ids: list[int], text: str) -> list[range]:
    words = Words(text)
    return [words.at(*span) for span in token_spans(tokenizer, ids, text)]


@pytest.mark.parametrize("seed", range(12))
def test_token_spans_agree_with_decoding_every_prefix(tokenizer, seed):
    draw = random.Random(seed)
    line = "".join(draw.choices("kalomi .éαя한😀काش   ", k=60))
    text = clean(line)
    ids = tokenizer.encode([text])[0]
    words = words_of_tokens(tokenizer, ids, text)
    assert all(len(row) == 1 for row in words)
    assert [row[0] for row in words] == words_by_decoding_prefixes(tokenizer, ids)


@pytest.mark.parametrize("seed", range(12))
def test_token_spans_of_random_tokens_are_in_the_text(tokenizer, seed):
    draw = random.Random(seed)
    ids = draw.choices(range(tokenizer.vocabulary_size), k=draw.randint(1, 60))
    text = tokenizer.decode(ids)
    spans = token_spans(tokenizer, ids, text)
    assert len(spans) == len(ids)
    assert all(0 <= begin <= end <= len(text) for begin, end in spans)
    words = range(len(word_spans(text)))
    for row in words_of_tokens(tokenizer, ids, text):
        assert all(word in words for word in row)


class Spelling:
    """A vocabulary of the given tokens."""

    def __init__(self, *tokens: str) -> None:
        self.tokens = tokens

    def subwords(self, ids, side):
        return [self.tokens[id] for id in ids]

    def decode(self, ids, side):
        return "".join(self.subwords(ids, side))


def test_a_first_token_that_is_not_in_the_text_does_not_hide_the_next():
    assert token_spans(Spelling("xyz", "lo"), [0, 1], "lo") == [(0, 0), (0, 2)]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "wordpiece"])
@pytest.mark.parametrize(
    "line",
    [
        "設定ファイルを開きます。 新しいDebian 12の設定を見る。",
        "彼は「漢字」と言った。漢漢漢",
        "请打开“文件”（新）。",
        "ไฟล์ใหม่ น้ำ ดื่ม",
        "か\u3099ロ \U0001f600を見る",
        "\u2581 漢",
        "\ue000 漢",
    ],
)
def test_token_spans_cover_the_text(kind, line):
    lines = ["設定ファイルを開きます。", "新しいファイルを見る。", "请打开文件。", "ไฟล์ใหม่"] * 20
    tokenizer = train_tokenizer(lines, TokenizerConfig(kind=kind, vocabulary_size=620))
    text = clean(line)
    ids = tokenizer.encode([text])[0]
    spans = token_spans(tokenizer, ids, text)
    covered = set[int]()
    for begin, end in spans:
        covered.update(range(begin, end))
    assert covered >= {index for index, sign in enumerate(text) if not sign.isspace()}
    for id, (begin, end) in zip(ids, spans, strict=True):
        piece = tokenizer.decode([id]).strip()
        is_escape = piece in ("\ue000", "0", "1")
        if "\ufffd" not in piece and not is_escape:
            assert text[begin:end].strip() == piece
        elif not is_escape and kind != "wordpiece":
            assert len(text[begin:end].strip()) <= 1


def test_the_tokens_of_a_word_add_up_to_its_score(tokenizer):
    line = "漢字 ka"  # the bytes of each character are several tokens
    [[best]] = Translator(Echo(), tokenizer, Limits(), details=True).translate([line])
    assert best.details.alignment == [(0, 0), (1, 1), (2, 2)]
    bytes_of_character = 3
    assert best.details.word_log_probabilities[1] == -bytes_of_character


def test_a_token_is_aligned_with_all_its_words():
    lines = ["設定を開く"] * 50
    whole = train_tokenizer(lines, TokenizerConfig(kind="bpe", vocabulary_size=300))
    [[best]] = Translator(Echo(), whole, Limits(), details=True).translate(lines[:1])
    assert best.details.tokens == ["▁設定を開く"]
    assert best.details.alignment == [*product(range(5), range(5))]
    assert best.details.word_log_probabilities == pytest.approx([-0.2] * 5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "last"),
    [
        ("ka lo. " * 3000, 5999),
        ("a" * 20_000, 0),
        ("ka " + "x" * 20_000, 1),
        ("漢字" * 2000, 3999),
    ],
)
def test_token_spans_of_very_long_lines_take_linear_time(tokenizer, line, last):
    text = clean(line)
    ids = tokenizer.encode([text])[0]
    assert words_of_tokens(tokenizer, ids, text)[-1] == range(last, last + 1)


@pytest.mark.parametrize("prefix", ["", "<2de> ", "to de: "])
@pytest.mark.parametrize("line", ["ka lo mi", "tuva wekalo xyz ka", *ODD])
def test_source_words_are_counted_in_the_raw_line(tokenizer, line, prefix):
    segment = Segment(tokenizer.encode([clean(prefix + line)])[0], line)
    words = Describer(tokenizer, line, prefix, tokenizer.clean).source_words(segment)
    rows = [*zip(segment.ids, words, strict=True)]
    of_prefix = [id for id, row in rows if not row]
    assert tokenizer.decode(of_prefix).strip() == prefix.strip()
    for word, (begin, end) in enumerate(word_spans(line)):
        of_word = [id for id, row in rows if word in row]
        assert tokenizer.decode(of_word).strip() == clean(line[begin:end])


def test_a_language_tag_is_not_a_source_word():
    config = TokenizerConfig(kind="bpe", vocabulary_size=400)
    tokenizer = train_tokenizer(["ka lo mi"] * 50, config, tags=["<2de>"])
    line = "ka lo mi"
    segment = Segment(tokenizer.encode(["<2de> ka lo mi"])[0], line)
    words = Describer(tokenizer, line, "<2de> ", tokenizer.clean).source_words(segment)
    assert words == [range(0), range(1), range(1, 2), range(2, 3)]


@pytest.mark.parametrize(
    ("target", "pairs"),
    [
        ("\u6f22", [(0, 0)]),
        ("so", [(1, 0)]),
    ],
)
def test_only_scripts_with_blanks_align_with_punctuation(target, pairs):
    config = TokenizerConfig(kind="bpe", vocabulary_size=300)
    tokenizer = train_tokenizer(["ka lo. so", "\u6f22"] * 50, config)
    line = "ka lo."
    ids = tokenizer.encode([line])[0]
    tokens = tokenizer.encode([target], 1)[0]
    # Every target token attends most to the period, and then to the first word.
    weights = np.zeros((len(tokens), len(ids)), dtype=np.float32)
    weights[:, 0] = 0.4
    weights[:, -1] = 0.6
    scores = TokenScores([-1.0] * (len(tokens) + 1), weights)
    segments = [Segment(ids, line)]
    part = Hypothesis(tokens, -1.0, -1.0, scores)
    joined = join(tokenizer, segments, [part], [])
    describer = Describer(tokenizer, line, "", tokenizer.clean)
    assert describer.describe(segments, [part], joined).alignment == pairs


class Halves(Echo):
    """An engine that translates each source into itself and into its first half."""

    def search(self, sentences, prefixes, constraints=None):
        results = []
        for ids in sentences:
            half = ids[: len(ids) // 2]
            results.append([Hypothesis(ids, -1.0, -1.0), Hypothesis(half, -2.0, -2.0)])
        return results


@pytest.mark.parametrize("longest", [3, 5, 9, 1000])
def test_alignments_of_segments_refer_to_the_whole_line(tokenizer, longest):
    lines = ["  ka lo mi nu.  Pe ri so, tu nu.\tWe va. Ka lo.", "", "Tu va.Ka lo. \u6f22\u5b57 mi"]
    limits = Limits(split=longest < 1000, longest=longest, language="en")
    translator = Translator(Halves(), tokenizer, limits, source_prefix="x ", details=True)
    for line, (best, second) in zip(lines[::2], translator.translate(lines)[::2], strict=True):
        source_words = range(len(word_spans(line)))
        for translation in (best, second):
            details = translation.details
            target_words = range(len(word_spans(translation.text)))
            assert len(details.token_log_probabilities) == len(details.tokens) + 1
            assert all(source in source_words for source, _ in details.alignment)
            assert all(target in target_words for _, target in details.alignment)
        aligned = sorted({source for source, _ in best.details.alignment})
        assert aligned == [*source_words]
        if longest == 1000:
            ids = tokenizer.encode([clean("x " + line)])[0]
            assert best.details.tokens == tokenizer.subwords(ids)
            # The first target word is the prefix.
            pairs = [(source, target) for source, target in best.details.alignment if target]
            assert pairs == [(word, word + 1) for word in source_words]


@pytest.mark.parametrize(
    "settings", [{}, {"n_best": 3}, {"do_sample": True, "temperature": 0.3, "n_best": 2}]
)
@pytest.mark.parametrize("longest", [None, 4])
def test_token_log_probabilities_add_up(tokenizer, settings, longest):
    torch.manual_seed(1)
    config = ModelConfig(
        name="tiny", encoder_layers=1, decoder_layers=2, d_model=16, d_ff=16, heads=2
    )
    models = [Transformer(config, tokenizer.vocabulary_size) for _ in range(2)]
    decode = DecodeConfig(beam_size=3, max_extra_length=4, **settings)
    limits = Limits(split=longest is not None, longest=longest, language="en")
    translator = Translator(TorchEngine(models, decode), tokenizer, limits, "x ", "lo")
    lines = ["ka lo mi nu. Pe ri", "", "so, tu"]
    plain = translator.translate(lines)
    described = replace(translator, details=True).translate(lines)
    for translations, with_details in zip(plain, described, strict=True):
        for one, other in zip(translations, with_details, strict=True):
            assert one == replace(other, details=None)
            total = sum(other.details.token_log_probabilities)
            assert total == pytest.approx(other.log_probability, abs=1e-4)
