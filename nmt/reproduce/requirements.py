"""What scale=paper needs, and whether this machine has it: told in one screen, before anything is begun."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from nmt.commands import compose
from nmt.commands.reproduce import ReproduceConfig
from nmt.config import DataConfig, ExperimentConfig
from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.model.flops import training_flops
from nmt.preparation.corpora import hub_answers
from nmt.report.content import duration
from nmt.reproduce.complexity.measuring import Expected
from nmt.reproduce.scales import Scale
from nmt.reproduce.speed import Speed, ask, measure_speed
from nmt.reproduce.table import Row, Table

GPUS = 8
"""The paper's, and the micro-batches of an update, which the GPUs share out."""
PAIRS = {"en-de": 4_500_000, "en-fr": 36_000_000}
"""Section 5.1."""
LENGTH = 30
"""Tokens of a usual sentence."""
FLOAT = 4
"""Bytes."""
PAIR_BYTES = 1200
"""Of a pair, while it is prepared: downloaded, as the hub's client keeps it, as clean text, and as tokens."""


@dataclass
class Requirement:
    """One thing that is needed."""

    name: str
    there: bool
    said: str
    word: str = "there"
    """What is said of it where it is not missing."""


def require_all(config: ReproduceConfig, scale: Scale, tables: list[tuple[Table, list[Row]]], console: Console) -> None:
    """Print what is needed, there or missing; NMTError where something is missing."""
    found = requirements(config, scale, tables, console)
    if not found:
        return
    console.print(f"nmt reproduce {config.table} scale={scale.name} needs")
    for one in found:
        console.print(f"  {one.name:<10} {one.word if one.there else 'MISSING':<8} {one.said}")
    missing = [one.name for one in found if not one.there]
    if missing:
        raise NMTError(
            f"table={config.table} scale={scale.name}: missing here: {', '.join(missing)}; nothing was begun; "
            "scale=laptop runs the same commands in small"
        )


def requirements(
    config: ReproduceConfig, scale: Scale, tables: list[tuple[Table, list[Row]]], console: Console
) -> list[Requirement]:
    """All that the tables need, in the order in which it is told."""
    rows = {row.name: row for _, own in tables for row in own if row.training}.values()
    found = [corpus(config, scale, name) for name in dict.fromkeys(row.corpus for row in rows if row.corpus)]
    found += [
        Requirement(table.name, False, words) for table, own in tables if own and (words := table.lacks(config, scale))
    ]
    if rows:
        with console.status("measuring how fast this machine trains"):
            speed = measure_speed(config.precision)
        found += [devices(config, speed), disk(config, list(rows)), hours(config, list(rows), speed)]
    for grid in {row.grid for _, own in tables for row in own if row.grid}:
        with console.status("measuring how fast this machine computes layers"):
            found.append(layers(Expected(**ask("nmt.reproduce.table1", grid))))
    return found


def corpus(config: ReproduceConfig, scale: Scale, name: str) -> Requirement:
    """WMT14 on the hub, in a local copy, or prepared already."""
    if (Path(config.work) / "data" / name / "manifest.json").is_file():
        return Requirement(name, True, f"prepared already in {Path(config.work) / 'data' / name}")
    data: DataConfig = compose("preprocess", list(scale.corpora[name])).data
    if config.wmt14:
        splits = ("train", "validation", "test")
        patterns = [f"{data.subset}/{split}-*.parquet" for split in splits]
        lacking = [pattern for pattern in patterns if not any(Path(config.wmt14).glob(pattern))]
        words = f"there is no {' and no '.join(lacking)}" if lacking else f"{data.subset}"
        return Requirement(name, not lacking, f"wmt14={config.wmt14}: {words}")
    if hub_answers():
        return Requirement(name, True, f"{data.hub} ({data.subset}) on the Hugging Face hub, which answers")
    return Requirement(
        name,
        False,
        f"the Hugging Face hub does not answer; give a copy of {data.hub} ({data.subset}) with wmt14=FOLDER",
    )


def devices(config: ReproduceConfig, speed: Speed) -> Requirement:
    """GPUs: the paper's eight, or as many as divide its eight micro-batches."""
    wanted = wanted_gpus(config, speed)
    paper = f"the paper had {GPUS}; 1, 2 or 4 take longer and give the same"
    if not speed.gpus:
        return Requirement("GPUs", False, f"there is none; {paper}")
    if wanted > speed.gpus:
        return Requirement("GPUs", False, f"devices={wanted}, but there are {speed.gpus} ({speed.device})")
    if GPUS % wanted:
        return Requirement("GPUs", False, f"{wanted} cannot share {GPUS} micro-batches; pass devices=8, 4, 2 or 1")
    return Requirement("GPUs", True, f"{wanted} x {speed.device}" + ("" if wanted == GPUS else f"; {paper}"))


def wanted_gpus(config: ReproduceConfig, speed: Speed) -> int:
    return speed.gpus if config.devices == "auto" else int(config.devices)


def disk(config: ReproduceConfig, rows: list[Row]) -> Requirement:
    """For corpora and checkpoints, less what lies there already."""
    work = Path(config.work)
    here = next(folder for folder in (work, *work.resolve().parents) if folder.is_dir())
    own = {stage.product.parent for row in rows for stage in row.stages}
    used = sum(path.stat().st_size for folder in own for path in folder.rglob("*") if path.is_file())
    corpora = sum(PAIRS[name] * PAIR_BYTES for name in {row.corpus for row in rows if row.corpus})
    needed = corpora + sum(checkpoint_bytes(row.training) for row in rows)
    free = shutil.disk_usage(here).free
    there = f"{used / 1e9:,.0f} GB of it used already, " if used > 1e8 else ""
    words = f"about {needed / 1e9:,.0f} GB for {work}, {there}{free / 1e9:,.0f} GB are free"
    return Requirement("disk", free + used >= needed, words)


def hours(config: ReproduceConfig, rows: list[Row], speed: Speed) -> Requirement:
    """How long training would take at the speed that was measured, were many GPUs as fast as each of them."""
    many = max(1, wanted_gpus(config, speed))
    seconds = sum(expected_flops(row.training) for row in rows) / speed.flops_per_second / many
    on = "without a GPU" if not speed.gpus else f"on {many} GPU{'' if many == 1 else 's'}"
    rate = f"{speed.flops_per_second / 1e12:.2g} TFLOP/s"
    words = f"about {duration(seconds)} {on} to train {len(rows)} models, at {rate} as the base model has them here now"
    return Requirement("time", True, words, word="needed")


def layers(found: Expected) -> Requirement:
    """Memory and time for Table 1's largest layers."""
    memory = f"about {found.memory / 1e9:.1f} GB of memory, {found.free / 1e9:.1f} GB are free"
    return Requirement("layers", found.free >= found.memory, f"{memory}; about {duration(found.seconds)}")


def expected_flops(words: tuple[str, ...]) -> float:
    """About what a training will need, were all sentences of usual length and every update full."""
    config: ExperimentConfig = compose("train", list(words))
    tokens = config.batching.tokens_per_update
    pairs = tokens * LENGTH, tokens * LENGTH // 2, tokens * LENGTH
    flops = training_flops(config.model, config.tokenizer.vocabulary_size, (tokens, tokens), pairs)
    return float(flops * config.trainer["max_steps"])


def checkpoint_bytes(words: tuple[str, ...]) -> int:
    """Checkpoints of weights and Adam's two moments: those that are kept, the best, and one being written."""
    config: ExperimentConfig = compose("train", list(words))
    with torch.device("meta"):
        model = Transformer(config.model, config.tokenizer.vocabulary_size)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return 3 * FLOAT * parameters * (config.checkpoints.keep + 2)
