"""The folder of a run: its checkpoints and configuration, its metrics.csv, and the link to the newest run."""

import csv
import os
import re
from pathlib import Path
from typing import Any

from nmt.config import CheckpointConfig, ExperimentConfig, difference, require, shown, to_tree
from nmt.data import Manifest, as_prepared
from nmt.errors import NMTError, one_line
from nmt.files import parse_json, parse_yaml, read_bytes, read_mapping

# These decide the weights after n updates; everything else may change within a run.
DECISIVE = ("seed", "data", "tokenizer", "model", "optim", "batching", "float32_matmul_precision")
DECISIVE_IN_GROUP = {"checkpoints": ("every_steps",), "trainer": ("precision", "gradient_clip_val")}
GROUPS = ("data", "tokenizer", "model", "optim", "batching", "decode", "checkpoints", "validation", "trainer")
CHECKPOINT = re.compile(r"step=[0-9]{1,18}\.ckpt")
UPDATE = re.compile(r"[0-9]{1,15}")


def checkpoint_step(path: Path) -> int:
    return int(path.stem.removeprefix("step="))


def checkpoint_path(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step={step:08d}.ckpt"


def list_checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first; other files in the folder are ignored."""
    paths = (run / "checkpoints").glob("step=*.ckpt")
    return sorted((path for path in paths if CHECKPOINT.fullmatch(path.name)), key=checkpoint_step)


def kept_checkpoints(run: Path, every_steps: int, keep: int) -> list[Path]:
    """The checkpoints to average at the end of a run, oldest first.

    They are the last one and those of multiples of `every_steps`, however often the run was stopped or extended.
    """
    paths = list_checkpoints(run)
    return [path for path in paths if checkpoint_step(path) % every_steps == 0 or path == paths[-1]][-keep:]


def remove_older(run: Path, config: CheckpointConfig) -> None:
    """Remove checkpoints that will not be averaged, except one before the last, in case the last is unreadable."""
    for path in set(list_checkpoints(run)).difference(kept_checkpoints(run, config.every_steps, max(config.keep, 2))):
        path.unlink(missing_ok=True)


def check_no_links(run: Path) -> None:
    """NMTError where a folder that training writes into is a link."""
    for name in ("checkpoints", "model", "tensorboard", "wandb"):
        require(not (run / name).is_symlink(), f"{run / name} is a link, and would not be written through: replace it")


def read_config(run: Path) -> dict[str, Any]:
    """The configuration of a run; NMTError where it cannot be read, or is none."""
    tree = read_mapping(run / "config.yaml", parse_yaml)
    groups = all(isinstance(tree.get(group, {}), dict) for group in GROUPS)
    require(groups, f"{run / 'config.yaml'}: not the configuration of a run")
    return tree


def decisive(tree: dict[str, Any]) -> dict[str, Any]:
    """The part of a configuration that must not change within a run."""
    groups = {group: {key: tree.get(group, {}).get(key) for key in keys} for group, keys in DECISIVE_IN_GROUP.items()}
    return {key: tree.get(key) for key in DECISIVE} | groups


def check_configuration(run: Path, config: ExperimentConfig) -> None:
    """NMTError where a run in that folder was trained with another configuration."""
    if (run / "config.yaml").exists() and (list_checkpoints(run) or (run / "model").exists()):
        before = read_config(run)
        changed, init = difference(decisive(before), decisive(to_tree(config))), before.get("init")
        start = f"began with init={shown(init)}, and " if init and not config.init else ""
        require(
            not changed,
            f"{run} {start}holds a run of another configuration ({changed}): "
            "pass name=OTHER for a new run, or remove that folder",
        )


def check_corpus(manifest: Manifest, config: ExperimentConfig) -> None:
    """NMTError where the corpus was prepared with another configuration of data or tokenizer."""
    trees = manifest.content, to_tree(config)
    changed = difference(*({"data": as_prepared(x["data"]), "tokenizer": x["tokenizer"]} for x in trees))
    require(
        not changed,
        f"{Path(config.prepared)} was prepared with another configuration ({changed}): "
        "pass the same options to nmt train, or prepare it again",
    )


def is_finished(run: Path, updates: int, corpus: str) -> bool:
    """True where the run's model has at least that many updates, on the corpus with that fingerprint."""
    try:
        training = read_mapping(run / "model" / "config.json", parse_json)["training"]
        return training["corpus"] == corpus and int(training["updates"]) >= updates
    except (NMTError, LookupError, TypeError, ValueError):
        return False  # `nmt train` checks the folder, and reports what is wrong


def latest_beside(folder: Path) -> Path:
    """The link `latest` beside a folder, which may be missing; NMTError where a folder has its name."""
    link = folder.parent / "latest"
    blocked = link.is_dir() and not link.is_symlink()
    require(not blocked, f"{link} is a folder, where the link to the newest run should be: move it away")
    return link


def point_latest_to(run: Path, beside: Path | None = None) -> None:
    """Make `latest` a link to a run that has a model; it is beside the run, or beside the given folder around it."""
    link = latest_beside(beside or run)
    temporary = link.with_name(f".latest-{os.getpid()}")
    temporary.unlink(missing_ok=True)  # left by a killed process with the same id, as happens in containers
    temporary.symlink_to(run.relative_to(link.parent))
    temporary.replace(link)


def read_metrics(run: Path) -> list[dict[str, str]]:
    """The rows of a run's metrics.csv, except incomplete ones: the last may be half written, or cut by a full disk."""
    path = run / "metrics.csv"
    text = read_bytes(path).decode(errors="replace") if path.exists() else ""
    whole_lines = text[: text.rfind("\n") + 1].replace("\0", "").splitlines()
    try:
        rows = [row for row in csv.DictReader(whole_lines) if None not in (*row, *row.values())]
    except csv.Error as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    return [row for row in rows if UPDATE.fullmatch(row.get("step", ""))]
