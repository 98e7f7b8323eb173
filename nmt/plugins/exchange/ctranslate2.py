"""Conversion of model directories to CTranslate2 (https://opennmt.net/CTranslate2): weights, settings, vocabularies."""

from pathlib import Path
from typing import Any

import numpy as np

from nmt.config import ModelConfig, require
from nmt.files import read_description, whole_folder
from nmt.model import Transformer, load_model, sinusoids
from nmt.plugins.exchange.ctranslate2_engine import check_model, table_length
from nmt.plugins.exchange.names import layer_table
from nmt.search import aligning_layer
from nmt.text import SOURCE, TARGET, Tokenizer, read_tokenizer

ACTIVATIONS = {"relu": "RELU", "swish": "SWISH", "gelu": "GELU", "quick_gelu": "GELUSigmoid"}
NEVER = -1e9
"""Bias on the logit of a symbol without probability."""
LEVELS = 88
"""The largest number in an int8 matrix, chosen by measurement (docs/benchmarks.md); raise CONVERSION with it.

Processors with AVX2 but without VNNI add two products with activations of up to 255 in 16 bits. With numbers up to 127,
as CTranslate2 itself writes them, many sums saturate. With numbers up to 64 none does, but they are coarser.
"""


def write(folder: Path, output: Path, precision: str) -> None:
    """Convert a model directory, in float32 or int8, to a folder that is replaced if it exists."""
    check_model(ModelConfig(**read_description(folder).model))
    spec = specification(load_model(folder), read_tokenizer(folder))
    if precision == "int8":
        quantize(spec)
    with whole_folder(output) as temporary:
        spec.save(str(temporary))


def specification(model: Transformer, tokenizer: Tokenizer) -> Any:
    from ctranslate2.specs import Activation, TransformerSpec
    from ctranslate2.specs.model_spec import index_spec

    config, weights = model.config, {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    spec = TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        alignment_layer=aligning_layer(config.decoder_layers),
        alignment_heads=0,  # the mean of all heads
        activation=Activation[ACTIVATIONS[config.activation]],
    )
    spec.config.add_attribute("exported_by", "nmt")
    spec.config.add_source_eos = config.source_end
    spec.config.layer_norm_epsilon = config.norm_epsilon
    for row in layer_table(config):
        if row.ours in weights:
            parts = np.split(weights[row.ours], [config.d_model] if len(row.ctranslate2) == 2 else [])
            for name, part in zip(row.ctranslate2, parts, strict=True):
                scope, _, attribute = name.rpartition("/")
                setattr(index_spec(spec, scope), attribute, part)
    spec.encoder.embeddings[0].weight = weights["source_embedding.weight"]
    spec.decoder.embeddings.weight = weights["target_embedding.weight"]
    for stack, name in ((spec.encoder, "source_embedding"), (spec.decoder, "target_embedding")):
        learned = weights.get(f"{name}.positions.table")
        table = sinusoids(table_length(config), config.d_model, kind=config.positions).numpy()
        stack.position_encodings.encodings = table if learned is None else learned
    spec.decoder.start_from_zero_embedding = config.zero_start
    spec.decoder.projection.weight = weights["output.weight"]
    if config.output_bias or config.unpredicted:
        size = model.vocabulary_size
        bias = weights.get("output.bias", np.zeros(size, np.float32))
        spec.decoder.projection.bias = np.where(np.arange(size) < config.unpredicted, np.float32(NEVER), bias)
    entries = [tokenizer.vocabulary(side) for side in (SOURCE, TARGET)]
    unique = all(len(set(side)) == len(side) for side in entries)
    require(unique, "format=ctranslate2: two entries of the vocabulary have one name")
    spec.register_source_vocabulary(entries[SOURCE])
    spec.register_target_vocabulary(entries[TARGET])
    spec.validate()
    spec.optimize()
    return spec


def quantize(spec: Any) -> None:
    """Round the matrices of a specification to int8, with a scale for each row."""
    from ctranslate2.specs.model_spec import NumpyVariable, visit_spec

    def round_matrix(layer: Any, name: str, value: Any) -> None:
        name = name.rpartition("/")[2]
        if isinstance(value, NumpyVariable) and f"{name}_scale" in vars(layer):
            matrix = value.numpy()
            largest = np.abs(matrix).max(axis=1)
            scale = LEVELS / np.where(largest > 0, largest, LEVELS)
            setattr(layer, name, NumpyVariable(np.rint(matrix * scale[:, None]).astype(np.int8)))
            setattr(layer, f"{name}_scale", NumpyVariable(scale))

    visit_spec(spec, round_matrix)
