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
from nmt.config import ExperimentConfig, build_stored, difference, in_words, require, to_tree
from nmt.plugins.results.bits import first_difference
from nmt.plugins.results.commands import VerifyConfig
from nmt.plugins.results.delivered import changed_configuration, check_model
from nmt.plugins.results.verify import ANOTHER, DIFFERS, Check, check_of
from nmt.training import (
    Training,
    checkpoint_step,
    environment_of,
    list_checkpoints,
    load_checkpoint,
    read_config,
)


def compared(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Everything that the next updates depend on, with names for users."""
    keys = {"weights": "state_dict", "optimizer": "optimizer_states", "scaler": "MixedPrecision"}
    return {
        name: checkpoint.get(key)
        for name, key in {**keys, "update": "global_step", "skipped": "skipped"}.items()
    }


def environment_of_run(run: Path, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """What the last bits of a checkpoint depend on; NMTError if the run does not record it."""
    facts = environment_of(checkpoint["nmt"])
    if "processor" not in facts:  # an older nmt recorded it for the whole run
        facts["processor"] = files.read_mapping(run / "environment.json", files.parse_json).get(
            "processor"
        )
    require(
        bool(facts["processor"]),
        f"{run}/environment.json: does not name the processor; restore the file",
    )
    return facts


def train_again(config: VerifyConfig, console: Console) -> Iterator[Check]:
    """Train again from each checkpoint and compare the result with the next; NMTError if the corpus has changed."""
    run, step = Path(config.run or ""), config.step
    paths = {checkpoint_step(path): path for path in list_checkpoints(run)}
    pairs = segments([*paths], step)
    starts = ", ".join(map(str, [0, *paths][:-1])) if paths else "a run that has checkpoints"
    require(
        bool(pairs),
        f"{run}, step={in_words(step)}: no next checkpoint to compare with; use {starts}",
    )
    read_config(run)  # checks that the file exists
    for start, end in pairs:
        before = load_checkpoint(paths[end])
        recorded = environment_of_run(run, before)
        original = build_stored(
            ExperimentConfig, {**before["nmt"]["config"], "run": str(run)}, str(paths[end])
        )
        training = Training(
            original, data.corpus_of(run, before["nmt"], config.prepared), console
        )  # checks the files
        use_threads(str(paths[end]), recorded["device"])
        training.checkpoint = paths.get(start)
        training.update = start
        with TemporaryDirectory() as folder:
            after = repeated(training, original, Path(folder) / "run", end)
            yield compared_segment(start, end, before, after, recorded)
    changed = changed_configuration(run, load_checkpoint(list_checkpoints(run)[-1]))
    if changed:
        yield DIFFERS, "config.yaml", changed
    if (run / "model").exists():
        yield check_model(run, paths)


def segments(updates: list[int], step: int | None) -> list[tuple[int, int]]:
    """The updates between which to train again: from `step`, or, if it is None, from each checkpoint.

    A run with a single checkpoint is trained again from its beginning.
    """
    pairs = [*pairwise([0, *updates])]
    if step is not None:
        return [pair for pair in pairs if pair[0] == step]
    return pairs[1:] or pairs


def use_threads(checkpoint: str, device: str) -> None:
    """Use the recorded number of threads, which determines the order of sums."""
    threads = re.search(r"\(([0-9]{1,9}) threads\)", device)
    if threads:
        most = 16 * hardware.usable_cores()
        trained = f"{checkpoint} was trained with {threads[1]} threads"
        require(
            0 < int(threads[1]) <= most,
            f"{trained}: for more than {most}, use a machine with more cores",
        )
        torch.set_num_threads(int(threads[1]))


def repeated(training: Training, original: ExperimentConfig, run: Path, end: int) -> dict[str, Any]:
    """Train to update `end` in another run folder; return the checkpoint, whose file must stay while it is used."""
    trainer = replace(original.trainer, devices=1, num_nodes=1, max_steps=end, max_time=None)
    validation = replace(original.validation, every_steps=end, bleu_sentences=0, best="perplexity")
    again = replace(original, minutes=None, run=str(run), trainer=trainer, validation=validation)
    again.logger = []
    training.config = again
    training.state.config = to_tree(again)
    training.folder = run
    if training.fit():
        raise KeyboardInterrupt
    return load_checkpoint(list_checkpoints(run)[-1])


def compared_segment(
    start: int, end: int, before: dict[str, Any], after: dict[str, Any], recorded: dict[str, Any]
) -> Check:
    """Compare a checkpoint of the run with the one `after` training again; `recorded` is the run's environment."""
    now = environment_of(after["nmt"])
    # An older nmt recorded less.
    environment = difference(recorded, {key: now.get(key) for key in recorded})
    moves = [update for update in before["nmt"].get("moved", []) if start < update < end]
    if moves:
        environment = ", ".join(filter(None, [environment, f"changed at update {moves[0]:,}"]))
    changed = first_difference(compared(before), compared(after))
    # Another environment changes bits, but neither options nor the number of updates.
    is_explained = bool(environment) and not first_difference(
        options_of(before), options_of(after), tensors=False
    )
    what = f"update {start:,} to {end:,}"
    detail = f"{changed or 'all bits are equal'}; "
    not_recorded = [name for name in now if name not in recorded]
    if environment:
        detail += f"another environment: {environment}"
    elif not_recorded:
        detail += f"environment: equal; the run did not record {', '.join(not_recorded)}"
    else:
        detail += "environment: equal"
    if changed and is_explained:
        return ANOTHER, what, f"{detail}; the difference proves nothing"
    return check_of(not changed, what, detail)


def options_of(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """What a checkpoint has in every environment: all but the values of tensors and what follows from them."""
    tree = compared(checkpoint)
    return {name: tree[name] for name in ("weights", "optimizer", "update")}
