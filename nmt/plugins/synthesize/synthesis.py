"""`nmt synthesise`: a corpus of lines to pairs for training, by the blocks that `nmt translate --ray` has too.

parts/         Parquet files of translations and what decides whether a pair is kept, each whole or not there
train.LANGUAGE the pairs, as two files
summary.json   what was kept, and why the rest was not
"""

import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from nmt.config import Compute, DecodeConfig, TranslateConfig, TranslatorOptions, require, with_plugin_defaults
from nmt.errors import NMTError
from nmt.evaluation import bleu_tokenizer, sentence_scorer
from nmt.files import find_model_directory, read_description, remove_leftovers
from nmt.plugins.cluster import devices
from nmt.plugins.cluster.blocks import (
    DESCRIPTION,
    Block,
    BlockTranslator,
    claim,
    cut,
    find_files,
    read_block,
    write_block,
    write_blocks,
)
from nmt.plugins.cluster.on_ray import on_cluster, require_ray
from nmt.plugins.synthesize.command import SynthesiseConfig
from nmt.plugins.synthesize.pairs import Summary, is_pair, write_pairs
from nmt.text import TARGET, not_parallel
from nmt.translation import (
    Translation,
    Translator,
    flagger,
    load_translator,
    model_hash,
    score_pairs,
    target_language,
    warn,
    what_decides,
    with_engine,
)

if TYPE_CHECKING:
    from rich.console import Console

PARTS = "parts"


class PartSynthesiser(BlockTranslator):
    """Translates parts, chooses among several translations, and judges the pairs."""

    def __init__(self, config: TranslateConfig, synthesis: SynthesiseConfig) -> None:
        super().__init__(config)
        self.synthesis = synthesis

    @cached_property
    def flags_of(self) -> Callable[[str, Translation], list[str]]:
        return flagger(self.config)

    @cached_property
    def reverse(self) -> Translator:
        """The model of the other direction."""
        options = self.config.translator
        decode = DecodeConfig(batch_tokens=options.decode.batch_tokens)
        compute = Compute("torch", device=options.compute.device)
        reverse = TranslatorOptions([str(self.synthesis.reverse)], compute, decode=decode)
        return load_translator(with_plugin_defaults(reverse), warn)

    def write(self, block: Block, lines: list[str], rows: list[list[Translation]]) -> None:
        best = [translations[0] for translations in rows]
        if block.reference:
            references = read_block(block.reference, self.config.ray.column, self.notices.append)
            like = sentence_scorer(
                self.synthesis.metric, bleu_tokenizer(None, target_language(self.config), references)
            )
            best = [  # of equal ones, the likeliest
                max(translations, key=lambda translation: like(translation.text, reference))
                for translations, reference in zip(rows, references, strict=True)
            ]
        scores = self.by_reverse(lines, best) if self.synthesis.reverse else self.by_teacher(best)
        flags = pa.array(map(self.flags_of, lines, best), pa.list_(pa.string()))
        more = {"log_probability_per_token": scores, "flags": flags}
        write_block(Path(self.config.output), block, lines, best, **more)

    def by_teacher(self, translations: list[Translation]) -> list[float]:
        """log P per token of each translation, given its line; the end symbol is a token, too."""
        tokenizer = self.translator.tokenizer
        tokens = tokenizer.encode([tokenizer.clean(translation.text) for translation in translations], TARGET)
        return [
            translation.log_probability / (len(ids) + 1) for translation, ids in zip(translations, tokens, strict=True)
        ]

    def by_reverse(self, lines: list[str], translations: list[Translation]) -> list[float]:
        """log P per token of each line, given its translation."""
        pairs = [(translation.text, line) for line, translation in zip(lines, translations, strict=True)]
        indices, scores = [index for index, pair in enumerate(pairs) if is_pair(*pair)], [-math.inf] * len(pairs)
        for index, score in zip(indices, score_pairs(self.reverse, [pairs[index] for index in indices]), strict=True):
            scores[index] = score.log_probability / len(score.token_log_probabilities)
        return scores


@cache
def synthesiser_of(synthesis: bytes) -> PartSynthesiser:
    """That of a process on one of several devices."""
    synthesiser = PartSynthesiser(cast(TranslateConfig, devices.worker_config), pickle.loads(synthesis))
    synthesiser.translator = devices.worker_translator()
    return synthesiser


def write_part(synthesis: bytes, row: dict[str, Any]) -> dict[str, Any]:
    """In a process of the pool: write a part."""
    return synthesiser_of(synthesis)(row)


def write_here(
    config: TranslateConfig, synthesis: SynthesiseConfig, parts: Sequence[Block]
) -> Iterator[dict[str, Any]]:
    """Write parts on this machine; gives the report of each one."""
    rows = map(asdict, parts)
    if config.translator.compute.devices == 1:
        synthesiser = PartSynthesiser(config, synthesis)
        synthesiser.translator = load_translator(config.translator, warn)
        yield from map(synthesiser, rows)
        return
    with devices.on_devices(config) as pool:
        yield from pool.run(partial(write_part, pickle.dumps(synthesis)), rows)


def find_parts(config: SynthesiseConfig) -> tuple[list[Block], dict[str, Any]]:
    """The parts of the input, and the SHA-256 of all texts; NMTError where the references are not parallel."""
    cut_files = partial(cut, size=config.lines, column=config.translation.ray.column)
    blocks, hashes = cut_files(find_files(config.input))
    require(bool(blocks), f"input={config.input}: it is empty")
    if config.reference is None:
        return blocks, {"input": [*hashes.values()], "reference": None}
    references, reference_hashes = cut(
        find_files(config.reference, "reference"), config.lines, config.translation.ray.column
    )
    if [(block.first, block.count) for block in blocks] != [(block.first, block.count) for block in references]:
        counts = [sum(block.count for block in side) for side in (blocks, references)]
        raise not_parallel((config.input, config.reference), counts)
    parts = [replace(block, reference=reference) for block, reference in zip(blocks, references, strict=True)]
    return parts, {"input": [*hashes.values()], "reference": [config.metric, *reference_hashes.values()]}


def synthesise(config: SynthesiseConfig, console: "Console") -> Summary:
    """Write the pairs of `config.input` to the folder `config.output`.

    Parts that are there stay: the same command goes on after a kill, and keys that only choose pairs translate nothing.
    """
    translation = config.translation
    if translation.ray.enabled:
        require_ray(translation)
    else:
        translation = replace(translation, translator=with_engine(translation.translator, warn))
    folder = Path(config.output).absolute()
    with console.status("reading the input"):
        parts, hashes = find_parts(config)
        models = [find_model_directory(name).resolve() for name in translation.translator.run]
        reverse = find_model_directory(config.reverse, "reverse").resolve() if config.reverse else None
        if reverse:
            forth, back = map(read_description, (models[0], reverse))
            require(
                (back.source, back.target) == (forth.target, forth.source),
                f"reverse={config.reverse}: it translates {back.source} to {back.target}; pass a model from "
                f"{forth.target} to {forth.source}, the other direction",
            )
        decides = {"lines": config.lines, **what_decides(translation), **hashes}
        claim(Path(config.output), {**decides, "reverse": reverse and model_hash(reverse)})
        (folder / PARTS).mkdir(exist_ok=True)
        remove_leftovers(folder / PARTS)
    options = replace(translation.translator, run=[*map(str, models)])
    translation = replace(translation, translator=options, output=str(folder / PARTS))
    synthesis = replace(config, reverse=str(reverse) if reverse else None)
    if translation.ray.enabled:
        reports = partial(on_cluster, translation, PartSynthesiser, (synthesis,))
    else:
        reports = partial(write_here, translation, synthesis)
    try:
        write_blocks(parts, folder / PARTS, console, reports)
    except NMTError:
        if not any((folder / PARTS).iterdir()):  # nothing was translated: leave the folder to other commands
            (folder / PARTS).rmdir()
            (folder / DESCRIPTION).unlink()
        raise
    with console.status("choosing pairs"):
        return write_pairs(config, [folder / PARTS / part.name for part in parts], folder)
