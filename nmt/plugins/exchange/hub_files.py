"""The files of a model in transformers' format that nmt reads."""

import re
from collections.abc import Collection

MULTILINGUAL = ("m2m_100", "mbart")
"""The model_type of models whose lines name their languages."""
MODEL_TYPES = ("marian", *MULTILINGUAL)
"""All supported values of model_type in config.json."""
WEIGHTS = ("model.safetensors", "pytorch_model.bin")
"""The files with all weights, the preferred one first."""
CONFIG = "config.json"
SMALL_FILES = (
    CONFIG,
    "README.md",
    "added_tokens.json",
    "generation_config.json",
    "sentencepiece.bpe.model",
    "source.spm",
    "special_tokens_map.json",
    "target.spm",
    "target_vocab.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
)
"""The files besides the weights; CONFIG is the first."""


def index_of(name: str) -> str:
    """The file that lists the parts of weights that a large model has instead of `name`."""
    return f"{name}.index.json"


def weights_among(names: Collection[str]) -> list[str]:
    """The files with the weights, in the preferred format; empty if there are none."""
    for name in WEIGHTS:
        if name in names:
            return [name]
        index = index_of(name)
        if index in names:
            stem, _, suffix = name.rpartition(".")
            part = re.compile(rf"{stem}-\d{{5}}-of-\d{{5}}\.{suffix}")
            return [index, *sorted(filter(part.fullmatch, names))]
    return []


def small_files_among(names: Collection[str]) -> list[str]:
    return [name for name in SMALL_FILES if name in names]
