"""Compare the model directory that a run delivered with the run's checkpoints."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from nmt import files
from nmt.config import (
    ExperimentConfig,
    difference,
    in_words,
    matches,
    shown,
    with_defaults,
)
from nmt.files import ModelDescription
from nmt.model import load_model
from nmt.plugins.results.bits import first_difference
from nmt.plugins.results.checks import DIFFERS, SAME, UNCHECKED, Check
from nmt.training import (
    Average,
    RunState,
    changed_settings,
    describe,
    load_checkpoint,
    read_config,
)

NOT_CHECKED = (
    "not checked: the choice of these checkpoints, the validation score and losses, metrics.csv, "
    "environment.json and README.md"
)
NOT_IN_CHECKPOINTS = ("candidates", "score")
"""Entries of a model's training record that no checkpoint has."""


def check_model(run: Path, paths: dict[int, Path]) -> Check:
    """Compare the run's model with the mean of its checkpoints.

    This covers weights, vocabulary, architecture and training record.
    """
    folder = run / "model"
    best = run / "checkpoints" / "best.ckpt"
    description = files.read_description(folder)
    updates: Any = description.training.get("averaged")
    changed = (
        changed_vocabulary(run, description)
        or changed_description(description, paths)
        # Only a valid list of updates can be used below.
        or impossible_average(updates, max(paths))
    )
    if changed:
        return Check(DIFFERS, "model", changed)
    if best.is_file():
        # The best checkpoint may be older than those that are kept. It comes first, so that a kept
        # checkpoint of the same update replaces it.
        paths = {load_checkpoint(best)["global_step"]: best, **paths}
    # Old checkpoints are deleted, so this check is not always possible.
    kept = [paths[update] for update in updates if update in paths]
    if len(kept) < len(updates):
        needed = f"needs the checkpoints of updates {shown(in_words(updates))}"
        return Check(UNCHECKED, "model", needed)
    mean = Average(*kept).make_model()
    changed = first_difference(load_model(folder).state_dict(), mean.state_dict())
    if changed:
        return Check(DIFFERS, "model", changed)
    same = f"the mean of the checkpoints of updates {in_words(updates)}; {NOT_CHECKED}"
    return Check(SAME, "model", same)


def impossible_average(updates: Any, newest: int) -> str:
    """Why a model cannot be the mean of the checkpoints of these updates; empty if it can."""
    problem = f"config.json: training.averaged is {shown(in_words(updates))}"
    if not matches(updates, list[int]) or not updates:
        return f"{problem}, but must list updates"
    # A duplicate would count twice in a mean.
    has_duplicates = len(set(updates)) < len(updates)
    if has_duplicates or not all(0 < update <= newest for update in updates):
        return f"{problem}, but the updates of the run are 1 to {newest:,}"
    return ""


def changed_vocabulary(run: Path, description: ModelDescription) -> str:
    """How the run's tokenizer files differ from the description's; empty if they do not."""
    for path in (run / "model" / "tokenizer.model", run / "tokenizer.model"):
        if not path.is_file() or files.sha256(path) != description.tokenizer:
            return f"{path} is missing or is not the vocabulary in model/config.json"
    return ""


def changed_description(description: ModelDescription, paths: dict[int, Path]) -> str:
    """How config.json differs from the checkpoint of its last update; empty if it does not."""
    newest = max(paths)
    updates = description.training.get("updates")
    if updates not in paths:
        problem = f"config.json: training.updates is {shown(in_words(updates))}"
        return f"{problem}, but the last checkpoint is {newest:,}"
    # Described as training describes its models, so that both records have the same form.
    average = Average()
    checkpoint = load_checkpoint(paths[updates])
    average.state = RunState(**checkpoint["nmt"])
    average.made = checkpoint["global_step"]
    changed = difference(facts_of(description), facts_of(describe(average)))
    return f"config.json: {shown_difference(changed)}" if changed else ""


def facts_of(description: ModelDescription) -> dict[str, Any]:
    """The facts that a description and a checkpoint both record, except the averaged updates.

    The mean itself is compared by its weights.
    """
    facts = asdict(description)
    training = facts["training"]
    for key in (*NOT_IN_CHECKPOINTS, "averaged"):
        training.pop(key, None)
    if isinstance(training.get("config"), dict):
        # Older versions of nmt did not record options that were added later.
        training["config"] = with_defaults(ExperimentConfig, training["config"])
    return facts


def shown_difference(changed: str) -> str:
    """A difference in at most 300 characters, because the record of a corpus may be long."""
    line = " ".join(changed.split())
    line = "".join(letter for letter in line if letter.isprintable())
    return line if len(line) <= 300 else f"{line[:300]}..."


def changed_configuration(run: Path, newest: dict[str, Any]) -> str:
    """How decisive settings in config.yaml differ from the newest checkpoint; empty: not at all."""
    return changed_settings(newest, read_config(run))
