"""Model directories as models of CTranslate2 (https://opennmt.net/CTranslate2).

model.bin               weights, in float32 or int8
config.json             CTranslate2's own
shared_vocabulary.json  how tokens are written; source_vocabulary.json and target_vocabulary.json where these differ
tokenizer.model         as in the model directory; of a model of Marian also source.spm and target.spm
nmt.json                config.json of the model directory
README.md               how to use it, and how far its results are those of the original
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from nmt.config import ModelConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import EXPORTED, ModelDescription, is_exported, plain, read_description, whole_folder
from nmt.model import Transformer, load_model, sinusoids
from nmt.plugins.exchange.ctranslate2_load import ACTIVATIONS, check_model, table_length
from nmt.plugins.exchange.names import layer_table
from nmt.search import aligning_layer
from nmt.text import SOURCE, TARGET, MarianTokenizer, SentencePieceTokenizer, Tokenizer, read_tokenizer

MODELS = "source.spm", "target.spm"
NEVER = -1e9
"""Bias on the logit of a symbol without probability."""
LEVELS = 88
"""The largest number in a matrix of int8, as measured (docs/benchmarks.md); raise CONVERSION with it.

Processors with AVX2 but without VNNI add two products with activations of up to 255 in 16 bits. With numbers up to 127,
as CTranslate2 itself writes them, many sums are cut; with up to 64 none is, but the numbers are coarser.
"""


def write(folder: Path, output: Path, precision: str) -> None:
    """Write a model directory as a model of CTranslate2, float32 or int8; an earlier export is replaced."""
    description = read_description(folder)
    check_model(ModelConfig(**description.model))
    free = not output.exists() or is_exported(output)
    require(free, f"output={output}: there already, and no exported model; name another folder")
    tokenizer = read_tokenizer(folder)
    spec = specification(load_model(folder), tokenizer)
    if precision == "int8":
        quantize(spec)
    models = dict(zip(MODELS, tokenizer.models, strict=True)) if isinstance(tokenizer, MarianTokenizer) else {}
    text = card(description)
    if isinstance(tokenizer, SentencePieceTokenizer | MarianTokenizer):
        encoder, decoder = MODELS if models else ("tokenizer.model",) * 2
        text += PIECES.format(encoder=encoder, decoder=decoder)
    try:
        with whole_folder(output) as temporary:
            spec.save(str(temporary))
            shutil.copyfile(folder / "tokenizer.model", temporary / "tokenizer.model")
            shutil.copyfile(folder / "config.json", temporary / EXPORTED)
            for name, model in models.items():
                (temporary / name).write_bytes(model)
            (temporary / "README.md").write_text(text, encoding="utf-8")
    except OSError as error:
        raise NMTError(f"cannot write {folder} as {output} ({one_line(error)})") from error


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
        activation=Activation(ACTIVATIONS[config.activation]),
    )
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


def card(description: ModelDescription) -> str:
    source, target = plain(description.source), plain(description.target)
    return f"""# {source}-{target}

Exported by `nmt export` for CTranslate2. A Transformer that translates from {source} to {target}:

```
nmt translate run=THIS_FOLDER engine=ctranslate2 < input
```
"""


PIECES = """
Without nmt (normalize text by NFKC first, unless the vocabulary is Marian's; a tag of the target language is a piece):

```python
import ctranslate2
from sentencepiece import SentencePieceProcessor

pieces = SentencePieceProcessor(model_file="{encoder}").encode("A line.", out_type=str)
[result] = ctranslate2.Translator(".").translate_batch([pieces], beam_size=4)
print(SentencePieceProcessor(model_file="{decoder}").decode(result.hypotheses[0]))
```
"""
