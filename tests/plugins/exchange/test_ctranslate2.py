"""CTranslate2 with converted models, compared with the torch engine."""

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("ctranslate2")

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig, NMTError, TokenizerConfig
from nmt.model import Transformer, load_model
from nmt.plugins.exchange.ctranslate2 import write
from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine
from nmt.search import TorchEngine
from nmt.text import load_tokenizer, train_tokenizer
from nmt.translation import RefusedLine, Translator
from nmt.translation.limits import Limits
from tests.conftest import save_model

SYLLABLES = ["ba", "dem", "ki", "lo", "nu", "schi", "ße", "tra"]
KINDS = {
    "post": {},
    "pre, uneven": {
        "norm": "pre",
        "tied_embeddings": False,
        "encoder_layers": 1,
        "decoder_layers": 3,
    },
    "learned, one head": {"positions": "learned", "max_positions": 40, "heads": 1},
    "biases": {
        "attention_bias": True,
        "output_bias": True,
        "activation": "swish",
        "norm_epsilon": 1e-3,
    },
    "zero start, no source end": {
        "zero_start": True,
        "activation": "quick_gelu",
        "positions": "tensor2tensor",
        "source_end": False,
    },
    "deep, own source matrix": {
        "decoder_layers": 4,
        "source_vocabulary_size": 320,
        "activation": "gelu",
        "padding_probability": False,
    },
}


def random_text(count: int) -> list[str]:
    draw = random.Random(1)
    lines = []
    for _ in range(count):
        words = ["".join(draw.choices(SYLLABLES, k=2)) for _ in range(draw.randint(1, 6))]
        lines.append(" ".join(words))
    return lines


def learn_to_reverse(model: Transformer) -> None:
    """Train until the model has learned something, but is not certain."""
    generator = torch.Generator().manual_seed(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        words = torch.randint(UNK + 1, model.vocabulary_size, (32, 6), generator=generator)
        end = torch.full((32, 1), EOS)
        start = torch.full((32, 1), BOS)
        target = torch.cat((words.flip(1)[:, :4], end), dim=1)
        logits = model(torch.cat((words, end), dim=1), torch.cat((start, target[:, :-1]), dim=1))
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), label_smoothing=0.1
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def make(folder: Path, **kind) -> Path:
    """A model directory with its conversions, float32/ and int8/, beside it."""
    tokenizer = train_tokenizer(random_text(60), TokenizerConfig("bpe", 320))
    torch.manual_seed(2)
    settings = {
        "encoder_layers": 2,
        "decoder_layers": 2,
        "d_model": 32,
        "d_ff": 48,
        "heads": 4,
        "dropout": 0.0,
    }
    model = Transformer(ModelConfig(name="x", **{**settings, **kind}), tokenizer.vocabulary_size)
    learn_to_reverse(model)
    save_model(folder / "model", model, tokenizer)
    for precision in ("float32", "int8"):
        write(folder / "model", folder / precision, precision)
    return folder


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request, tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("kind"), **KINDS[request.param])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return make(tmp_path_factory.mktemp("ctranslate2"), **KINDS["pre, uneven"])


@pytest.fixture(scope="module")
def sentences() -> list[list[int]]:
    return train_tokenizer(random_text(60), TokenizerConfig("bpe", 320)).encode(random_text(30))


def by_ctranslate2(
    folder: Path, precision: str = "float32", threads: int = 1, scores: bool = True, **settings
):
    config = DecodeConfig(**{"beam_size": 4, "max_extra_length": 8, **settings})
    return CTranslate2Engine(folder / "model", folder / precision, config, threads, scores)


def both(folder: Path, **settings) -> tuple:
    engine = by_ctranslate2(folder, **settings)
    return TorchEngine([load_model(folder / "model")], engine.config), engine


def searches(
    folder: Path, sentences: list[list[int]], prefixes: list[list[int]] | None = None, **settings
):
    return [
        engine.search(sentences, prefixes or [[]] * len(sentences))
        for engine in both(folder, **settings)
    ]


def assert_same(torch_results, results, least: int = 30) -> None:
    """At least `least` of the 30 lines have the same best translation, with the same score."""
    pairs = [
        (a[0], b[0])
        for a, b in zip(torch_results, results, strict=True)
        if a[0].tokens == b[0].tokens
    ]
    assert len(pairs) >= least
    for expected, hypothesis in pairs:
        assert hypothesis.log_probability == pytest.approx(expected.log_probability, abs=1e-3)
        assert hypothesis.score == pytest.approx(expected.score, abs=1e-3)


def assert_scores_of_forced_decoding(torch_engine, sentences, results) -> None:
    """The log probability of each hypothesis is what torch computes for its tokens."""
    pairs = []
    log_probabilities = []
    for ids, row in zip(sentences, results, strict=True):
        for hypothesis in row:
            pairs.append((ids, hypothesis.tokens))
            log_probabilities.append(hypothesis.log_probability)
    expected = [sum(score.log_probabilities) for score in torch_engine.token_scores(pairs)]
    assert log_probabilities == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize(
    "settings",
    [
        {"beam_size": 1},
        {"length_penalty": 0.0},
        {"length_penalty": 1.0},
        {"length_penalty": 0.6, "length_penalty_kind": "marian"},
        {"n_best": 3},
        {"n_best": 3, "max_extra_length": 0},
    ],
    ids=str,
)
def test_translations_and_scores_are_those_of_torch(kind, sentences, settings):
    expected, results = searches(kind, sentences, **settings)
    assert_same(expected, results, least=29)
    torch_engine, _ = both(kind)
    assert_scores_of_forced_decoding(torch_engine, sentences, results)
    for row in results:
        assert row == sorted(row, key=lambda hypothesis: -hypothesis.score)
    assert {len(row) for row in results} == {settings.get("n_best", 1)}


def test_int8_differs_from_ctranslate2_s_only_in_the_largest_number(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("nmt.plugins.exchange.ctranslate2.LEVELS", 127)
    write(folder / "model", tmp_path / "ours", "int8")
    monkeypatch.setattr(
        "nmt.plugins.exchange.ctranslate2.quantize", lambda spec: spec._quantize("int8")
    )
    write(folder / "model", tmp_path / "theirs", "int8")
    folders = (tmp_path / "ours", tmp_path / "theirs", folder / "int8")
    contents = [(folder / "model.bin").read_bytes() for folder in folders]
    assert contents[0] == contents[1] != contents[2]


def test_symbols_that_are_not_text_are_never_written(folder, sentences, tmp_path):
    """Not even by a model in which padding and unknown symbols are the most probable."""
    model = load_model(folder / "model")
    with torch.no_grad():
        for number in (PAD, UNK):
            model.output.weight[number] = model.output.weight[EOS] * 1.5
    save_model(tmp_path / "model", model, load_tokenizer(folder / "model.spm"))
    write(tmp_path / "model", tmp_path / "float32", "float32")
    engine = by_ctranslate2(tmp_path, n_best=4)
    raw = engine.candidates([(ids, []) for ids in sentences], suppress=False)
    written = set[int]()
    for row in raw:
        written.update(*(candidate.tokens for candidate in row))
    assert written & {PAD, UNK}
    for row in engine.search(sentences, [[]] * len(sentences)):
        for hypothesis in row:
            assert not {PAD, BOS, UNK}.intersection(hypothesis.tokens)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_the_same_without_scores_and_in_any_batch(folder, sentences, beam_size):
    """A greedy search without scores is truncated to each sentence's own maximum length."""
    settings = {"beam_size": beam_size, "max_extra_length": 0}
    scored = by_ctranslate2(folder, threads=3, **settings).search(sentences, [[]] * len(sentences))
    engine = by_ctranslate2(folder, scores=False, **settings)
    results = engine.search(sentences, [[]] * len(sentences))
    assert [h.tokens for h, *_ in results] == [h.tokens for h, *_ in scored]
    assert all(math.isnan(h.score) == (beam_size == 1) for h, *_ in results)
    alone = [engine.search([ids], [[]])[0][0].tokens for ids in sentences]
    assert [h.tokens for h, *_ in results] == alone
    assert beam_size > 1 or any(
        len(tokens) == len(ids) for tokens, ids in zip(alone, sentences, strict=True)
    )


@pytest.mark.parametrize("beam_size", [1, 4])
def test_lines_translated_ahead_are_the_same_and_in_order(folder, beam_size, monkeypatch):
    """Line 23 is too long and refused; others are empty."""
    monkeypatch.setattr("nmt.translation.translator.AHEAD", 3)
    engine = by_ctranslate2(folder, threads=2, beam_size=beam_size)
    translator = Translator(engine, load_tokenizer(folder / "model.spm"), Limits(positions=30))
    lines = [*random_text(20), "", "", random_text(1)[0] * 30, *random_text(5)]

    def texts(ahead: bool) -> list[list[str] | None]:
        """The translations of each line; None if it is refused."""
        results = []
        for row in replace(translator, ahead=ahead).translate_each(lines):
            if isinstance(row, RefusedLine):
                results.append(None)
            else:
                results.append([translation.text for translation in row])
        return results

    expected = texts(ahead=False)
    assert [number for number, row in enumerate(expected, 1) if row is None] == [23]
    assert texts(ahead=True) == expected
    with pytest.raises(RefusedLine, match="line 23: "):
        translator.translate(lines)


def test_search_reports_sentence_that_is_too_long(kind):
    engine = by_ctranslate2(kind)
    words = f"{engine.longest + 1:,} tokens is longer than the {engine.longest:,} positions"
    with pytest.raises(NMTError, match=words):
        engine.search([[5] * engine.longest], [[]])


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_continue_their_own_beginnings_as_by_torch(kind, sentences, beam_size):
    """With a beam only most of them: directly after a prefix, CTranslate2 lets only the best
    hypothesis end, and these models often end there."""
    draw = random.Random(3)
    whole = by_ctranslate2(kind).search(sentences, [[]] * len(sentences))
    prefixes = [row[0].tokens[: draw.randint(0, len(row[0].tokens))] for row in whole]
    assert len(set(map(len, prefixes))) > 1
    expected, results = searches(kind, sentences, prefixes, beam_size=beam_size)
    assert_same(expected, results, least=29 if beam_size == 1 else 20)
    assert [row[0].tokens[: len(p)] for p, row in zip(prefixes, results, strict=True)] == prefixes


def test_any_prefix_is_kept_up_to_the_last_position(folder, sentences):
    """The log probability is that of the whole translation."""
    draw = random.Random(4)
    prefixes = [draw.choices(range(UNK + 1, 300), k=draw.randint(0, 20)) for _ in sentences]
    assert_same(*searches(folder, sentences, prefixes, beam_size=1, max_extra_length=0))
    torch_engine, engine = both(folder, max_extra_length=0, n_best=2)
    results = engine.search(sentences, prefixes)
    for prefix, row in zip(prefixes, results, strict=True):
        for hypothesis in row:
            assert hypothesis.tokens[: len(prefix)] == prefix
    assert_scores_of_forced_decoding(torch_engine, sentences, results)


def test_token_scores_are_those_of_torch(kind, sentences):
    """Also for targets that the model would not write, and for an empty target."""
    pairs = [
        *zip(sentences, reversed(sentences), strict=True),
        (sentences[0], []),
        ([7], sentences[1] * 3),
    ]
    expected, results = (engine.token_scores(pairs) for engine in both(kind, batch_tokens=30))
    for (source, target), one, other in zip(pairs, expected, results, strict=True):
        assert other.log_probabilities == pytest.approx(one.log_probabilities, abs=1e-3)
        assert other.attention.shape == (len(target), len(source))
        np.testing.assert_allclose(other.attention, one.attention, atol=1e-4)
    assert both(kind)[1].token_scores([]) == []


@pytest.mark.parametrize(
    "settings", [{"beam_size": 1}, {"n_best": 3}, {"length_penalty": 0.0, "batch_tokens": 20}]
)
def test_with_search_equals_a_new_engine(folder, sentences, settings):
    prefixes = [[]] * len(sentences)
    for loaded, fresh in zip(both(folder), both(folder, **settings), strict=True):
        before = loaded.search(sentences, prefixes)
        other = loaded.with_search(fresh.config)
        assert other.search(sentences, prefixes) == fresh.search(sentences, prefixes)
        assert loaded.search(sentences, prefixes) == before
    with pytest.raises(NMTError, match=r"decode\.min_length=2"):
        loaded.with_search(DecodeConfig(min_length=2))
