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
from torch import Tensor

from nmt.config import ExperimentConfig, build, difference, flatten, in_words, require, to_tree
from nmt.data import corpus_of
from nmt.files import parse_json, read_mapping
from nmt.plugins.results.commands import VerifyConfig
from nmt.plugins.results.verify import Check, check_of
from nmt.training import Training, checkpoint_step, list_checkpoints, load_checkpoint


def tensors(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """The weights and the optimizer's state, by name."""
    tree = {"weights": checkpoint["state_dict"], "optimizer": checkpoint["optimizer_states"][0]["state"]}
    return {name: value for name, value in flatten(tree).items() if isinstance(value, Tensor)}


def environment_of(run: Path, checkpoint: dict[str, Any]) -> dict[str, Any]:
    """What the last bits of a checkpoint depend on."""
    state, processor = checkpoint["nmt"], read_mapping(run / "environment.json", parse_json).get("processor")
    return {"torch": state["versions"]["torch"], "processor": processor, "device": state["devices"].partition(" x ")[2]}


def train_again(config: VerifyConfig, console: Console) -> Iterator[Check]:
    """Compare checkpoints with those of a training from the previous one; NMTError if the corpus has changed."""
    run, step = Path(config.run or ""), config.step
    paths = {checkpoint_step(path): path for path in list_checkpoints(run)}
    pairs = [(start, end) for start, end in pairwise([0, *paths]) if start == step or (start and step is None)]
    starts = ", ".join(map(str, [0, *paths][:-1])) if paths else "a run that has checkpoints"
    require(bool(pairs), f"{run}, step={in_words(step)}: no next checkpoint to compare with; use {starts}")
    for start, end in pairs:
        before = load_checkpoint(paths[end])
        original = build(ExperimentConfig, {**before["nmt"]["config"], "run": str(run)}, str(paths[end]))
        training = Training(original, corpus_of(run, before["nmt"], config.prepared), console)  # checks the files
        if threads := re.search(r"\(([0-9]{1,3}) threads\)", before["nmt"]["devices"]):  # they share out sums
            torch.set_num_threads(int(threads[1]))
        with TemporaryDirectory() as folder:
            trainer = replace(original.trainer, devices=1, num_nodes=1, max_steps=end, max_time=None)
            validation = replace(original.validation, every_steps=end, bleu_sentences=0, best="perplexity")
            again = replace(original, run=f"{folder}/run", logger=[], trainer=trainer, validation=validation)
            training.config, training.state.config, training.folder = again, to_tree(again), Path(again.run)
            training.checkpoint, training.update = paths.get(start), start
            if training.fit():
                raise KeyboardInterrupt
            after = load_checkpoint(list_checkpoints(training.folder)[-1])
            environment = difference(*map(environment_of, (run, training.folder), (before, after))) or "equal"
            one, two = tensors(before), tensors(after)
            first = next((name for name in one if not torch.equal(one[name], two[name])), "")
            most = float((one[first].double() - two[first].double()).abs().max()) if first else 0
            detail = f"{first} differs by up to {most:.2g}" if first else "all bits are equal"
        yield check_of(not first, f"update {start:,} to {end:,}", f"{detail}; environment: {environment}")
