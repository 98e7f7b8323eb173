"""`nmt synthesise`: a corpus of lines to pairs for training, by the blocks that `nmt translate --ray` has too.

parts/         Parquet files of translations and what decides whether a pair is kept, each whole or not there
train.LANGUAGE the pairs, as two files
summary.json   what was kept, and why the rest was not
"""

import json
import math
import pickle
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nmt.config import Compute, DecodeConfig, TranslateConfig, TranslatorOptions, require, with_plugin_defaults
from nmt.errors import NMTError
from nmt.evaluation import bleu_tokenizer, sentence_scorer
from nmt.files import find_model_directory, read_description, remove_leftovers, whole_file, write_file
from nmt.plugins.cluster import blocks as cluster, devices
from nmt.plugins.cluster.blocks import Block, BlockTranslator
from nmt.plugins.cluster.on_ray import on_cluster, require_ray
from nmt.plugins.synthesize.command import SynthesiseConfig
from nmt.text import TARGET, not_parallel
from nmt.translation import (
    Translation,
    Translator,
    find_models,
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
KEPT, EMPTY, FLAGGED, UNLIKELY = range(4)
"""What becomes of a pair."""


@dataclass
class Summary:
    """What became of the lines."""

    source: str
    """The language of the sources of the pairs, and of their targets."""
    target: str
    lines: int
    kept: int
    dropped: dict[str, int]
    """Lines by the reason why they were left out."""
    flags: dict[str, int]
    """Pairs that have each flag; a pair may have several."""
    least: float | None
    """The lowest log P per token of a pair that is kept."""


def is_pair(source: str, target: str) -> bool:
    """True if neither side is empty."""
    return bool(source.strip() and target.strip())


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
            references = cluster.read_block(block.reference, self.config.plugins["ray"].column, self.notices.append)
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
        cluster.write_block(Path(self.config.output), block, lines, best, **more)

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
    cut_files = partial(cluster.cut, size=config.lines, column=config.translation.plugins["ray"].column)
    parts, hashes = cut_files(cluster.find_files(config.input))
    require(bool(parts), f"input={config.input}: it is empty")
    decides: dict[str, Any] = {"input": [*hashes.values()], "reference": None}
    if config.reference is not None:
        references, hashes = cut_files(cluster.find_files(config.reference, "reference"))
        shapes = [[(part.first, part.count) for part in side] for side in (parts, references)]
        if shapes[0] != shapes[1]:
            counts = [sum(count for _, count in shape) for shape in shapes]
            raise not_parallel((config.input, config.reference), counts)
        parts = [replace(part, reference=reference) for part, reference in zip(parts, references, strict=True)]
        decides["reference"] = [config.metric, *hashes.values()]
    return parts, decides


def worst(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    """The indices of that share of the scores, rounded down, that are lowest; of equal ones, the last."""
    order = np.lexsort((-np.arange(len(scores)), np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)))
    return order[: math.floor(share * len(scores) + 1e-9)]


def judge_pairs(
    files: Sequence[Path], drop: float, flagged: str
) -> tuple[NDArray[np.int8], NDArray[np.float64], Counter[str]]:
    """What becomes of each pair, their log P per token, and how many have each flag.

    Empty pairs are dropped, then those with flags unless flagged=keep, then the worst share of the rest.
    """
    codes, scores, flags = list[int](), list[float](), Counter[str]()
    for file in files:
        try:
            rows = pq.read_table(file).to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise NMTError(f"{file}: damaged; remove it, and the same command writes it again") from error
        for row in rows:
            pair = is_pair(row["source"], row["translation"])
            flags.update(row["flags"] if pair else ())
            codes.append(EMPTY if not pair else FLAGGED if row["flags"] and flagged == "drop" else KEPT)
            scores.append(row["log_probability_per_token"])
    code_array, score_array = np.array(codes, np.int8), np.array(scores, np.float64)
    left = np.flatnonzero(code_array == KEPT)
    code_array[left[worst(score_array[left], drop)]] = UNLIKELY
    return code_array, score_array, flags


def kept_pairs(files: Sequence[Path], kept: NDArray[np.bool_]) -> Iterator[tuple[str, str]]:
    """Line and translation of the pairs that are kept, in the order of the lines."""
    first = 0
    for file in files:
        table = pq.read_table(file, columns=["source", "translation"])
        rows = table.filter(kept[first : first + len(table)]).to_pydict()
        yield from zip(rows["source"], rows["translation"], strict=True)
        first += len(table)


def write_pairs(config: SynthesiseConfig, files: Sequence[Path], folder: Path) -> Summary:
    """Write the pairs of these Parquet files that are good enough, and a summary; NMTError if there are none."""
    _, [description, *_], _ = find_models(config.translation.translator.run)
    codes, scores, flags = judge_pairs(files, config.drop, config.flagged)
    kept = codes == KEPT
    empty, flagged, unlikely = (int((codes == code).sum()) for code in (EMPTY, FLAGGED, UNLIKELY))
    why = f"{empty:,} are empty and {flagged:,} have flags, which flagged=keep keeps"
    require(bool(kept.any()), f"{folder}: none of {len(kept):,} pairs is left: {why}")
    sides = (description.source, description.target)  # of a line, and of its translation
    # After a kill no file is there that belongs to others.
    for name in ("summary.json", *(f"train.{side}" for side in sides)):
        (folder / name).unlink(missing_ok=True)
    with ExitStack() as stack:
        names = [stack.enter_context(whole_file(folder / f"train.{side}")) for side in sides]
        outputs = [stack.enter_context(name.open("w", encoding="utf-8", newline="\n")) for name in names]
        for pair in kept_pairs(files, kept):
            for output, text in zip(outputs, pair, strict=True):
                output.write(f"{text}\n")
    source, target = sides[::-1] if config.kind == "back_translation" else sides
    dropped = {"empty": empty, "flagged": flagged, "unlikely": unlikely}
    least = float(scores[kept].min())
    summary = Summary(source, target, len(kept), int(kept.sum()), dropped, dict(flags.most_common()), least)
    write_file(folder / "summary.json", json.dumps(asdict(summary), indent=2) + "\n")
    return summary


def synthesise(config: SynthesiseConfig, console: "Console") -> Summary:
    """Write the pairs of `config.input` to the folder `config.output`.

    Parts that are there stay: the same command goes on after a kill, and keys that only choose pairs translate nothing.
    """
    translation = config.translation
    if translation.plugins["ray"].enabled:
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
        cluster.claim(Path(config.output), {**decides, "reverse": reverse and model_hash(reverse)})
        (folder / PARTS).mkdir(exist_ok=True)
        remove_leftovers(folder / PARTS)
    options = replace(translation.translator, run=[*map(str, models)])
    translation = replace(translation, translator=options, output=str(folder / PARTS))
    synthesis = replace(config, reverse=str(reverse) if reverse else None)
    if translation.plugins["ray"].enabled:
        reports = partial(on_cluster, translation, PartSynthesiser, (synthesis,))
    else:
        reports = partial(write_here, translation, synthesis)
    try:
        cluster.write_blocks(parts, folder / PARTS, console, reports)
    except NMTError:
        if not any((folder / PARTS).iterdir()):  # nothing was translated: leave the folder to other commands
            (folder / PARTS).rmdir()
            (folder / cluster.DESCRIPTION).unlink()
        raise
    with console.status("choosing pairs"):
        return write_pairs(config, [folder / PARTS / part.name for part in parts], folder)
