"""`nmt export format=ctranslate2`: a conversion with a README, compared with the original."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nmt import translation
from nmt.config import Compute, DecodeConfig, ModelConfig, TranslatorOptions
from nmt.files import block, expected_search, read_description, whole_folder
from nmt.plugins.exchange import multilingual_usage, usage
from nmt.plugins.exchange.ctranslate2_conversion import converted, table_length
from nmt.plugins.exchange.ctranslate2_engine import CTranslate2Engine
from nmt.plugins.exchange.exporting import ExportConfig, heading, sample_of, settings_of_model
from nmt.plugins.exchange.multilingual_vocabulary_export import example_direction
from nmt.plugins.exchange.supported import CTRANSLATE2
from nmt.text import SOURCE, MultilingualTokenizer, Tokenizer, read_tokenizer

SHOWN_LINES = 2
"""Number of differing translations to print."""


@dataclass(frozen=True)
class TranslatedLine:
    """A line of the sample, and its translations by both programs."""

    number: int
    line: str
    ours: str
    theirs: str


def export(
    folder: Path,
    output: Path,
    config: ExportConfig,
    status: Callable[[str], None],
) -> list[str]:
    """Write the conversion, its vocabularies and a README.md.

    Returns the lines that compare CTranslate2 with torch.
    """
    description = read_description(folder)
    tokenizer = read_tokenizer(folder)
    # The engine's own check knows neither vocabularies nor kinds of data.
    CTRANSLATE2.check(settings_of_model(description, tokenizer))
    # Copied from the cache, so that an export and engine=ctranslate2 use the same bytes.
    conversion = converted(folder, config.precision, status)
    ours = original(folder)
    code = ""
    if usage.has_code(tokenizer):
        code = readme_code(folder, ours)
    with whole_folder(output) as temporary:
        shutil.copytree(conversion, temporary, dirs_exist_ok=True)
        for name, content in usage.names_of(tokenizer).items():
            (temporary / name).write_bytes(content)
        # In the temporary folder, so that the README, which quotes the comparison, is written once.
        comparison = list(compare(temporary, code, ours, folder, config, status))
        text = heading(description, "ctranslate2")
        if code:
            is_multilingual = isinstance(tokenizer, MultilingualTokenizer)
            module = multilingual_usage if is_multilingual else usage
            text += f"{module.EXPLANATION}\n```python\n{code}```\n"
        else:
            text += usage.WITHOUT_CODE
        shown = block("\n".join(comparison))
        text += f"\nComparison with the original:\n\n{shown}\n"
        (temporary / "README.md").write_text(text, encoding="utf-8")
    return comparison


def original(folder: Path) -> translation.Translator:
    """The translator to compare with, which translates whole lines with torch."""
    # torch on a CPU is the reference, in float32 and without splitting lines, as in the README's
    # code.
    options = TranslatorOptions([str(folder)], Compute("torch", device="cpu"), split="never")
    return translation.load_translator(options, lambda words: None)


def exported_in_nmt(folder: Path, precision: str) -> translation.Translator:
    """The translator that searches with CTranslate2, and does all else as nmt does."""
    compute = Compute("ctranslate2", precision=precision)
    options = TranslatorOptions([str(folder)], compute, split="never")
    return translation.load_translator(options, lambda words: None)


def readme_code(folder: Path, ours: translation.Translator) -> str:
    """The code that translates with the export of a model directory as `ours` does."""
    description = read_description(folder)
    decode = expected_search(DecodeConfig(), description)
    positions = table_length(ModelConfig(**description.model))
    tokenizer = ours.tokenizer
    if isinstance(tokenizer, MultilingualTokenizer):
        example = example_direction(description, tokenizer)
        return multilingual_usage.code_for(tokenizer, decode, positions, example)
    return usage.code_for(tokenizer, ours.segmenter, decode, positions)


def compare(
    export: Path,
    code: str,
    ours: translation.Translator,
    folder: Path,
    config: ExportConfig,
    status: Callable[[str], None],
) -> Iterator[str]:
    """Report where both programs agree on the sample, or why there is no sample.

    CTranslate2 runs in the README's code or, if there is none, in nmt.
    """
    sample = sample_of(folder, config)
    lines = sample.lines
    if not lines:
        yield f"no sample was compared: {sample.origin}; pass sample=FILE"
        return
    status(f"translating {len(lines):,} lines twice")
    theirs = exported_in_nmt(folder, config.precision)
    our_texts = best_texts(ours, lines)
    if not code:
        their_texts = best_texts(theirs, lines)
    elif isinstance(ours.tokenizer, MultilingualTokenizer):
        their_texts = multilingual_usage.translate_lines(export, code, ours.tokenizer, lines)
    else:
        their_texts = usage.translate_lines(export, code, lines)
    rows = []
    for number, line in enumerate(lines, 1):
        text = our_texts[number - 1]
        other = their_texts[number - 1]
        if text is not None and other is not None:
            rows.append(TranslatedLine(number, line, text, other))
    if len(rows) < len(lines):
        skipped = f"{len(lines) - len(rows):,} of {len(lines):,} lines"
        yield f"{skipped} were not compared: {reason_in_words(ours.tokenizer)}"
    if rows:
        # Scores of our translations, so that both programs judge the same tokens.
        yield compare_scores(ours, theirs, [(row.line, row.ours) for row in rows])
        yield from compare_texts(rows, sample.origin)


def reason_in_words(tokenizer: Tokenizer) -> str:
    """Why a program may refuse a line."""
    reason = "too long for the model"
    if isinstance(tokenizer, MultilingualTokenizer):
        reason += ", or without a tag that names its languages"
    return reason


def best_texts(translator: translation.Translator, lines: list[str]) -> list[str | None]:
    """The best translation of each line; None if the line was refused."""
    texts: list[str | None] = []
    for outcome in translator.translate_each(lines):
        if isinstance(outcome, translation.RefusedLine):
            texts.append(None)
        else:
            texts.append(outcome[0].text)
    return texts


def compare_scores(
    ours: translation.Translator,
    theirs: translation.Translator,
    pairs: list[tuple[str, str]],
) -> str:
    """Report the largest difference between both programs' log probabilities of a token."""
    engine = theirs.engine
    assert isinstance(engine, CTranslate2Engine)
    tokenizer = theirs.tokenizer
    encoded = translation.encode_pairs(tokenizer, with_full_tags(tokenizer, pairs))
    compared = []
    texts = []
    for pair, text in zip(encoded, pairs, strict=True):
        # CTranslate2 cannot score an empty source. A translation may have more tokens than its
        # source, and still more if its text is split into tokens again.
        if pair[SOURCE] and engine.fits(pair):
            compared.append(pair)
            texts.append(text)
    scores = translation.score_pairs(ours, texts)
    differences = []
    given = int(tokenizer.has_target_tags)
    for score, their_row in zip(scores, engine.forced_decoding(compared), strict=True):
        # Without the tags of targets, which have no score.
        their_scores = their_row[given:]
        differences.append(np.abs(np.subtract(score.token_log_probabilities, their_scores)))
    tokens = sum(map(len, differences))
    largest = max((row.max() for row in differences), default=0.0)
    return f"log P of {tokens:,} tokens matches CTranslate2's to within {largest:.1e} per token"


def with_full_tags(tokenizer: Tokenizer, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs with sources whose tags have the form that the tokenizer reads."""
    tagged = []
    for source, target in pairs:
        line = translation.untagged(source, tokenizer)
        # Lines that are refused have no translation, and are not among the pairs.
        assert isinstance(line, translation.Line)
        tagged.append((line.tag + line.text, target))
    return tagged


def compare_texts(rows: list[TranslatedLine], origin: str) -> Iterator[str]:
    """Report how many translations agree."""
    different = [row for row in rows if row.ours != row.theirs]
    count = len(rows)
    same = count - len(different)
    yield f"the same translation for {same:,} of {count:,} lines ({same / count:.1%}): {origin}"
    for row in different[:SHOWN_LINES]:
        yield f"line {row.number}: {row.line}"
        yield f"  CTranslate2: {row.theirs}"
        yield f"  nmt:         {row.ours}"
