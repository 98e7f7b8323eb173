"""Model conversion for CTranslate2 (https://opennmt.net/CTranslate2), and `nmt export format=ctranslate2`."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nmt import search, translation
from nmt.config import Compute, ModelConfig, TranslatorOptions
from nmt.files import ModelDescription, block, plain, read_description, whole_folder
from nmt.model import Transformer, load_model, sinusoids
from nmt.plugins.exchange.commands import ExportConfig, sample_of, settings_of_model
from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine, check_model, converted, table_length
from nmt.plugins.exchange.marian import layer_table
from nmt.plugins.exchange.marian_tokenizer import MarianTokenizer
from nmt.plugins.exchange.supported import CTRANSLATE2
from nmt.text import SOURCE, TARGET, SentencePieceTokenizer, Tokenizer, read_tokenizer

SHOWN_LINES = 2
"""Number of differing translations to print."""
ACTIVATIONS = {"relu": "RELU", "swish": "SWISH", "gelu": "GELU", "quick_gelu": "GELUSigmoid"}
NEVER = -1e9
"""Logit bias that rules out a symbol."""
LEVELS = 88
"""The largest value in an int8 matrix, chosen by measurement (docs/results.md); if you change it, increment CONVERSION.

CPUs with AVX2 but without VNNI sum two weight-activation products (activations are at most 255) in 16 bits. With
weights up to 127, as in CTranslate2's own conversion, many sums saturate; up to 64, none do, but rounding is coarser.
"""


def write(folder: Path, output: Path, precision: str) -> None:
    """Write a model directory's float32 or int8 conversion to `output`, replacing any existing folder."""
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
        alignment_layer=search.aligning_layer(config.decoder_layers),
        alignment_heads=0,  # 0: the mean of all heads
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
    spec.register_source_vocabulary(tokenizer.vocabulary(SOURCE))
    spec.register_target_vocabulary(tokenizer.vocabulary(TARGET))
    spec.validate()
    spec.optimize()
    return spec


def quantize(spec: Any) -> None:
    """Round the matrices to int8, with one scale per row."""
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


NORMALIZE = {
    "canonical": "Normalize sources to NFC and fold ligatures and presentation forms first.",
    "nfkc": "Normalize sources to NFKC first.",
    "none": "The vocabulary itself normalizes the text.",
}
USAGE = """
{} A target-language tag is one piece.

```python
import ctranslate2
from sentencepiece import SentencePieceProcessor

pieces = SentencePieceProcessor(model_file="{}").encode("A line.", out_type=str)
[result] = ctranslate2.Translator(".").translate_batch([pieces], beam_size=4)
print(SentencePieceProcessor(model_file="{}").decode(result.hypotheses[0]))
```
"""


def heading(description: ModelDescription) -> str:
    """The beginning of an exported folder's README.md."""
    source, target = plain(description.source), plain(description.target)
    return f"# {source}-{target}\n\nA Transformer that translates {source} to {target}, exported with `nmt export`.\n"


def export(folder: Path, output: Path, config: ExportConfig, status: Callable[[str], None]) -> list[str]:
    """Write the conversion, its vocabularies and a README.md; return the lines that compare CTranslate2 with torch."""
    description, tokenizer = read_description(folder), read_tokenizer(folder)
    CTRANSLATE2.check(settings_of_model(description, tokenizer))
    conversion = converted(folder, config.precision, status)
    comparison = list(compare(folder, config, status))
    names, models = ["tokenizer.model"] * 2, [tokenizer.content] * 2
    if isinstance(tokenizer, MarianTokenizer):
        names, models = ["source.spm", "target.spm"], tokenizer.models
    text = heading(description)
    if isinstance(tokenizer, SentencePieceTokenizer | MarianTokenizer):
        text += USAGE.format(NORMALIZE[tokenizer.normalization.name], *names)
    text += f"\nComparison with the original:\n\n{block(chr(10).join(comparison))}\n"
    with whole_folder(output) as temporary:
        shutil.copytree(conversion, temporary, dirs_exist_ok=True)
        for name, model in zip(names, models, strict=True):
            (temporary / name).write_bytes(model)
        (temporary / "README.md").write_text(text, encoding="utf-8")
    return comparison


def compare(folder: Path, config: ExportConfig, status: Callable[[str], None]) -> Iterator[str]:
    """Translate the sample with CTranslate2 and torch, and report where they agree, or why there is no sample."""
    origin, lines, _ = sample_of(folder, config)
    if not lines:
        yield f"no sample was compared: {origin}; pass sample=FILE"
        return
    status(f"translating {len(lines):,} lines twice")
    ours, theirs = (
        translation.load_translator(TranslatorOptions([str(folder)], compute), lambda words: None)
        for compute in (Compute("torch", device="cpu"), Compute("ctranslate2", precision=config.precision))
    )
    texts, others = ([row[0].text for row in program.translate(lines)] for program in (ours, theirs))
    pairs, engine = list(zip(lines, texts, strict=True)), theirs.engine
    assert isinstance(engine, CTranslate2Engine)
    encoded = zip(translation.encode_pairs(theirs.tokenizer, pairs), translation.score_pairs(ours, pairs), strict=True)
    scored = [(pair, score) for pair, score in encoded if pair[SOURCE]]  # CTranslate2 cannot score an empty source
    rows = zip(scored, engine.forced_decoding([pair for pair, _ in scored]), strict=True)
    differences = [np.abs(np.subtract(score.token_log_probabilities, other)) for (_, score), other in rows]
    tokens, largest = sum(map(len, differences)), max((row.max() for row in differences), default=0.0)
    yield f"log P of {tokens:,} tokens matches CTranslate2's to within {largest:.1e} per token"
    different = [row for row in enumerate(zip(lines, others, texts, strict=True), 1) if row[1][1] != row[1][2]]
    same, count = len(lines) - len(different), len(lines)
    yield f"the same translation for {same:,} of {count:,} lines ({same / count:.1%}): {origin}"
    for number, (line, their, our) in different[:SHOWN_LINES]:
        yield from (f"line {number}: {line}", f"  CTranslate2: {their}", f"  nmt:         {our}")
