"""What else could stand at a word: against searches that are forced by hand, with a random model."""

import random

import numpy as np
import pytest
import torch

from nmt.config import BOS, PAD, UNK, DecodeConfig, ModelConfig, TokenizerConfig
from nmt.model import Transformer
from nmt.plugins.serve.alternatives import find_alternatives, words_after_change
from nmt.search import Hypothesis, TorchEngine, pad_source
from nmt.search.beam_search import pad
from nmt.text import META, TARGET, Tokenizer, train_tokenizer
from nmt.translation import Line, Translator
from nmt.translation.segments import Limits, text

WORDS = ["ka", "lo", "mi", "nu.", "Pe", "ri", "so,", "tu", "va", "we"]
LINES = ["ka lo mi nu. Pe", "ri so, tu", "va we ka lo mi ri", "tu"]
COUNT = 4
CPU = torch.device("cpu")


@pytest.fixture(scope="module", params=["bpe", "wordpiece"])
def tokenizer(request) -> Tokenizer:
    draw = random.Random(1)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(200)]
    return train_tokenizer(lines, TokenizerConfig(kind=request.param, vocabulary_size=600))


@pytest.fixture(scope="module")
def models(tokenizer) -> list[Transformer]:
    """Two that have seen a few lines of words, so that they write several words."""
    torch.manual_seed(3)
    config = ModelConfig(name="x", encoder_layers=1, decoder_layers=1, d_model=32, d_ff=32, heads=2, dropout=0.0)
    models, draw = [Transformer(config, tokenizer.vocabulary_size) for _ in range(2)], random.Random(2)
    for model in models:
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        for _ in range(60):
            lines = tokenizer.encode([" ".join(draw.choices(WORDS, k=draw.randint(2, 6))) for _ in range(32)])
            inputs, outputs = pad([[BOS, *ids] for ids in lines], CPU), pad_source(lines, CPU)
            logits = model(outputs, inputs)
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(logits.flatten(0, 1), outputs.flatten(), ignore_index=PAD).backward()
            optimizer.step()
    return models


def translator(models, tokenizer, limits: Limits | None = None, target_prefix: str = "", **settings) -> Translator:
    decode = DecodeConfig(**{"beam_size": 2, "max_extra_length": 6, **settings})
    return Translator(TorchEngine(models, decode), tokenizer, limits or Limits(), target_prefix=target_prefix)


def befores(words: list[str]) -> list[str]:
    return [" ".join(words[:number]) for number in range(len(words))]


@pytest.mark.parametrize("beam_size", [1, 3])
def test_the_translation_is_among_the_alternatives_at_each_of_its_words(models, tokenizer, beam_size):
    ours, places = translator(models, tokenizer, beam_size=beam_size), 0
    for line in LINES:
        words = ours.translate([line])[0][0].text.split()
        for before in befores(words):
            found, places = find_alternatives(ours, line, before, COUNT), places + 1
            assert " ".join(words) in [alternative.translation for alternative in found]
    assert places > 8


def by_hand(ours: Translator, line: str, before: str, known: list[int]) -> list[tuple[str, str, float]]:
    """The alternatives, of which each is searched with its prefix alone, from all tokens that begin a word."""
    tokenizer, [source] = ours.tokenizer, ours.tokenizer.encode([ours.tokenizer.clean(line)])
    decoded = [known[:n] for n in range(len(known) + 1) if text(tokenizer, known[:n]) == before]
    # Blanks of their own belong to the word after them.
    forced = next(p for p in decoded if not known[len(p) :] or tokenizer.subwords(known)[len(p)][:1] == META or not p)
    inputs = torch.tensor([[1, *forced]]), torch.tensor([[*source, 2]])
    with torch.no_grad():
        each = [model(inputs[1], inputs[0])[0, -1].softmax(0) for model in ours.engine.models]
    p = (sum(each) / len(each)).tolist()
    own = known[len(forced)] if len(forced) < len(known) else None
    ranked = sorted(range(UNK + 1, len(p)), key=lambda token: -p[token])
    begin = [token for token in ranked if not forced or tokenizer.subwords([token])[0].startswith(META)]
    found: dict[str, tuple[str, str, float]] = {}
    for token in sorted(begin[: 2 * COUNT], key=lambda token: token != own):
        tokens = known
        if token != own:
            [[best, *_]] = ours.engine.search([source], [[*forced, token]])
            tokens = best.tokens
        whole = text(tokenizer, tokens)
        if (after := whole.split()[len(before.split()) :]) and len(found) < COUNT:
            found.setdefault(after[0], (after[0], whole, p[token]))
    return sorted(found.values(), key=lambda each: -each[2])


@pytest.mark.parametrize("beam_size", [1, 3])
def test_alternatives_are_what_forcing_each_first_token_by_hand_finds(models, tokenizer, beam_size):
    ours = translator(models, tokenizer, beam_size=beam_size)
    for line in LINES[:3]:
        [[best, *_]] = ours.engine.search([tokenizer.encode([line])[0]], [[]])
        for before in befores(text(tokenizer, best.tokens).split()):
            found = find_alternatives(ours, line, before, COUNT)
            expected = by_hand(ours, line, before, best.tokens)
            assert [(each.word, each.translation) for each in found] == [(word, whole) for word, whole, _ in expected]
            assert [each.probability for each in found] == pytest.approx([p for *_, p in expected], abs=1e-5)


def test_words_are_distinct_and_follow_what_was_before_also_where_the_model_would_not_begin_so(models, tokenizer):
    ours = translator(models, tokenizer)
    for before in ("", "ka", "we va", "Pe nu. ri"):
        found = find_alternatives(ours, LINES[0], before, COUNT)
        assert len({each.word for each in found}) == len(found) > 1
        for each in found:
            words = each.translation.split()
            assert (words[: len(before.split())], words[len(before.split())]) == (before.split(), each.word)
            assert 0 < each.probability < 1


def test_there_are_none_beyond_the_longest_translation_and_of_an_empty_line(models, tokenizer):
    ours = translator(models, tokenizer)
    assert find_alternatives(ours, LINES[0], "ka lo " * 2000, COUNT) == []
    assert find_alternatives(ours, "", "", COUNT) == []
    assert find_alternatives(ours, LINES[0], "", 0) == []


def test_only_the_segment_of_the_word_is_searched_again(models, tokenizer):
    ours = translator(models, tokenizer, Limits(True, longest=8, language="en"))
    line = "ka lo mi. Va we tu so. Ri mi ka."
    segments = ours.segmenter.segment([Line(line)])[0]
    assert len(segments) == 3
    parts = [ours.translate([segment.text])[0][0].text.split() for segment in segments]
    assert all(parts)
    for index, part in enumerate(parts):
        before, after = (" ".join(map(" ".join, some)).split() for some in (parts[:index], parts[index + 1 :]))
        for number in range(len(part)):
            found = find_alternatives(ours, line, " ".join([*before, *part[:number]]), COUNT)
            alone = find_alternatives(ours, segments[index].text, " ".join(part[:number]), COUNT)
            expected = [(each.word, " ".join([*before, *each.translation.split(), *after])) for each in alone]
            assert [(each.word, each.translation) for each in found] == expected


class Echo:
    """An engine that writes what it reads, but for the prefix, and thinks that `we`, `ka` and `tu` are likely next."""

    config = DecodeConfig()

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def search(self, sentences, prefixes, constraints=None):
        return [[Hypothesis([*p, *ids[len(p) :]], -1.0, -0.5)] for p, ids in zip(prefixes, sentences, strict=True)]

    def next_token(self, pair):
        logp = np.full(self.tokenizer.vocabulary_size, -6.0, np.float32)
        for word, p in (("we", -1.0), ("ka", -2.0), ("tu", -3.0)):
            logp[self.tokenizer.encode([f"lo {word}"], TARGET)[0][-1]] = p
        return logp


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    draw = random.Random(1)
    return train_tokenizer(
        [" ".join(draw.choices(WORDS, k=draw.randint(1, 9))) for _ in range(200)], TokenizerConfig("bpe", 340)
    )


def words_at(ours: Translator, line: str, before: str) -> list[str]:
    return [each.word for each in find_alternatives(ours, line, before, 3)]


def test_a_word_that_was_copied_or_is_demanded_has_none_and_the_words_around_it_have(bpe):
    ours = Translator(Echo(bpe), bpe, Limits(characters=frozenset("".join(WORDS) + " ")))
    line = "ka \u6f22\u5b57 lo mi"
    assert ours.translate([line])[0][0].text == line
    assert words_at(ours, line, "ka \u6f22\u5b57 lo") == ["we", "ka", "mi"]
    assert words_at(ours, line, "") == ["we", "ka", "tu"]
    assert words_at(ours, line, "ka") == []
    demanding = Translator(Echo(bpe), bpe, target_prefix="va ri")
    assert demanding.translate(["va ri mi"])[0][0].text == "va ri mi"
    assert [words_at(demanding, "va ri mi", before) for before in ("", "va")] == [[], []]
    assert words_at(demanding, "va ri mi", "va ri") == ["we", "ka", "mi"]


@pytest.mark.parametrize(
    ("before", "text_of_first"),
    [
        ("ka lo nu.", "ka lo nu. we ri nu."),  # all of the first sentence, as it is
        ("ka tu nu. Pe", "ka tu nu. Pe we nu."),  # the first sentence was changed; in the second
        ("ka tu mi nu. Pe ri", "ka tu mi nu. Pe ri we."),  # and is longer now
        ("we nu.", "we nu. we ri nu."),  # shorter, and at the first word of the second
        ("ka tu", "ka tu we. Pe ri nu."),  # in the changed sentence itself
    ],
)
def test_sentences_that_were_changed_before_are_kept(bpe, before, text_of_first):
    ours = Translator(Echo(bpe), bpe, Limits(True, longest=8, language="en"))
    line = "ka lo nu. Pe ri nu."
    assert len(ours.segmenter.segment([Line(line)])[0]) == 2
    found = find_alternatives(ours, line, before, 3)
    assert found[0].translation == text_of_first


@pytest.mark.parametrize(
    ("changed", "start", "count"),
    [
        (["x", "b."], 2, 0),
        (["x", "b.", "C"], 2, 1),
        (["x", "b.", "C", "d."], 2, 2),
        (["x", "C"], 2, None),
        (["x", "b!", "C"], 2, None),
        (["x", "b.", "D"], 2, None),
        (["x", "b."], 4, None),
    ],
)
def test_words_after_a_changed_sentence_by_hand(changed, start, count):
    assert words_after_change(changed, ["a", "b.", "C", "d."], start) == count
