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
from nmt.plugins.results.verify import DIFFERS, Check, check_of
from nmt.training import Training, checkpoint_step, list_checkpoints, load_checkpoint, read_config


def compared(checkpoint: dict[str, Any]) -> dict[str, Any]:
    """Everything that the next updates depend on, with names for users."""
    keys = {"weights": "state_dict", "optimizer": "optimizer_states", "scaler": "MixedPrecision"}
    return {name: checkpoint.get(key) for name, key in {**keys, "update": "global_step", "skipped": "skipped"}.items()}


def environment_of(run: Path, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """What the last bits of a checkpoint depend on; NMTError if the run does not record it."""
    state, recorded = checkpoint["nmt"], files.read_mapping(run / "environment.json", files.parse_json)
    device, processor = state["devices"].partition(" x ")[2], recorded.get("processor")
    require(bool(processor), f"{run}/environment.json: does not name the processor; restore the file")
    facts: dict[str, Any] = {"torch": state["versions"].get("torch"), "processor": processor, "device": device}
    facts.update(state.get("environment", {}))
    return facts


def train_again(config: VerifyConfig, console: Console) -> Iterator[Check]:
    """Train again from each checkpoint and compare the result with the next; NMTError if the corpus has changed."""
    run, step = Path(config.run or ""), config.step
    paths = {checkpoint_step(path): path for path in list_checkpoints(run)}
    pairs = [(start, end) for start, end in pairwise([0, *paths]) if start == step or (start and step is None)]
    starts = ", ".join(map(str, [0, *paths][:-1])) if paths else "a run that has checkpoints"
    require(bool(pairs), f"{run}, step={in_words(step)}: no next checkpoint to compare with; use {starts}")
    read_config(run)  # checks that the file exists
    for start, end in pairs:
        before = load_checkpoint(paths[end])
        recorded = environment_of(run, before)
        original = build_stored(ExperimentConfig, {**before["nmt"]["config"], "run": str(run)}, str(paths[end]))
        training = Training(original, data.corpus_of(run, before["nmt"], config.prepared), console)  # checks the files
        # The number of threads determines the order of sums.
        if threads := re.search(r"\(([0-9]{1,9}) threads\)", recorded["device"]):
            most, trained = 16 * hardware.usable_cores(), f"{paths[end]} was trained with {threads[1]} threads"
            require(0 < int(threads[1]) <= most, f"{trained}: for more than {most}, use a machine with more cores")
            torch.set_num_threads(int(threads[1]))
        with TemporaryDirectory() as folder:
            trainer = replace(original.trainer, devices=1, num_nodes=1, max_steps=end, max_time=None)
            validation = replace(original.validation, every_steps=end, bleu_sentences=0, best="perplexity")
            again = replace(original, minutes=None, run=f"{folder}/run", trainer=trainer, validation=validation)
            again.logger = []
            training.config, training.state.config, training.folder = again, to_tree(again), Path(again.run)
            training.checkpoint, training.update = paths.get(start), start
            if training.fit():
                raise KeyboardInterrupt
            after = load_checkpoint(list_checkpoints(training.folder)[-1])
            now = environment_of(training.folder, after)
            # An older nmt recorded less.
            changed_environment = difference(recorded, {key: now.get(key) for key in recorded})
            changed = first_difference(compared(before), compared(after))
        environment = "environment: equal"
        if changed_environment:
            environment = f"another environment: {changed_environment}"
        detail = f"{changed or 'all bits are equal'}; {environment}"
        yield check_of(not changed, f"update {start:,} to {end:,}", detail)
    changed = changed_configuration(run, load_checkpoint(list_checkpoints(run)[-1]))
    if changed:
        yield DIFFERS, "config.yaml", changed
    if step is None and (run / "model").exists():
        yield check_model(run, paths)
