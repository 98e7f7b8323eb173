"""Which words answer which, token by token, in lines as users see them."""

import random
from dataclasses import replace

import pytest
import torch
from test_segments import Echo

from nmt.config import DecodeConfig, ModelConfig, TokenizerConfig
from nmt.model import Transformer
from nmt.search import Hypothesis, TorchEngine
from nmt.text import Tokenizer, clean, train_tokenizer
from nmt.translation import Segment, Translator
from nmt.translation.segments import Describer, Limits, words_of_tokens

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
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(200)]
    return train_tokenizer(lines, TokenizerConfig(kind=request.param, vocabulary_size=620))


def words_by_decoding_all_before(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    """The words of tokens, in quadratic time."""
    words = []
    for end in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[:end])
        words.append(max(len(text.split()) - (not text[-1:].isspace()), 0))
    return [min(word, max(len(tokenizer.decode(ids).split()) - 1, 0)) for word in words]


@pytest.mark.parametrize("seed", range(12))
def test_any_tokens_belong_to_the_words_that_decoding_all_before_them_tells(tokenizer, seed):
    draw = random.Random(seed)
    ids = draw.choices(range(tokenizer.vocabulary_size), k=draw.randint(1, 60))
    assert words_of_tokens(tokenizer, ids) == words_by_decoding_all_before(tokenizer, ids)


def test_a_very_long_line_is_told_word_by_word_in_time(tokenizer):
    for line, last in (("ka lo. " * 3000, 5999), ("a" * 20_000, 0), ("ka " + "x" * 20_000, 1)):
        ids = tokenizer.encode([clean(line)])[0]
        assert words_of_tokens(tokenizer, ids)[-1] == last


@pytest.mark.parametrize("prefix", ["", "<2de> ", "to de: "])
@pytest.mark.parametrize("line", ["ka lo mi", "tuva wekalo xyz ka", *ODD])
def test_source_words_are_those_between_the_blanks_of_the_raw_line(tokenizer, line, prefix):
    segment = Segment(tokenizer.encode([clean(prefix + line)])[0], line)
    words = Describer(tokenizer, line, prefix, tokenizer.clean).of(segment)
    of_prefix = [i for i, word in zip(segment.ids, words, strict=True) if word is None]
    assert tokenizer.decode(of_prefix).strip() == prefix.strip()
    for place, word in enumerate(line.split()):
        spelt = tokenizer.decode([i for i, p in zip(segment.ids, words, strict=True) if p == place])
        assert spelt.strip() == clean(word)


class Halves(Echo):
    """An engine that answers with the source, and with its first half."""

    def search(self, sentences, prefixes, constraints=None):
        return [[Hypothesis(ids, -1.0, -1.0), Hypothesis(ids[: len(ids) // 2], -2.0, -2.0)] for ids in sentences]


@pytest.mark.parametrize("longest", [3, 5, 9, 1000])
def test_lines_in_segments_keep_the_indices_of_the_whole_line(tokenizer, longest):
    lines = ["  ka lo mi nu.  Pe ri so, tu nu.\tWe va. Ka lo.", "", "Tu va.Ka lo. \u6f22\u5b57 mi"]
    limits = Limits(split=longest < 1000, longest=longest, language="en")
    translator = Translator(Halves(), tokenizer, limits, source_prefix="x ", details=True)
    for line, (best, second) in zip(lines[::2], translator.translate(lines)[::2], strict=True):
        for translation in (best, second):
            details = translation.details
            assert len(details.token_log_probabilities) == len(details.tokens) + 1
            assert all(0 <= source < len(line.split()) for source, _ in details.alignment)
            assert all(0 <= target < len(translation.text.split()) for _, target in details.alignment)
        answered = {source: line.split()[source] for source, _ in best.details.alignment}
        assert list(answered) == list(range(len(line.split())))
        if longest == 1000:
            assert best.details.tokens == tokenizer.subwords(tokenizer.encode([clean("x " + line)])[0])
            assert [(s, t) for s, t in best.details.alignment if t] == [(t - 1, t) for t in range(1, len(answered) + 1)]


@pytest.mark.parametrize("settings", [{}, {"n_best": 3}, {"do_sample": True, "temperature": 0.3, "n_best": 2}])
@pytest.mark.parametrize("longest", [None, 4])
def test_token_log_probabilities_add_up_to_that_of_the_translation(tokenizer, settings, longest):
    torch.manual_seed(1)
    config = ModelConfig(name="tiny", encoder_layers=1, decoder_layers=2, d_model=16, d_ff=16, heads=2)
    models = [Transformer(config, tokenizer.vocabulary_size) for _ in range(2)]
    decode = DecodeConfig(beam_size=3, max_extra_length=4, **settings)
    limits = Limits(longest is not None, longest, language="en")
    translator = Translator(TorchEngine(models, decode), tokenizer, limits, "x ", "lo")
    plain = translator.translate(["ka lo mi nu. Pe ri", "", "so, tu"])
    described = replace(translator, details=True).translate(["ka lo mi nu. Pe ri", "", "so, tu"])
    for before, after in zip(plain, described, strict=True):
        for one, other in zip(before, after, strict=True):
            assert one == replace(other, details=None)
            assert sum(other.details.token_log_probabilities) == pytest.approx(other.log_probability, abs=1e-4)
