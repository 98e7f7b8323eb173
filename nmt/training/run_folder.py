"""The run folder: its checkpoints, configuration and metrics.csv, and the link to the newest run. No torch import."""

import csv
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from nmt import files
from nmt.config import (
    CheckpointConfig,
    ExperimentConfig,
    NMTError,
    build_stored,
    difference,
    one_line,
    require,
    shown,
    to_tree,
    with_defaults,
)
from nmt.files import (
    parse_json,
    parse_yaml,
    read_bytes,
    read_mapping,
    remove_leftovers,
    within,
    write_file,
)
from nmt.training.identity import decisive_settings

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


def is_first_process(environment: Mapping[str, str] = os.environ) -> bool:
    """True in the one process that prints and writes files; checks launcher variables in Lightning's order."""
    if "TORCHELASTIC_RUN_ID" in environment:
        return environment["RANK"] == "0"
    # srun started this process as a task. In an interactive shell, Lightning launches processes itself.
    if "SLURM_NTASKS" in environment and environment.get("SLURM_JOB_NAME") not in (
        "bash",
        "interactive",
    ):
        return environment["SLURM_PROCID"] == "0"
    # Lightning itself launches a node's processes, and the user sets the node's number.
    node = environment.get("NODE_RANK", environment.get("GROUP_RANK", "0"))
    return int(node) == 0 and int(environment.get("LOCAL_RANK", "0")) == 0


def checkpoint_step(path: Path) -> int:
    return int(path.stem.removeprefix("step="))


def list_checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run, oldest first; other files in the folder are ignored."""
    paths = (run / "checkpoints").glob("step=*.ckpt")
    return sorted(
        (path for path in paths if re.fullmatch(r"step=[0-9]{1,18}", path.stem)),
        key=checkpoint_step,
    )


def kept_checkpoints(run: Path, every_steps: int, keep: int) -> list[Path]:
    """The checkpoints to average, oldest first: those at multiples of `every_steps` and the last one."""
    paths = list_checkpoints(run)
    return [
        path for path in paths if checkpoint_step(path) % every_steps == 0 or path == paths[-1]
    ][-keep:]


def prune(run: Path, config: CheckpointConfig) -> None:
    """Remove the checkpoints that will not be averaged."""
    for path in set(list_checkpoints(run)).difference(
        kept_checkpoints(run, config.every_steps, config.keep)
    ):
        path.unlink()


def check_no_links(run: Path) -> None:
    """Raise NMTError if a folder that training writes to is a link."""
    for name in ("checkpoints", "model", "tensorboard", "wandb"):
        require(
            not (run / name).is_symlink(),
            f"{run / name} is a link, but nmt never writes to links: replace it",
        )


def read_config(run: Path) -> dict[str, Any]:
    """The configuration of a run, with the options that its nmt did not have; NMTError if it cannot be read."""
    tree = read_mapping(run / "config.yaml", parse_yaml)
    groups = all(isinstance(tree.get(group), dict) for group in GROUPS)
    require(groups, f"{run / 'config.yaml'}: not a run configuration")
    return with_defaults(ExperimentConfig, tree)


def is_begun(run: Path) -> bool:
    """Whether the folder has a run's configuration and results."""
    has_results = bool(list_checkpoints(run)) or (run / "model").exists()
    return (run / "config.yaml").exists() and has_results


def check_configuration(run: Path, config: ExperimentConfig) -> None:
    """Raise NMTError if the folder has a run with a different configuration, or a link that training would follow."""
    check_no_links(run)
    if is_begun(run):
        begun = build_stored(ExperimentConfig, read_config(run), str(run / "config.yaml"))
        trees = to_tree(begun), to_tree(config)
        changed = difference(decisive_settings(trees[0]), decisive_settings(trees[1]))
        if all(
            within(tree, "optim", "decay_steps") == within(tree, "trainer", "max_steps")
            for tree in trees
        ):
            changed = changed.replace(
                "optim.decay_steps:", "trainer.max_steps, where optim.schedule ends:"
            )
        init = trees[0].get("init")
        start = f", which began with init={shown(init)}," if init and not config.init else ""
        advice = "pass the same values to resume it, or pass name=OTHER for a new run"
        require(
            not changed,
            f"the run in {run}{start} has a different configuration ({changed}): {advice}",
        )


def open_folder(run: Path, config: dict[str, Any], tokenizer: Path) -> None:
    """Write a run's configuration and tokenizer, and remove a killed process's leftovers."""
    try:
        (run / "checkpoints").mkdir(parents=True, exist_ok=True)
        if is_first_process():
            latest_link(run)  # checks that nothing is in its place
            write_file(
                run / "config.yaml", yaml.safe_dump(config, sort_keys=False, allow_unicode=True)
            )
            write_file(run / "tokenizer.model", tokenizer.read_bytes())
            remove_leftovers(run)
            remove_leftovers(run / "checkpoints")
    except OSError as error:
        raise NMTError(
            f"cannot write the run folder {run} ({error.strerror}): pass run=FOLDER"
        ) from error


def is_finished(run: Path, updates: int, corpus: str) -> bool:
    """True if the run's model was trained for at least `updates` updates on the corpus with this fingerprint."""
    try:
        training = read_mapping(run / "model" / "config.json", parse_json)["training"]
        return training["corpus"] == corpus and int(training["updates"]) >= updates
    except (NMTError, LookupError, TypeError, ValueError):
        return False  # `nmt train` checks the folder and reports what is wrong


def run_state(run: Path, update: int, planned: int, delivered: int) -> str:
    """running (a process is using the folder), finished (its model has all `planned` updates), stopped or untrained."""
    try:
        with files.locked_file(run / files.LOCK, False, "", wait=0):
            return (
                "finished"
                if delivered >= max(update, planned, 1)
                else "stopped"
                if update
                else "untrained"
            )
    except NMTError:
        return "running"


def latest_link(run: Path) -> Path:
    """The link to the newest run: in the folder `runs` that contains the run, at any depth, or else beside the run.

    The link may not exist yet. Raises NMTError if a folder has its name.
    """
    root = next((folder for folder in run.parents if folder.name == "runs"), run.parent)
    link = root / "latest"
    is_folder = link.is_dir() and not link.is_symlink()
    require(
        not is_folder,
        f"{link} is a folder, but should be the link to the newest run: move it out of the way",
    )
    return link


def point_latest_to(run: Path, link: Path | None = None) -> Path:
    """Point `link`, or the run's own link `latest`, to a run that has a model; return the link."""
    link = link or latest_link(run)
    temporary = link.with_name(f".latest-{os.getpid()}")
    temporary.unlink(
        missing_ok=True
    )  # left by a killed process with the same ID, as happens in containers
    temporary.symlink_to(run.relative_to(link.parent))
    temporary.replace(link)
    return link


def read_metrics(run: Path, last: int = 0) -> list[dict[str, str]]:
    """The complete rows of metrics.csv, or its `last` ones, without a row that is half written or cut off."""
    path = run / "metrics.csv"
    text = read_bytes(path).decode(errors="replace") if path.exists() else ""
    whole_lines = text[: text.rfind("\n") + 1].replace("\0", "").splitlines()
    try:
        table = csv.DictReader(whole_lines[:1] + whole_lines[1:][-last:])
        rows = [row for row in table if None not in (*row, *row.values())]
    except csv.Error as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error
    return [row for row in rows if re.fullmatch("[0-9]{1,15}", row.get("step", ""))]
