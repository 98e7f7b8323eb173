"""Check that this machine meets the requirements of scale=paper before anything starts."""

import os
import shutil
import sys
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import table4
import torch
from complexity import largest_bytes
from plan import Row

from nmt.commands import compose
from nmt.config import ExperimentConfig
from nmt.errors import NMTError
from nmt.files import duration
from nmt.hardware import proc_value
from nmt.model import Transformer, training_flops
from nmt.training import peak_flops_per_second, precision_dtype, settle_trainer

GPUS = 8
"""The paper's number of GPUs, and the number of micro-batches per update, which the GPUs share."""
CORPUS_PAIRS = {"en-de": 4_500_000, "en-fr": 36_000_000}
"""Section 5.1."""
PAIR_BYTES = 1200
"""Disk space per pair during preparation: download, the hub client's cache, clean text and tokens."""
SENTENCE_TOKENS = 30
"""Tokens of a typical sentence."""
Requirement = tuple[str, bool, str]
"""Name, whether it is met, and an explanation."""


def require_all(options: SimpleNamespace, work: dict[str, list[Row]]) -> None:
    """Print all requirements; NMTError if any is missing."""
    found = requirements(options, work)
    if found:
        print(f"{options.table} scale={options.scale.name} needs", file=sys.stderr)
    for name, there, said in found:
        word = "MISSING" if not there else "needed" if name == "time" else "OK"
        print(f"  {name:<10} {word:<8} {said}", file=sys.stderr)
    missing = [name for name, there, _ in found if not there]
    if missing:
        raise NMTError(
            f"{options.table} scale={options.scale.name}: missing here: {', '.join(missing)}; nothing was started; "
            "scale=laptop runs the same commands at small scale"
        )


def requirements(options: SimpleNamespace, work: dict[str, list[Row]]) -> list[Requirement]:
    """The requirements of the tables, in the order in which they are printed."""
    rows = [row for own in work.values() for row in own if row.training]
    found = [
        corpus(options, name) for name in dict.fromkeys(row.corpus for row in rows if row.corpus)
    ]
    if work.get("table4") and (words := table4.lacks(options)):
        found.append(("table4", False, words))
    if rows:
        found += [gpus(options), disk(options.work, rows), hours(options, rows)]
    if work.get("table1"):
        found.append(layers(options))
    return found


def corpus(options: SimpleNamespace, name: str) -> Requirement:
    """WMT14: already prepared, in a local copy, or on the hub."""
    prepared = options.work / "data" / name
    if (prepared / "manifest.json").is_file():
        return (name, True, f"already prepared in {prepared}")
    dataset = compose("preprocess", options.scale.corpora[name]).data.plugins["hub"]
    if options.wmt14:
        patterns = [
            f"{dataset.subset}/{split}-*.parquet" for split in ("train", "validation", "test")
        ]
        lacking = [pattern for pattern in patterns if not any(Path(options.wmt14).glob(pattern))]
        words = f"no files match {' or '.join(lacking)}" if lacking else f"{dataset.subset}"
        return (name, not lacking, f"wmt14={options.wmt14}: {words}")
    if hub_answers():
        return (name, True, f"{dataset.hub} ({dataset.subset}) on the Hugging Face hub")
    copy = f"pass wmt14=FOLDER with a copy of {dataset.hub} ({dataset.subset})"
    return (name, False, f"the Hugging Face hub is not reachable; {copy}")


def hub_answers() -> bool:
    """True if the Hugging Face hub answers within seconds; its own clients would retry for half a minute."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        with urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=5):
            return True
    except OSError as error:
        return isinstance(error, urllib.error.HTTPError)


def wanted_gpus(options: SimpleNamespace) -> int:
    return torch.cuda.device_count() if options.devices == "auto" else int(options.devices)


def gpus(options: SimpleNamespace) -> Requirement:
    """GPUs: their number must divide the paper's eight micro-batches."""
    wanted, there = wanted_gpus(options), torch.cuda.device_count()
    if wanted > there or not there:
        return (
            "GPUs",
            False,
            f"{there} found; the paper used {GPUS}; 1, 2 or 4 give the same result more slowly",
        )
    if GPUS % wanted:
        return (
            "GPUs",
            False,
            f"{wanted} cannot share {GPUS} micro-batches; pass devices=8, 4, 2 or 1",
        )
    return ("GPUs", True, f"{wanted} x {torch.cuda.get_device_name()}; the paper used {GPUS}")


def disk(work: Path, rows: list[Row]) -> Requirement:
    """Disk space for corpora and checkpoints, including what they already use."""
    here = next(folder for folder in (work, *work.resolve().parents) if folder.is_dir())
    own = {folder for row in rows for folder in row.folders}
    used = sum(
        path.stat().st_size for folder in own for path in folder.rglob("*") if path.is_file()
    )
    corpora = sum(
        CORPUS_PAIRS[name] * PAIR_BYTES for name in {row.corpus for row in rows if row.corpus}
    )
    needed, free = (
        corpora + sum(checkpoint_bytes(row) for row in rows),
        shutil.disk_usage(here).free,
    )
    sizes = f"{used / 1e9:,.0f} GB already used, {free / 1e9:,.0f} GB free"
    return ("disk", free + used >= needed, f"about {needed / 1e9:,.0f} GB for {work}, {sizes}")


@cache
def configuration(*words: str) -> ExperimentConfig:
    """The configuration of a training run; cached, because composing it takes a quarter of a second."""
    config: ExperimentConfig = compose("train", list(words))
    return config


def checkpoint_bytes(row: Row) -> int:
    """The size of the kept checkpoints, the best one and one being written: weights and Adam's two moments."""
    config = configuration(*row.training)
    with torch.device("meta"):
        model = Transformer(config.model, config.tokenizer.vocabulary_size)
    return (
        3 * sum(weight.nbytes for weight in model.parameters()) * int(config.checkpoints.keep + 2)
    )


def hours(options: SimpleNamespace, rows: list[Row]) -> Requirement:
    """A lower bound on the training time: all operations at the speed of large matrix products."""
    device, many = (
        torch.device("cuda" if torch.cuda.is_available() else "cpu"),
        max(1, wanted_gpus(options)),
    )
    rate = peak_flops_per_second(device, precision_dtype(settled_precision(options)))
    torch.cuda.empty_cache()  # free it for the next processes
    seconds = sum(map(expected_flops, rows)) / rate / many
    on = f"on {many} GPU{'' if many == 1 else 's'}" if device.type == "cuda" else "without a GPU"
    fast = f"at the {rate / 1e12:.2g} TFLOP/s of matrix products alone"
    return ("time", True, f"at least {duration(seconds)} {on} to train {len(rows)} models, {fast}")


def settled_precision(options: SimpleNamespace) -> str:
    """The precision of the training runs on this machine; precision=auto depends on its devices."""
    words = [f"trainer.precision={options.precision}", "trainer.devices=1"]
    return settle_trainer(configuration(*words)).trainer.precision


def expected_flops(row: Row) -> float:
    """Approximate FLOPs of a training run, for full updates of sentences of typical length."""
    config = configuration(*row.training)
    tokens = config.batching.tokens_per_update
    pairs = tokens * SENTENCE_TOKENS, tokens * SENTENCE_TOKENS // 2, tokens * SENTENCE_TOKENS
    flops = training_flops(config.model, config.tokenizer.vocabulary_size, (tokens, tokens), pairs)
    assert config.trainer.max_steps is not None
    return float(flops * config.trainer.max_steps)


def layers(options: SimpleNamespace) -> Requirement:
    """Memory for the largest layer of Table 1."""
    main = 1024 * int((proc_value("meminfo", "MemAvailable:") or f"{2**52}").split()[0])
    free = torch.cuda.mem_get_info()[0] if torch.cuda.is_available() else main
    needed = largest_bytes(options.scale.layers)
    return (
        "layers",
        free >= needed,
        f"about {needed / 1e9:.1f} GB of memory; {free / 1e9:.1f} GB free",
    )
