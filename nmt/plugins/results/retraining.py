"""Train a run again between its checkpoints, in a temporary folder, and compare all bits."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console

from nmt import data, files, hardware
from nmt.config import ExperimentConfig, NMTError, build_stored, difference, in_words, to_tree
from nmt.plugins.results.bits import first_difference
from nmt.plugins.results.checks import ANOTHER, DIFFERS, MOST_THREADS_PER_CORE, SAME, Check
from nmt.plugins.results.delivered import changed_configuration, check_model
from nmt.plugins.results.options import VerifyConfig
from nmt.training import (
    Training,
    checkpoint_step,
    environment_of,
    list_checkpoints,
    load_checkpoint,
    read_config,
)

STATE = {
    "weights": "state_dict",
    "optimizer": "optimizer_states",
    "scaler": "MixedPrecision",
    "update": "global_step",
    "skipped": "skipped",
}
"""The state that the next updates depend on: name for users -> key in a checkpoint."""
# The scaler exists only with 16-bit floats on a GPU, and gradients decide which updates are
# skipped.
OPTIONS = ("weights", "optimizer", "update")
"""What a checkpoint has in every environment, but for the values of tensors."""


def state_of(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Everything that the next updates depend on, with names for users."""
    return {name: checkpoint.get(key) for name, key in STATE.items()}


def options_of(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """The state of a checkpoint that is equal in every environment, with names for users."""
    return {name: checkpoint.get(STATE[name]) for name in OPTIONS}


def environment_of_run(run: Path, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """The environment that the last bits depend on; NMTError if the run does not record it."""
    # By checkpoint, because a run may resume on another machine.
    facts = environment_of(checkpoint["nmt"])
    path = run / "environment.json"
    if "processor" not in facts:  # an older version of nmt recorded it for the whole run
        facts["processor"] = files.read_mapping(path, files.parse_json).get("processor")
    if not facts["processor"]:
        raise NMTError(f"{path}: does not name the processor; restore the file")
    return facts


def train_again(config: VerifyConfig, console: Console) -> Iterator[Check]:
    """Train again from each checkpoint and compare the result with the next.

    NMTError if the corpus has changed.
    """
    run = Path(config.run or "")
    paths = {checkpoint_step(path): path for path in list_checkpoints(run)}
    # Everything that may be missing is checked before any training.
    pairs = segments([*paths], config.step)
    if not pairs:
        problem = f"{run}, step={in_words(config.step)}: no next checkpoint to compare with"
        raise NMTError(f"{problem}; use {possible_starts([*paths])}")
    read_config(run)  # checks that the file exists
    # Each segment starts from a stored checkpoint, so an error in one segment does not hide an
    # error in another.
    for start, end in pairs:
        yield check_segment(config, console, paths, start, end)
    changed = changed_configuration(run, load_checkpoint(list_checkpoints(run)[-1]))
    if changed:
        yield Check(DIFFERS, "config.yaml", changed)
    if (run / "model").exists():
        yield check_model(run, paths)


def segments(updates: list[int], step: int | None) -> list[tuple[int, int]]:
    """The updates between which to train again: from `step`, or from each checkpoint if it is None.

    A run with a single checkpoint is trained again from its beginning.
    """
    pairs = [*pairwise([0, *updates])]
    if step is not None:
        return [pair for pair in pairs if pair[0] == step]
    # The segment from 0 may be most of the training, because old checkpoints are removed.
    return pairs[1:] or pairs


def possible_starts(updates: list[int]) -> str:
    """The values of `step` that the checkpoints of a run allow."""
    if not updates:
        return "a run that has checkpoints"
    starts = [0, *updates[:-1]]
    return ", ".join(str(start) for start in starts)


def check_segment(
    config: VerifyConfig, console: Console, paths: dict[int, Path], start: int, end: int
) -> Check:
    """Train again from update `start` to `end`, and compare with the checkpoint at `end`."""
    run = Path(config.run or "")
    path = paths[end]
    # The checkpoint's configuration, not config.yaml, which could have been edited since.
    before = load_checkpoint(path)
    environment = environment_of_run(run, before)
    # The folder may have been moved or renamed since.
    tree = {**before["nmt"]["config"], "run": str(run)}
    original = build_stored(ExperimentConfig, tree, str(path))
    corpus = data.corpus_of(run, before["nmt"], config.prepared)
    training = Training(original, corpus, console)  # checks the files of the corpus
    use_threads(str(path), environment["device"])
    training.checkpoint = paths.get(start)
    training.update = start
    # The tensors of `after` are read from its file when they are compared.
    # In a separate folder, so that the run never changes.
    with TemporaryDirectory() as folder:
        after = repeated(training, original, Path(folder) / "run", end)
        return compared_segment(start, end, before, after, environment)


def use_threads(checkpoint: str, device: str) -> None:
    """Use the recorded number of threads, which determines the order of sums."""
    recorded = re.search(r"\(([0-9]{1,9}) threads\)", device)
    if not recorded:
        return
    threads = int(recorded[1])
    most = MOST_THREADS_PER_CORE * hardware.usable_cores()
    if not 0 < threads <= most:
        trained = f"{checkpoint} was trained with {recorded[1]} threads"
        raise NMTError(f"{trained}: for more than {most}, use a machine with more cores")
    torch.set_num_threads(threads)


def repeated(training: Training, original: ExperimentConfig, run: Path, end: int) -> dict[str, Any]:
    """Train to update `end` in another run folder; return the checkpoint.

    Its file must stay while the checkpoint is used.
    """
    # One device gives the same bits as several. Only updates count here, so there is no time limit.
    trainer = replace(original.trainer, devices=1, num_nodes=1, max_steps=end, max_time=None)
    # Validation changes no weights, so it runs once and translates nothing.
    validation = replace(original.validation, every_steps=end, bleu_sentences=0, best="perplexity")
    # The recorded configuration has the updates that `minutes` led to; planned again, they would
    # depend on the clock.
    again = replace(original, minutes=None, run=str(run), trainer=trainer, validation=validation)
    # This training must not appear in the user's records.
    again.logger = []
    training.config = again
    training.state.config = to_tree(again)
    training.folder = run
    interrupted = training.fit()
    # The trainer ends quietly after Ctrl-C, but a comparison would be wrong then.
    if interrupted:
        raise KeyboardInterrupt
    return load_checkpoint(list_checkpoints(run)[-1])


def compared_segment(
    start: int, end: int, before: dict[str, Any], after: dict[str, Any], recorded: dict[str, Any]
) -> Check:
    """Compare a checkpoint of the run with the one `after` training again.

    `recorded` is the environment of the run.
    """
    now = environment_of(after["nmt"])
    environment = changed_environment(before, recorded, now, range(start + 1, end))
    changed = first_difference(state_of(before), state_of(after))
    what = f"update {start:,} to {end:,}"
    detail = f"{changed or 'all bits are equal'}; "
    # Facts that an older version of nmt did not record may differ unnoticed.
    not_recorded = [name for name in now if name not in recorded]
    if environment:
        detail += f"another environment: {environment}"
    elif not_recorded:
        detail += f"environment: equal; the run did not record {', '.join(not_recorded)}"
    else:
        detail += "environment: equal"
    if not changed:
        return Check(SAME, what, detail)
    # Another environment changes bits, but neither options nor the number of updates.
    other_options = first_difference(options_of(before), options_of(after), tensors=False)
    if environment and not other_options:
        return Check(ANOTHER, what, f"{detail}; the difference proves nothing")
    return Check(DIFFERS, what, detail)


def changed_environment(
    checkpoint: dict[str, Any], recorded: dict[str, Any], now: dict[str, Any], updates: range
) -> str:
    """How this environment differs from the recorded one, or that the run moved at `updates`."""
    # Older versions of nmt recorded less.
    comparable = {key: now.get(key) for key in recorded}
    changed = difference(recorded, comparable)
    moves = [update for update in checkpoint["nmt"].get("moved", []) if update in updates]
    if not moves:
        return changed
    moved = f"changed at update {moves[0]:,}"
    return f"{changed}, {moved}" if changed else moved
