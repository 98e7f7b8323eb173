"""Model conversion for CTranslate2 (https://opennmt.net/CTranslate2), float32 or int8."""

from pathlib import Path
from typing import Any

import numpy as np

from nmt import search
from nmt.config import EOS, ModelConfig
from nmt.files import read_description, whole_folder
from nmt.model import Transformer, load_model, sinusoids
from nmt.plugins.exchange.ctranslate2_conversion import table_length
from nmt.plugins.exchange.ctranslate2_support import check_model
from nmt.plugins.exchange.parameters import Parameter, layer_parameters
from nmt.text import SOURCE, SYMBOLS, TARGET, Tokenizer, read_tokenizer

ACTIVATIONS = {
    "relu": "RELU",
    "swish": "SWISH",
    "gelu": "GELU",
    "quick_gelu": "GELUSigmoid",
}
"""Values of model.activation and CTranslate2's names."""
NEVER = -1e9
"""Logit bias that rules out a symbol."""
LEVELS = 88
"""The largest value in an int8 matrix, chosen by measurement (docs/results.md).

If you change it, increment CONVERSION. CPUs with AVX2 but without VNNI sum two weight-activation
products (activations are at most 255) in 16 bits. With weights up to 127, as in CTranslate2's own
conversion, many sums saturate; up to 64, none do, but rounding is coarser.
"""


def write(folder: Path, output: Path, precision: str) -> None:
    """Write a model directory's float32 or int8 conversion to `output`, replacing any folder."""
    # Before the weights are loaded.
    check_model(ModelConfig(**read_description(folder).model))
    spec = specification(load_model(folder), read_tokenizer(folder))
    if precision == "int8":
        quantize(spec)
    with whole_folder(output) as temporary:
        spec.save(str(temporary))


def specification(model: Transformer, tokenizer: Tokenizer) -> Any:
    """CTranslate2's description of a model, with its weights."""
    from ctranslate2.specs import Activation, TransformerSpec

    config = model.config
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    # CTranslate2 has no converter for nmt's models, so its tree of variables is filled here.
    spec = TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        pre_norm=config.norm == "pre",
        alignment_layer=search.aligning_layer(config.decoder_layers),
        alignment_heads=0,  # 0: the mean of all heads
        activation=Activation[ACTIVATIONS[config.activation]],
        layernorm_embedding=config.embedding_norm,
    )
    spec.config.add_attribute("exported_by", "nmt")
    # CTranslate2's defaults are no end symbol and an epsilon of 1e-5.
    spec.config.add_source_eos = config.source_end
    spec.config.layer_norm_epsilon = config.norm_epsilon
    if config.end_start:
        spec.config.decoder_start_token = SYMBOLS[EOS]
    for row in layer_parameters(config):
        if row.ours in weights:
            set_parameter(spec, row, weights[row.ours])
    spec.encoder.embeddings[0].weight = weights["source_embedding.weight"]
    spec.decoder.embeddings.weight = weights["target_embedding.weight"]
    # CTranslate2's own sinusoids have sines and cosines in halves and begin at position 1.
    length = table_length(config)
    sines = sinusoids(length, config.d_model, config.first_position, config.positions).numpy()
    for stack, name in ((spec.encoder, "source_embedding"), (spec.decoder, "target_embedding")):
        stack.position_encodings.encodings = weights.get(f"{name}.positions.table", sines)
    spec.decoder.start_from_zero_embedding = config.zero_start
    spec.decoder.projection.weight = weights["output.weight"]
    # Without either, there is no bias, which saves an addition per step.
    if config.output_bias or config.unpredicted:
        # Our softmax excludes the first symbols; CTranslate2's includes the whole vocabulary.
        size = model.vocabulary_size
        bias = weights.get("output.bias", np.zeros(size, np.float32))
        is_excluded = np.arange(size) < config.unpredicted
        spec.decoder.projection.bias = np.where(is_excluded, np.float32(NEVER), bias)
    spec.register_source_vocabulary(tokenizer.vocabulary(SOURCE))
    spec.register_target_vocabulary(tokenizer.vocabulary(TARGET))
    spec.validate()
    # Variables with equal values share their memory.
    spec.optimize()
    return spec


def set_parameter(spec: Any, row: Parameter, weight: Any) -> None:
    """Set one of our parameters, or its query rows and its other rows, in a specification."""
    from ctranslate2.specs.model_spec import index_spec

    parts = [weight]
    if len(row.ctranslate2) == 2:
        # In cross-attention, CTranslate2 has one matrix for queries, and one for keys and values.
        queries = row.shape[0] // 3
        parts = np.split(weight, [queries])
    for name, part in zip(row.ctranslate2, parts, strict=True):
        scope, _, attribute = name.rpartition("/")
        setattr(index_spec(spec, scope), attribute, part)


def quantize(spec: Any) -> None:
    """Round the matrices to int8, with one scale per row."""
    from ctranslate2.specs.model_spec import NumpyVariable, visit_spec

    def round_matrix(layer: Any, path: str, value: Any) -> None:
        name = path.rpartition("/")[2]
        # CTranslate2 itself marks what can be rounded by an attribute for the scale.
        if not isinstance(value, NumpyVariable) or f"{name}_scale" not in vars(layer):
            return
        matrix = value.numpy()
        # A scale per row, because rows are the outputs of a product, whose sums are scaled back
        # alone.
        largest = np.abs(matrix).max(axis=1)
        scale = LEVELS / np.where(largest > 0, largest, LEVELS)  # 1 for rows of zeros
        rounded = np.rint(matrix * scale[:, None]).astype(np.int8)
        setattr(layer, name, NumpyVariable(rounded))
        setattr(layer, f"{name}_scale", NumpyVariable(scale))

    visit_spec(spec, round_matrix)
