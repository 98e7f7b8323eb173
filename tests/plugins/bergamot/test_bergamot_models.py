"""Unusual values of every key of a model: refused, or translated by the engine as by torch."""

from dataclasses import fields
from typing import Any

import pytest
import torch
import yaml

from nmt.config import DecodeConfig, ModelConfig, TokenizerConfig, exported_settings, settings_of
from nmt.model import Transformer
from nmt.plugins.bergamot import container
from nmt.plugins.bergamot.calibration import scales
from nmt.plugins.bergamot.supported import BERGAMOT
from nmt.plugins.bergamot.usage import SPELLED
from nmt.plugins.bergamot.vocabulary import vocabularies
from nmt.plugins.bergamot.weights import marian_settings, marian_weights
from nmt.search import TorchEngine
from nmt.text import Tokenizer, train_tokenizer

SIZE = 320
LINES = ["ka lo", "nu pe ri so tu va we", "we we we mi"]
SHORT = DecodeConfig(beam_size=1, max_extra_length=0)
USUAL = {
    "encoder_layers": 1,
    "decoder_layers": 2,
    "d_model": 16,
    "d_ff": 16,
    "heads": 2,
    "dropout": 0.0,
    "decoder": "ssru",
    "positions": "tensor2tensor",
    "zero_start": True,
    "norm_epsilon": 1e-6,
}
SUPPORTED: dict[str, list[Any]] = {
    "checkpointing": [True],
    "name": ["other"],
    "encoder_layers": [3],
    "decoder_layers": [1, 4],
    "d_model": [32],
    "d_ff": [48],
    "heads": [1, 16],
    "dropout": [0.7],
    "attention_bias": [True],
    "padding_probability": [False],
    "output_bias": [True],
    "max_positions": [3000],
}
REFUSED: dict[str, list[Any]] = {
    "d_model": [24],
    "d_ff": [7],
    "d_k": [3],
    "d_v": [5],
    "attention": ["dot_product", "additive"],
    "attention_window": [2],
    "decoder": ["attention"],
    "activation": ["swish", "gelu", "quick_gelu"],
    "tied_embeddings": [False],
    "source_vocabulary_size": [SIZE],
    "source_end": [False],
    "zero_start": [False],
    "end_start": [True],
    "target_tags": [True],
    "first_position": [2],
    "embedding_norm": [True],
    "untrained": [3],
    "positions": ["sinusoidal", "learned"],
    "norm": ["pre"],
    "norm_epsilon": [1e-5],
}


def changes(values: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Every value alone."""
    results = []
    for key, unusual in values.items():
        results += [{key: value} for value in unusual]
    return results


def problems(model: ModelConfig) -> list[str]:
    settings = exported_settings(model, vars(TokenizerConfig("unigram", SIZE)), "files", [])
    return [problem.key for problem in BERGAMOT.problems(settings)]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = ["ka lo mi", "nu pe ri so", "tu va we"] * 20
    return train_tokenizer(lines, TokenizerConfig("unigram", SIZE))


def test_every_key_has_an_unusual_value():
    assert SUPPORTED.keys() | REFUSED.keys() == {field.name for field in fields(ModelConfig)}
    usual = settings_of("model", ModelConfig(name="x", **USUAL))
    for change in (*changes(SUPPORTED), *changes(REFUSED)):
        [(key, value)] = change.items()
        assert usual[f"model.{key}"] != value


@pytest.mark.parametrize("change", changes(REFUSED), ids=str)
def test_export_refuses_what_the_engine_lacks(change):
    [key] = change
    settings = {"name": "x", **USUAL, **change}
    if key == "end_start":
        # Decoding starts from one of the two.
        settings["zero_start"] = False
    assert f"model.{key}" in problems(ModelConfig(**settings))


@pytest.mark.slow
@pytest.mark.parametrize("change", changes(SUPPORTED), ids=str)
def test_engine_translates_unusual_models_as_torch(change, tokenizer, monkeypatch):
    """The engine's translations, which may be longer, begin with nmt's."""
    fxtranslate = pytest.importorskip("fxtranslate")
    monkeypatch.setattr(container, "is_rounded", lambda name: False)
    config = ModelConfig(**{"name": "x", **USUAL, **change})
    assert not problems(config)
    torch.manual_seed(4)
    model = Transformer(config, tokenizer.vocabulary_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    sources = tokenizer.encode(LINES)
    [vocabulary] = vocabularies(tokenizer)
    weights = marian_weights(model, [vocabulary])
    weights |= scales(model, sources, is_shared=True)
    settings = yaml.safe_dump(marian_settings(config, [vocabulary]))
    content = container.container(weights, settings)
    pieces = vocabulary.model.SerializeToString()
    engine = fxtranslate.Translator(content, pieces, pieces, None)
    names: dict[str, Any] = {}
    exec(f"import re\n{SPELLED}", names)
    translations = TorchEngine([model], SHORT).search(sources, [[]] * len(LINES))
    for line, [hypothesis] in zip(LINES, translations, strict=True):
        begin = tokenizer.decode(hypothesis.tokens).rstrip("\ufffd")
        assert names["spelled"](engine.translate(line)).startswith(begin)
