"""`nmt synthesise`: a corpus of lines to pairs for training, by the blocks that `nmt translate --ray` has too.

parts/         Parquet files of translations and what decides whether a pair is kept, each whole or not there
train.LANGUAGE the pairs, as two files
summary.json   what was kept, and why the rest was not
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from nmt.config import TranslateConfig, require
from nmt.errors import NMTError
from nmt.evaluation import bleu_tokenizer, sentence_scorer
from nmt.files import find_model_directory, remove_leftovers, whole_file, write_file
from nmt.plugins.cluster import blocks as cluster, devices
from nmt.plugins.cluster.blocks import Block, BlockTranslator
from nmt.plugins.cluster.on_ray import on_cluster, require_ray
from nmt.plugins.synthesize.command import SynthesisConfig
from nmt.text import TARGET, not_parallel
from nmt.translation import (
    Translation,
    find_models,
    flagger,
    load_translator,
    warn,
    what_decides,
    with_engine,
)

if TYPE_CHECKING:
    from rich.console import Console

KEPT, EMPTY, FLAGGED, UNLIKELY = range(4)
"""What becomes of a pair."""


@dataclass
class Summary:
    """What became of the lines."""

    given: str
    """The language of the lines, and that of their translations."""
    written: str
    lines: int
    kept: int
    dropped: dict[str, int]
    """Lines by the reason why they were left out."""
    flags: dict[str, int]
    """Pairs that have each flag; a pair may have several."""
    least: float | None
    """The lowest log P per token of a pair that is kept."""


class PartWriter(BlockTranslator):
    """Translates parts, chooses among several translations by a metric, and judges the pairs."""

    def __init__(self, config: TranslateConfig, metric: str) -> None:
        super().__init__(config)
        self.metric = metric

    @cached_property
    def flags_of(self) -> Callable[[str, Translation], list[str]]:
        return flagger(find_models(self.config.translator.run))

    def write(self, block: Block, lines: list[str], rows: list[list[Translation]]) -> None:
        best, tokenizer = [translations[0] for translations in rows], self.translator.tokenizer
        if block.reference:
            references = cluster.read_block(block.reference, self.notices.append)
            assert self.translator.models
            language = self.translator.models.target(self.config.translator)
            like = sentence_scorer(self.metric, bleu_tokenizer(None, language, references))
            best = [  # of equal ones, the likeliest
                max(translations, key=lambda translation: like(translation.text, reference))
                for translations, reference in zip(rows, references, strict=True)
            ]
        tokens = tokenizer.encode([tokenizer.clean(translation.text) for translation in best], TARGET)
        pairs = zip(best, tokens, strict=True)
        scores = [translation.log_probability / (len(ids) + 1) for translation, ids in pairs]  # 1: the end symbol
        flags = pa.array(map(self.flags_of, lines, best), pa.list_(pa.string()))
        more = {"log_probability_per_token": scores, "flags": flags}
        cluster.write_block(Path(self.config.output), block, lines, best, **more)


@cache
def part_writer(metric: str) -> PartWriter:
    """That of a process on one of several devices."""
    writer = PartWriter(cast(TranslateConfig, devices.worker_config), metric)
    writer.translator = devices.worker_translator()
    return writer


def write_part(metric: str, row: dict[str, Any]) -> dict[str, Any]:
    """In a process of the pool: write a part."""
    return part_writer(metric)(row)


def write_here(config: TranslateConfig, metric: str, parts: Sequence[Block]) -> Iterator[dict[str, Any]]:
    """Write parts on this machine; gives the report of each one."""
    rows = map(asdict, parts)
    if config.translator.compute.devices == 1:
        writer = PartWriter(config, metric)
        writer.translator = load_translator(config.translator, warn)
        yield from map(writer, rows)
    else:
        with devices.on_devices(config) as pool:
            yield from pool.run(partial(write_part, metric), rows)


def find_parts(config: SynthesisConfig) -> tuple[list[Block], dict[str, Any]]:
    """The parts of the input, and the SHA-256 of all texts; NMTError where the references are not parallel."""
    cut_files = partial(cluster.cut, size=config.lines)
    parts, hashes = cut_files(cluster.find_files(config.input))
    require(bool(parts), f"input={config.input}: it is empty")
    if config.reference is None:
        return parts, {"input": [*hashes.values()], "reference": None}
    references, reference_hashes = cut_files(cluster.find_files(config.reference, "reference"))
    shapes = [[(part.first, part.count) for part in side] for side in (parts, references)]
    if shapes[0] != shapes[1]:
        raise not_parallel((config.input, config.reference), [sum(count for _, count in shape) for shape in shapes])
    parts = [replace(part, reference=reference) for part, reference in zip(parts, references, strict=True)]
    return parts, {"input": [*hashes.values()], "reference": [config.metric, *reference_hashes.values()]}


def worst(scores: NDArray[np.float64], share: float) -> NDArray[np.int64]:
    """The indices of that share of the scores, rounded down, that are lowest; of equal ones, the last."""
    order = np.lexsort((-np.arange(len(scores)), np.nan_to_num(scores, nan=-np.inf, neginf=-np.inf)))
    return order[: math.floor(share * len(scores) + 1e-9)]


def judge_pairs(files: Sequence[Path], config: SynthesisConfig) -> tuple[list[int], list[float], Counter[str]]:
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
            pair = row["source"].strip() and row["translation"].strip()
            flags.update(row["flags"] if pair else ())
            codes.append(EMPTY if not pair else FLAGGED if row["flags"] and config.flagged == "drop" else KEPT)
            scores.append(row["log_probability_per_token"])
    left = [index for index, code in enumerate(codes) if code == KEPT]
    for index in worst(np.array(scores, np.float64)[left], config.drop):
        codes[left[index]] = UNLIKELY
    return codes, scores, flags


def kept_pairs(files: Sequence[Path], codes: list[int]) -> Iterator[tuple[str, str]]:
    """Line and translation of the pairs that are kept, in the order of the lines."""
    fates = iter(codes)
    for file in files:
        rows = pq.read_table(file, columns=["source", "translation"]).to_pylist()
        pairs = zip(rows, islice(fates, len(rows)), strict=True)
        yield from ((row["source"], row["translation"]) for row, fate in pairs if fate == KEPT)


def write_pairs(config: SynthesisConfig, files: Sequence[Path], folder: Path) -> Summary:
    """Write the pairs of these Parquet files that are good enough, and a summary; NMTError if there are none."""
    _, [description, *_], _ = find_models(config.translation.translator.run)
    codes, scores, flags = judge_pairs(files, config)
    kept, empty, flagged, unlikely = (codes.count(code) for code in (KEPT, EMPTY, FLAGGED, UNLIKELY))
    why = f"{empty:,} are empty and {flagged:,} have flags, which flagged=keep keeps"
    require(kept > 0, f"{folder}: none of {len(codes):,} pairs is left: {why}")
    sides = (description.source, description.target)  # of a line, and of its translation
    # After a kill no file is there that belongs to others.
    for name in ("summary.json", *(f"train.{side}" for side in sides)):
        (folder / name).unlink(missing_ok=True)
    with ExitStack() as stack:
        names = [stack.enter_context(whole_file(folder / f"train.{side}")) for side in sides]
        outputs = [stack.enter_context(name.open("w", encoding="utf-8", newline="\n")) for name in names]
        for pair in kept_pairs(files, codes):
            for output, text in zip(outputs, pair, strict=True):
                output.write(f"{text}\n")
    dropped = {"empty": empty, "flagged": flagged, "unlikely": unlikely}
    least = min(score for score, code in zip(scores, codes, strict=True) if code == KEPT)
    summary = Summary(*sides, len(codes), kept, dropped, dict(flags.most_common()), least)
    write_file(folder / "summary.json", json.dumps(asdict(summary), indent=2) + "\n")
    return summary


def synthesize(config: SynthesisConfig, console: "Console") -> Summary:
    """Write the pairs of `config.input` to the folder `config.output`.

    Parts that are there stay: the same command goes on after a kill, and keys that only choose pairs translate nothing.
    """
    translation, folder = config.translation, Path(config.output).absolute()
    on_ray, part_folder = translation.plugins["ray"].enabled, folder / "parts"
    if on_ray:
        require_ray(translation)
    else:
        translation = replace(translation, translator=with_engine(translation.translator, warn))
    with console.status("reading the input"):
        parts, hashes = find_parts(config)
        models = [str(find_model_directory(name).resolve()) for name in translation.translator.run]
        cluster.claim(Path(config.output), {"lines": config.lines, **what_decides(translation), **hashes})
        part_folder.mkdir(exist_ok=True)
        remove_leftovers(part_folder)
    options = replace(translation.translator, run=models)
    translation = replace(translation, translator=options, output=str(part_folder))
    write_on_ray = partial(on_cluster, translation, PartWriter, (config.metric,))
    reports = write_on_ray if on_ray else partial(write_here, translation, config.metric)
    try:
        cluster.write_blocks(parts, part_folder, console, reports)
    except NMTError:
        if not any(part_folder.iterdir()):  # nothing was translated: leave the folder to other commands
            part_folder.rmdir()
            (folder / cluster.DESCRIPTION).unlink()
        raise
    with console.status("choosing pairs"):
        return write_pairs(config, [part_folder / part.name for part in parts], folder)
