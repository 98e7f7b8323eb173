"""The folder of a run, and the link to the newest one. No torch import."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from nmt import files
from nmt.config import (
    Change,
    CheckpointConfig,
    ExperimentConfig,
    NMTError,
    build_stored,
    changes_between,
    listed,
    shown,
    to_tree,
    with_defaults,
)
from nmt.files import (
    parse_json,
    parse_yaml,
    read_mapping,
    remove_leftovers,
    within,
    write_file,
)
from nmt.training.identity import decisive_settings
from nmt.training.launcher import is_first_process

GROUPS = (
    "data",
    "tokenizer",
    "model",
    "optim",
    "batching",
    "decode",
    "checkpoints",
    "validation",
    "trainer",
)
"""The groups that the configuration of every run has."""

WRITTEN_FOLDERS = ("checkpoints", "model", "tensorboard", "wandb")
"""The folders that training writes to."""


def checkpoint_step(path: Path) -> int:
    """The number of the update after which a checkpoint was saved."""
    return int(path.stem.removeprefix("step="))


def list_checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first; other files in the folder are ignored."""
    paths = []
    for path in (run / "checkpoints").glob("step=*.ckpt"):
        # At most 18 digits, so that a foreign file's number fits 64 bits. `glob` alone also matches
        # `step=x.ckpt`, and best.ckpt is never among them.
        if re.fullmatch(r"step=[0-9]{1,18}", path.stem):
            paths.append(path)
    return sorted(paths, key=checkpoint_step)


def kept_checkpoints(run: Path, every_steps: int, keep: int) -> list[Path]:
    """The last `keep` checkpoints to average, oldest first.

    Those are the checkpoints at multiples of `every_steps` and the last one.
    """
    paths = list_checkpoints(run)
    # Other checkpoints were saved after a time or a signal. Without them, a run that was stopped or
    # extended averages the same checkpoints as an uninterrupted run.
    regular = [path for path in paths[:-1] if checkpoint_step(path) % every_steps == 0]
    return [*regular, *paths[-1:]][-keep:]


def prune(run: Path, config: CheckpointConfig) -> None:
    """Remove the checkpoints that will not be averaged."""
    kept = kept_checkpoints(run, config.every_steps, config.keep)
    for path in list_checkpoints(run):
        if path not in kept:
            path.unlink()


def check_no_links(run: Path) -> None:
    """Raise NMTError if a folder that training writes to is a link."""
    # Training removes and replaces files in these folders, and must not touch files elsewhere.
    for name in WRITTEN_FOLDERS:
        path = run / name
        if path.is_symlink():
            raise NMTError(f"{path} is a link, but nmt never writes to links: replace it")


def read_config(run: Path) -> dict[str, Any]:
    """The configuration of a run, with the options that its nmt did not have.

    Raises NMTError if it cannot be read.
    """
    path = run / "config.yaml"
    tree = read_mapping(path, parse_yaml)
    # The file may be edited or foreign, and other code reads these groups without a check.
    for group in GROUPS:
        if not isinstance(tree.get(group), dict):
            raise NMTError(f"{path}: not a run configuration")
    return with_defaults(ExperimentConfig, tree)


def is_begun(run: Path) -> bool:
    """Whether the folder has a run's configuration and results."""
    # A run that ended before its first checkpoint leaves only a configuration.
    has_results = bool(list_checkpoints(run)) or (run / "model").exists()
    return (run / "config.yaml").exists() and has_results


def as_set_by_user(change: Change) -> Change:
    """Rename the change of a derived key to the key that the user sets."""
    if change.key != "optim.decay_steps":
        return change
    return replace(change, key="trainer.max_steps, where optim.schedule ends")


def check_configuration(run: Path, config: ExperimentConfig) -> None:
    """Raise NMTError if the folder has a run with a different configuration.

    Also raise it for a link that training would follow.
    """
    check_no_links(run)
    if not is_begun(run):
        return
    begun = build_stored(ExperimentConfig, read_config(run), str(run / "config.yaml"))
    before = to_tree(begun)
    now = to_tree(config)
    changes = changes_between(decisive_settings(before), decisive_settings(now))
    if not changes:
        return
    if ends_with_schedule(before) and ends_with_schedule(now):
        changes = [as_set_by_user(change) for change in changes]
    start = ""
    if begun.init and not config.init:
        start = f", which began with init={shown(begun.init)},"
    raise NMTError(
        f"the run in {run}{start} has a different configuration ({listed(changes)}): "
        "pass the same values to resume it, or pass name=OTHER for a new run"
    )


def ends_with_schedule(tree: dict[str, Any]) -> bool:
    """Whether a run's schedule ends at its last update."""
    return bool(within(tree, "optim", "decay_steps") == within(tree, "trainer", "max_steps"))


def open_folder(run: Path, config: dict[str, Any], tokenizer: Path) -> None:
    """Write a run's configuration and tokenizer, and remove a killed process's leftovers."""
    try:
        (run / "checkpoints").mkdir(parents=True, exist_ok=True)
        if is_first_process():
            latest_link(run)  # checks that nothing is in its place
            text = yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
            write_file(run / "config.yaml", text)
            write_file(run / "tokenizer.model", tokenizer.read_bytes())
            # This process holds the lock of the run, so no other process is writing here.
            remove_leftovers(run)
            remove_leftovers(run / "checkpoints")
    except OSError as error:
        raise NMTError(
            f"cannot write the run folder {run} ({error.strerror}): pass run=FOLDER"
        ) from error


def is_finished(run: Path, updates: int, corpus: str) -> bool:
    """Whether the run's model was trained for at least `updates` updates on a corpus.

    `corpus` is its fingerprint.
    """
    try:
        training = read_mapping(run / "model" / "config.json", parse_json)["training"]
        return training["corpus"] == corpus and int(training["updates"]) >= updates
    except (NMTError, LookupError, TypeError, ValueError):
        return False  # `nmt train` checks the folder and reports what is wrong


def run_state(run: Path, update: int, planned: int, delivered: int) -> str:
    """Whether a run is running, finished, stopped or untrained.

    A run is running while a process uses the folder, and finished if its model was trained for all
    `planned` updates. `delivered` is the number of updates of the model, and `update` the number of
    updates of the last checkpoint.
    """
    try:
        # A shared lock, so that two listings do not mistake each other for a training run.
        with files.locked_file(run / files.LOCK, False, "", wait=0):
            pass
    except NMTError:
        return "running"
    if delivered >= max(update, planned, 1):
        return "finished"
    return "stopped" if update else "untrained"


def latest_link(run: Path) -> Path:
    """The link to the newest run.

    It is in the folder `runs` that contains the run, at any depth, or else beside the run, and may
    not exist yet. Raises NMTError if a folder has its name.
    """
    root = run.parent
    for folder in run.parents:
        if folder.name == "runs":
            root = folder
            break
    link = root / "latest"
    if link.is_dir() and not link.is_symlink():
        raise NMTError(
            f"{link} is a folder, but should be the link to the newest run: move it out of the way"
        )
    return link


def point_latest_to(run: Path, link: Path | None = None) -> Path:
    """Point `link`, or the run's own link `latest`, to a run that has a model; return the link."""
    link = link or latest_link(run)
    temporary = link.with_name(f".latest-{os.getpid()}")
    # Left by a killed process with the same ID, as happens in containers.
    temporary.unlink(missing_ok=True)
    # Relative, so that the folder of runs can be moved or mounted elsewhere.
    temporary.symlink_to(run.relative_to(link.parent))
    # A rename is atomic: another command never finds the link missing.
    temporary.replace(link)
    return link
