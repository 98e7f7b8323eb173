"""What lies in a run's folder; without torch, for those who must know it before the seconds that torch takes."""

import csv
import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import yaml

from nmt.config import ModelConfig, PreprocessAndTrainConfig
from nmt.errors import NMTError
from nmt.text.manifest import Manifest, difference

# What decides the weights after n updates; all else may change while a run goes on.
DECISIVE = ("seed", "data", "tokenizer", "model", "optim", "batching")
DECISIVE_TRAINER_FLAGS = ("precision", "gradient_clip_val", "gradient_clip_algorithm")


def checkpoint_step(path: Path) -> int:
    return int(path.stem.removeprefix("step="))


def list_checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first."""
    return sorted((run / "checkpoints").glob("step=*.ckpt"), key=checkpoint_step)


def read_metrics(run: Path) -> list[dict[str, str]]:
    """The rows of a run's metrics.csv, without what is still being written, or was cut off by a full disk."""
    path = run / "metrics.csv"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    whole_lines = text[: text.rfind("\n") + 1].replace("\0", "").splitlines()
    return [row for row in csv.DictReader(whole_lines) if None not in (*row, *row.values())]


def decisive(tree: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration that must not change within a run."""
    flags = {flag: tree["trainer"].get(flag) for flag in DECISIVE_TRAINER_FLAGS}
    # Compiled, dropout draws other random numbers.
    return {
        **{key: tree[key] for key in DECISIVE},
        "model": {"attention": ModelConfig.attention, **tree["model"]},  # of runs from before there was a choice
        "compile": tree.get("compile", False),
        "float32_matmul_precision": tree.get("float32_matmul_precision", "highest"),
        "trainer": flags,
    }


def check_configuration(run: Path, config: PreprocessAndTrainConfig) -> None:
    """NMTError where what was trained in that folder, if anything was, was of another configuration."""
    path = run / "config.yaml"
    if path.is_file() and (list_checkpoints(run) or (run / "model").exists()):
        changed = difference(decisive(yaml.safe_load(path.read_text(encoding="utf-8"))), decisive(asdict(config)))
        if changed:
            raise NMTError(
                f"{run} holds a run of another configuration ({changed}): "
                "pass name=OTHER for a new run, or remove that folder"
            )


def check_corpus(manifest: Manifest, config: PreprocessAndTrainConfig) -> None:
    """NMTError where the corpus was prepared with another configuration of data or tokenizer."""
    prepared = {key: manifest.content[key] for key in ("data", "tokenizer")}
    changed = difference(prepared, {"data": asdict(config.data), "tokenizer": asdict(config.tokenizer)})
    if changed:
        raise NMTError(
            f"{Path(config.prepared)} was prepared with another configuration ({changed}): "
            "pass the same options to nmt train, or prepare it anew"
        )


def is_finished(run: Path, updates: int, corpus: str) -> bool:
    """Whether its model directory is of so many updates on the corpus of that fingerprint."""
    try:
        training = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))["training"]
        return bool(training["updates"] >= updates and training["corpus"] == corpus)
    except (OSError, ValueError, LookupError, TypeError):
        return False  # `nmt train` will find out what is wrong with it, and say it


def point_latest_to(run: Path, beside: Path | None = None) -> None:
    """Let `latest` beside the run, or beside the folder that it lies in, be a link to it."""
    link = (beside or run).parent / "latest"
    if link.is_dir() and not link.is_symlink():
        raise NMTError(f"{link} is a folder, where the link to the newest run should be: move it away")
    temporary = link.with_name(f".latest-{os.getpid()}")
    temporary.unlink(missing_ok=True)  # of a killed process that had the same number, as happens in containers
    temporary.symlink_to(run.relative_to(link.parent))
    temporary.replace(link)
