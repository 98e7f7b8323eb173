"""Model conversion for CTranslate2 (https://opennmt.net/CTranslate2), and `nmt export format=ctranslate2`."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nmt import search, translation
from nmt.config import Compute, DecodeConfig, ModelConfig, TranslatorOptions
from nmt.files import (
    ModelDescription,
    block,
    expected_search,
    plain,
    read_description,
    whole_folder,
)
from nmt.model import Transformer, load_model, sinusoids
from nmt.plugins.exchange import usage
from nmt.plugins.exchange.commands import ExportConfig, sample_of, settings_of_model
from nmt.plugins.exchange.ctranslate2_engine import (
    CTranslate2Engine,
    check_model,
    converted,
    table_length,
)
from nmt.plugins.exchange.marian import layer_table
from nmt.plugins.exchange.supported import CTRANSLATE2
from nmt.text import SOURCE, TARGET, Tokenizer, read_tokenizer

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

    config, weights = (
        model.config,
        {name: tensor.numpy() for name, tensor in model.state_dict().items()},
    )
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
            parts = np.split(
                weights[row.ours], [config.d_model] if len(row.ctranslate2) == 2 else []
            )
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
        spec.decoder.projection.bias = np.where(
            np.arange(size) < config.unpredicted, np.float32(NEVER), bias
        )
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


def heading(description: ModelDescription) -> str:
    """The beginning of an exported folder's README.md."""
    source, target = plain(description.source), plain(description.target)
    return f"# {source}-{target}\n\nA Transformer that translates {source} to {target}, exported with `nmt export`.\n"


def export(
    folder: Path, output: Path, config: ExportConfig, status: Callable[[str], None]
) -> list[str]:
    """Write the conversion, its vocabularies and a README.md; return the lines that compare CTranslate2 with torch."""
    description, tokenizer = read_description(folder), read_tokenizer(folder)
    CTRANSLATE2.check(settings_of_model(description, tokenizer))
    conversion = converted(folder, config.precision, status)
    ours = original(folder)
    code = readme_code(folder, ours) if usage.has_code(tokenizer) else ""
    with whole_folder(output) as temporary:
        shutil.copytree(conversion, temporary, dirs_exist_ok=True)
        for name, content in usage.names_of(tokenizer).items():
            (temporary / name).write_bytes(content)
        comparison = list(compare(temporary, code, ours, folder, config, status))
        text = heading(description)
        if code:
            text += f"{usage.EXPLANATION}\n```python\n{code}```\n"
        else:
            text += usage.WITHOUT_CODE
        text += f"\nComparison with the original:\n\n{block(chr(10).join(comparison))}\n"
        (temporary / "README.md").write_text(text, encoding="utf-8")
    return comparison


def original(folder: Path) -> translation.Translator:
    """The translator to compare with, which translates whole lines with torch."""
    options = TranslatorOptions([str(folder)], Compute("torch", device="cpu"), split="never")
    return translation.load_translator(options, lambda words: None)


def readme_code(folder: Path, ours: translation.Translator) -> str:
    """The code that translates with the export of a model directory as the original translator does."""
    description = read_description(folder)
    decode = expected_search(DecodeConfig(), description)
    positions = table_length(ModelConfig(**description.model))
    return usage.code_for(ours.tokenizer, ours.segmenter, decode, positions)


def compare(
    export: Path,
    code: str,
    ours: translation.Translator,
    folder: Path,
    config: ExportConfig,
    status: Callable[[str], None],
) -> Iterator[str]:
    """Translate the sample with the export's code and torch, and report where they agree, or why there is no sample."""
    origin, lines, _ = sample_of(folder, config)
    if not lines:
        yield f"no sample was compared: {origin}; pass sample=FILE"
        return
    status(f"translating {len(lines):,} lines twice")
    theirs = wrapper(folder, config.precision)
    texts = [text_or_none(outcome) for outcome in ours.translate_each(lines)]
    if code:
        others = usage.translate_lines(export, code, lines)
    else:
        others = [text_or_none(outcome) for outcome in theirs.translate_each(lines)]
    rows = [
        (number, line, text, other)
        for number, (line, text, other) in enumerate(zip(lines, texts, others, strict=True), 1)
        if text is not None and other is not None
    ]
    if len(rows) < len(lines):
        yield f"{len(lines) - len(rows):,} of {len(lines):,} lines were not compared: too long for the model"
    if rows:
        yield from compare_scores(ours, theirs, [(line, text) for _, line, text, _ in rows])
        yield from compare_texts(rows, origin)


def wrapper(folder: Path, precision: str) -> translation.Translator:
    """nmt's own translator with CTranslate2."""
    options = TranslatorOptions(
        [str(folder)], Compute("ctranslate2", precision=precision), split="never"
    )
    return translation.load_translator(options, lambda words: None)


def text_or_none(outcome: translation.Outcome) -> str | None:
    """The best translation of a line; None if the line was refused."""
    return None if isinstance(outcome, translation.RefusedLine) else outcome[0].text


def compare_scores(
    ours: translation.Translator, theirs: translation.Translator, pairs: list[tuple[str, str]]
) -> Iterator[str]:
    """Report the largest difference between both programs' log probabilities of a token."""
    engine = theirs.engine
    assert isinstance(engine, CTranslate2Engine)
    scores = translation.score_pairs(ours, pairs)
    encoded = translation.encode_pairs(theirs.tokenizer, pairs)
    # CTranslate2 cannot score an empty source.
    scored = [(pair, score) for pair, score in zip(encoded, scores, strict=True) if pair[SOURCE]]
    rows = zip(scored, engine.forced_decoding([pair for pair, _ in scored]), strict=True)
    differences = [
        np.abs(np.subtract(score.token_log_probabilities, other)) for (_, score), other in rows
    ]
    tokens = sum(map(len, differences))
    largest = max((row.max() for row in differences), default=0.0)
    yield f"log P of {tokens:,} tokens matches CTranslate2's to within {largest:.1e} per token"


def compare_texts(rows: list[tuple[int, str, str, str]], origin: str) -> Iterator[str]:
    """Report how many translations agree; each row has a line's number, the line, nmt's text and CTranslate2's."""
    different = [row for row in rows if row[2] != row[3]]
    same, count = len(rows) - len(different), len(rows)
    yield f"the same translation for {same:,} of {count:,} lines ({same / count:.1%}): {origin}"
    for number, line, text, other in different[:SHOWN_LINES]:
        yield f"line {number}: {line}"
        yield f"  CTranslate2: {other}"
        yield f"  nmt:         {text}"
