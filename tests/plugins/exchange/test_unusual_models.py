"""For every key of a model, an unusual value: refused, or translated as by torch."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("ctranslate2")

from nmt.config import (
    EOS,
    DecodeConfig,
    ModelConfig,
    NMTError,
    Program,
    TokenizerConfig,
    exported_settings,
)
from nmt.model import Transformer
from nmt.plugins.exchange import ctranslate2, huggingface
from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine
from nmt.plugins.exchange.supported import CTRANSLATE2, HUGGINGFACE
from nmt.search import TorchEngine
from nmt.text import Tokenizer, train_tokenizer
from nmt.translation import with_engine
from tests.conftest import save_model
from tests.helpers.options import translator_options

SIZE = 300
GREEDY = DecodeConfig(beam_size=1, max_extra_length=9)
USUAL = {
    "encoder_layers": 1,
    "decoder_layers": 2,
    "d_model": 16,
    "d_ff": 16,
    "heads": 2,
    "dropout": 0.0,
}
UNUSUAL: dict[str, list[Any]] = {
    "name": ["other"],
    "encoder_layers": [3],
    "decoder_layers": [1, 4],
    "d_model": [6, 32],
    "d_ff": [7, 48],
    "heads": [1, 16],
    "d_k": [3],
    "d_v": [5],
    "attention": ["dot_product", "additive"],
    "attention_window": [2],
    "decoder": ["ssru"],
    "dropout": [0.7],
    "checkpointing": [True],
    "attention_bias": [True],
    "activation": ["swish", "gelu", "quick_gelu"],
    "tied_embeddings": [False],
    "source_vocabulary_size": [SIZE],
    "source_end": [False],
    "zero_start": [True],
    "end_start": [True],
    "target_tags": [True],
    "first_position": [3],
    "embedding_norm": [True],
    "untrained": [3],
    "padding_probability": [False],
    "output_bias": [True],
    "positions": ["learned", "tensor2tensor"],
    "max_positions": [3000],
    "norm": ["pre"],
    "norm_epsilon": [0.3],
}
CASES = [(key, value) for key, values in UNUSUAL.items() for value in values]
LINES = ["ka lo", "nu pe ri so tu va we", "we we we mi"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    lines = ["ka lo mi", "nu pe ri so", "tu va we"] * 20
    trained = train_tokenizer(lines, TokenizerConfig("bpe", SIZE))
    assert trained.vocabulary_size == SIZE
    return trained


@pytest.fixture(params=CASES, ids=lambda case: f"{case[0]}={case[1]}")
def network(request, tokenizer) -> Transformer:
    """A model with an unusual value, in which every weight matters."""
    key, value = request.param
    torch.manual_seed(4)
    config = ModelConfig(**{"name": "x", **USUAL, key: value})
    model = Transformer(config, tokenizer.vocabulary_size).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return model


def test_every_key_has_an_unusual_value():
    usual = ModelConfig(name="x", **USUAL)
    assert UNUSUAL.keys() == {field.name for field in fields(ModelConfig)}
    assert all(value != getattr(usual, key) for key, value in CASES)


def by_transformers(export: Path, sources: list[list[int]]) -> list[list[int]]:
    """Greedy translations, limited to the same lengths as nmt's."""
    transformers = pytest.importorskip("transformers")
    loader = transformers.AutoModelForSeq2SeqLM
    model = loader.from_pretrained(str(export), local_files_only=True).eval()
    tokens = []
    for source in sources:
        ids = torch.tensor([[*source, EOS]])
        options = {"num_beams": 1, "length_penalty": None, "early_stopping": None}
        longest = ids.shape[1] + GREEDY.max_extra_length + 1
        [row] = model.generate(ids, max_length=longest, **options)
        tokens.append([token for token in row.tolist() if token > EOS])
    return tokens


def by_ctranslate2(
    folder: Path, export: Path, sources: list[list[int]], prefixes: list[list[int]]
) -> list[list[int]]:
    engine = CTranslate2Engine(folder, export, GREEDY, threads=1)
    return [row[0].tokens for row in engine.search(sources, prefixes)]


def is_refused(program: Program, model: ModelConfig) -> bool:
    settings = exported_settings(model, asdict(TokenizerConfig("bpe", SIZE)), "files", [])
    return any(program.problems(settings))


@pytest.mark.slow
def test_program_refuses_an_unusual_model_or_translates_as_torch(network, tokenizer, tmp_path):
    folder = save_model(tmp_path / "model", network, tokenizer)
    sources = tokenizer.encode(LINES)
    # With target_tags, a search is given the first token.
    prefixes = [[EOS + 9] if network.config.target_tags else []] * len(sources)
    rows = TorchEngine([network], GREEDY).search(sources, prefixes)
    expected = [row[0].tokens for row in rows]
    theirs = tmp_path / "ctranslate2"
    if is_refused(CTRANSLATE2, network.config):
        with pytest.raises(NMTError, match=r"^model\."):
            ctranslate2.write(folder, theirs, "float32")
        chosen = with_engine(translator_options(str(folder)), lambda notice: None)
        assert chosen.compute.engine == "torch"
    else:
        ctranslate2.write(folder, theirs, "float32")
        assert by_ctranslate2(folder, theirs, sources, prefixes) == expected
    theirs = tmp_path / "huggingface"
    if is_refused(HUGGINGFACE, network.config):
        with pytest.raises(NMTError, match=r"^model\."):
            huggingface.write(folder, theirs)
        assert not theirs.exists()
    else:
        huggingface.write(folder, theirs)
        assert by_transformers(theirs, sources) == expected
