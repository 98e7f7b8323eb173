"""Configuration: the rules between keys, and a help text for every key."""

import dataclasses
import typing
from typing import Any

import pytest

from nmt import config
from nmt.commands import COMMANDS
from nmt.commands.average import AverageConfig
from nmt.commands.score import ScoreConfig
from nmt.config import (
    BatchingConfig,
    CheckpointConfig,
    DataConfig,
    DecodeConfig,
    ExperimentConfig,
    FilterConfig,
    ModelConfig,
    OptimConfig,
    TokenizerConfig,
    TranslateConfig,
    ValidationConfig,
    as_list,
    field_help,
)
from nmt.errors import NMTError

DATA = {"name": "toy", "kind": "files"}
VOCABULARY = {"kind": "bpe", "vocabulary_size": 300}
CLASSES = [
    *(value for value in vars(config).values() if dataclasses.is_dataclass(value)),
    *(command.config for command in COMMANDS.values()),
]
# A pass-through to Lightning, and a group that is a file of overrides.
SELF_EVIDENT = {"trainer", "experiment"}


@pytest.mark.parametrize(
    ("cls", "values", "key"),
    [
        (FilterConfig, {"max_tokens": 0}, "data.filters.max_tokens=0"),
        (FilterConfig, {"max_ratio": 0.5}, "data.filters.max_ratio=0.5"),
        (DataConfig, {**DATA, "kind": "web"}, "data.kind=web"),
        (DataConfig, {**DATA, "errors": "ignore"}, "data.errors=ignore"),
        (DataConfig, {**DATA, "source": "de"}, "data.source and data.target"),
        (DataConfig, {**DATA, "valid_size": -1}, "data.valid_size=-1"),
        (DataConfig, {**DATA, "test_size": -1}, "data.test_size=-1"),
        (TokenizerConfig, {**VOCABULARY, "kind": "bytes"}, "tokenizer.kind=bytes"),
        (TokenizerConfig, {**VOCABULARY, "vocabulary_size": 299}, "tokenizer.vocabulary_size=299"),
        (TokenizerConfig, {**VOCABULARY, "sample": 0}, "tokenizer.sample=0"),
        (ModelConfig, {"positions": "rotary"}, "model.positions=rotary"),
        (ModelConfig, {"norm": "sandwich"}, "model.norm=sandwich"),
        (ModelConfig, {"attention": "multiplicative"}, "model.attention=multiplicative"),
        (ModelConfig, {"attention_window": 0}, "model.attention_window=0"),
        (ModelConfig, {"encoder_layers": 0}, "model.encoder_layers=0"),
        (ModelConfig, {"d_ff": -1}, "model.d_ff=-1"),
        (ModelConfig, {"heads": 0}, "model.heads=0"),
        (ModelConfig, {"heads": 7}, "model.heads=7"),
        (ModelConfig, {"heads": 7, "d_k": 64}, "model.heads=7"),
        (ModelConfig, {"dropout": 1.0}, "model.dropout=1.0"),
        (ModelConfig, {"dropout": -0.1}, "model.dropout=-0.1"),
        (ModelConfig, {"d_model": 63, "heads": 7}, "model.d_model=63"),
        (OptimConfig, {"warmup": 0}, "optim.warmup=0"),
        (OptimConfig, {"label_smoothing": 1.0}, "optim.label_smoothing=1.0"),
        (BatchingConfig, {"micro_batches": 0}, "batching.micro_batches=0"),
        (BatchingConfig, {"tokens_per_update": 7}, "batching.tokens_per_update=7"),
        (CheckpointConfig, {"keep": 0}, "checkpoints.keep=0"),
        (CheckpointConfig, {"every_steps": 0}, "checkpoints.every_steps=0"),
        (ValidationConfig, {"every_steps": 0}, "validation.every_steps=0"),
        (DecodeConfig, {"beam_size": 0}, "decode.beam_size=0"),
        (DecodeConfig, {"length_penalty": -0.1}, "decode.length_penalty=-0.1"),
        (DecodeConfig, {"max_extra_length": -1}, "decode.max_extra_length=-1"),
        (DecodeConfig, {"batch_tokens": 0}, "decode.batch_tokens=0"),
        (DecodeConfig, {"n_best": 5}, "decode.n_best=5"),
        (DecodeConfig, {"length_penalty": 10.1}, "decode.length_penalty=10.1"),
        (DecodeConfig, {"temperature": 1e-7}, "decode.temperature=1e-07"),
        (DecodeConfig, {"top_p": 1e-7}, "decode.top_p=1e-07"),
        (DecodeConfig, {"temperature": 0.7}, "decode.temperature=0.7 is for sampling"),
        (DecodeConfig, {"top_k": 5}, "decode.top_k=5 is for sampling"),
        (DecodeConfig, {"top_p": 0.9}, "decode.top_p=0.9 is for sampling"),
        (DecodeConfig, {"max_length": 10**6 + 1}, "decode.max_length=1000001"),
        (TranslateConfig, {"run": [], "decode": DecodeConfig()}, "run: name a run"),
        (DecodeConfig, {"n_best": 0}, "decode.n_best=0"),
        (ExperimentConfig, {"workers": 0}, "workers=0"),
        (ExperimentConfig, {"seed": -1}, "seed=-1"),
        (TranslateConfig, {"format": "xml", "decode": DecodeConfig()}, "format=xml"),
        (TranslateConfig, {"buffer": 0, "decode": DecodeConfig()}, "buffer=0"),
        (TranslateConfig, {"decode": DecodeConfig(n_best=2)}, "decode.n_best=2"),
        (ScoreConfig, {"reference": "x", "metrics": ["bleu", "rouge"]}, "metrics=rouge"),
        (ScoreConfig, {"reference": "x", "format": "xml"}, "format=xml"),
        (AverageConfig, {"last": 0}, "last=0"),
    ],
)
def test_a_broken_rule_is_one_line_that_names_the_key_and_its_value(
    cls: type, values: dict[str, Any], key: str
) -> None:
    with pytest.raises(NMTError) as error:
        cls(**values)
    assert key in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("cls", "values"),
    [
        (FilterConfig, {"max_tokens": 1, "max_ratio": 1, "max_words": None}),
        (DataConfig, {**DATA, "valid_size": 1, "test_size": 0, "errors": "skip"}),
        (TokenizerConfig, VOCABULARY),
        (ModelConfig, {"heads": 7, "d_k": 16, "d_v": 24}),
        (ModelConfig, {"d_model": 63, "heads": 7, "positions": "learned", "norm": "pre", "dropout": 0.0}),
        (BatchingConfig, {"tokens_per_update": 8, "micro_batches": 8}),
        (CheckpointConfig, {"every_minutes": None, "every_steps": 1, "keep": 1}),
        (ValidationConfig, {"bleu_sentences": None}),
        (DecodeConfig, {"beam_size": 1, "length_penalty": 0.0, "max_extra_length": 0}),
        (DecodeConfig, {"beam_size": 4, "n_best": 4}),
        (DecodeConfig, {"do_sample": True, "n_best": 9, "temperature": 1e-6, "top_p": 1e-6, "length_penalty": 10}),
        (TranslateConfig, {"format": "tsv", "decode": DecodeConfig(n_best=4)}),
    ],
)
def test_values_at_the_edge_of_a_rule_are_allowed(cls: type, values: dict[str, Any]) -> None:
    cls(**values)


@pytest.mark.parametrize(
    ("values", "d_k", "d_v"),
    [({}, 64, 64), ({"heads": 16}, 32, 32), ({"d_k": 16}, 16, 64), ({"d_v": 16}, 64, 16)],
)
def test_a_head_is_as_wide_as_the_model_over_the_heads_unless_told(values: dict[str, int], d_k: int, d_v: int) -> None:
    model = ModelConfig(**values)  # type: ignore[arg-type]
    assert (model.d_k, model.d_v) == (d_k, d_v)


@pytest.mark.parametrize(
    ("value", "items"), [(None, []), ("a", ["a"]), (["a", "b"], ["a", "b"]), ([], []), (2024, ["2024"])]
)
def test_one_path_several_or_none_are_a_list(value: Any, items: list[str]) -> None:
    assert as_list(value) == items
    assert DataConfig(name="toy", kind="files", train=value).train == items
    assert AverageConfig(checkpoints=value).checkpoints == items


def leaves(cls: type) -> set[str]:
    """Dotted keys of everything below a class that is no class of ours itself."""
    keys = set()
    for name, kind in typing.get_type_hints(cls).items():
        keys |= {f"{name}.{key}" for key in leaves(kind)} if dataclasses.is_dataclass(kind) else {name}
    return keys


@pytest.mark.parametrize("cls", CLASSES)
def test_help_has_exactly_the_keys_that_there_are(cls: type) -> None:
    assert set(field_help(cls)) == leaves(cls)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_key_has_a_help_text_or_is_self_evident(cls: type) -> None:
    silent = {key.rsplit(".", 1)[-1] for key, text in field_help(cls).items() if not text.strip()}
    assert silent <= SELF_EVIDENT
    assert cls.__doc__


def test_the_texts_are_those_under_the_fields() -> None:
    texts = field_help(ExperimentConfig)
    assert texts["model.heads"] == "h, attention heads."
    assert texts["data.filters.max_tokens"] == "Most subword tokens on either side, the end symbol not counted."
    assert texts["seed"].startswith("Seed of splits")
