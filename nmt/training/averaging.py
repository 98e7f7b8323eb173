"""Checkpoint averaging (section 6.1): the mean of a run's last k checkpoints becomes its model directory.

The paper fixes k. While a model still learns fast, such a mean is much worse than the last checkpoint, so by default
the validation loss chooses k.
"""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor

from nmt.config import CheckpointConfig, ModelConfig, difference, require
from nmt.data import PreparedSplit
from nmt.errors import enough_memory_or
from nmt.evaluation import Score
from nmt.files import ModelDescription, model_card, sha256
from nmt.model import Transformer, write_model_directory
from nmt.training.checkpoints import RunState, UnreadableCheckpoint, load_checkpoint, model_weights
from nmt.training.run_folder import kept_checkpoints
from nmt.training.validation import validation_loss


class Average:
    """The mean of checkpoints of one model (section 6.1), summed in float64; they were saved after `updates`.

    `state` and `skipped` are those of the last checkpoint, saved after update `made`. Where validation chose the
    checkpoints, they are those of the run's newest one, and `losses` has the loss of each candidate by its updates.
    """

    state: RunState
    skipped: int
    made: int

    def __init__(self, *paths: Path) -> None:
        self.sums: dict[str, Tensor] = {}
        self.updates: list[int] = []
        self.losses: dict[str, float] = {}
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        """Read another checkpoint; NMTError where it is of another model."""
        checkpoint = load_checkpoint(path)
        state = RunState(**checkpoint["nmt"])
        before, now = (
            {"model": x.config["model"], "vocabulary_size": x.vocabulary_size, "tokenizer": x.tokenizer}
            for x in (self.state if self.updates else state, state)
        )
        changed = difference(before, now)
        require(not changed, f"{path} is of another model than the checkpoints before it ({changed})")
        for name, tensor in model_weights(checkpoint).items():
            if name in self.sums:
                self.sums[name] += tensor
            else:
                self.sums[name] = tensor.to(torch.float64, copy=True)
        self.state, self.skipped, self.made = state, checkpoint["skipped"], checkpoint["global_step"]
        self.updates.append(self.made)

    def make_model(self) -> Transformer:
        """The averaged model, on the processor."""
        model = Transformer(ModelConfig(**self.state.config["model"]), self.state.vocabulary_size)
        model.load_state_dict({name: (total / len(self.updates)).float() for name, total in self.sums.items()})
        return model.eval()


def delivered_model(run: Path, checkpoints: CheckpointConfig, split: PreparedSplit, device: torch.device) -> Average:
    """The model that a run delivers, by the rule `checkpoints.average`; `split` is its validation set."""
    paths = kept_checkpoints(run, checkpoints.every_steps, checkpoints.keep)
    if checkpoints.average == "all":
        return Average(*paths)
    newest, mean, best = Average(paths[-1]), Average(), run / "checkpoints" / "best.ckpt"
    smoothing = newest.state.config["optim"]["label_smoothing"]
    losses: dict[str, float] = {}
    sources: dict[str, list[Path]] = {}

    def consider(average: Average, *paths: Path) -> None:
        name = ", ".join(f"{update:,}" for update in sorted(average.updates))
        if name not in losses:
            losses[name], sources[name] = validation_loss(average.make_model().to(device), split, smoothing), [*paths]

    with enough_memory_or("validation of the candidates does not fit: pass checkpoints.average=all"):
        for number, path in enumerate(reversed(paths), 1):
            mean.add(path)
            consider(mean, *paths[-number:])
        with suppress(UnreadableCheckpoint):
            if best.is_file():
                consider(Average(best), best)
    chosen = Average(*sources[min(losses, key=losses.__getitem__)])
    chosen.state, chosen.made, chosen.skipped, chosen.losses = newest.state, newest.made, newest.skipped, losses
    return chosen


def check_skipped(average: Average, run: Path) -> None:
    """NMTError where a run skipped more than half of its updates."""
    require(
        2 * average.skipped <= average.made,
        f"{run}: no model is written, because optim.not_finite=skip left out {average.skipped:,} of the "
        f"{average.made:,} updates. Pass a lower optim.factor, or trainer.precision=32-true, with name=OTHER",
    )


def tokenizer_of(checkpoint: Path, state: RunState) -> Path:
    """The tokenizer of a checkpoint's run; NMTError where it is missing, or not the one used in training."""
    path = checkpoint.parent.parent / "tokenizer.model"
    same = path.is_file() and sha256(path) == state.tokenizer
    require(same, f"{path}: missing, or not the tokenizer that {checkpoint} was trained with")
    return path


def write_average(average: Average, tokenizer_file: Path, output: Path, score: tuple[Score, int] | None = None) -> None:
    """Write the model directory of an average; `score` is its validation score, and on how many sentences."""
    state, model = average.state, average.make_model()
    described = ("tokens", "seconds", "devices", "versions", "corpus", "config")
    training = {"updates": average.made, "averaged": average.updates, **{key: getattr(state, key) for key in described}}
    scored = {**asdict(score[0]), "sentences": score[1]} if score else {}
    optional = {"init": state.init, "candidates": average.losses, "score": scored}
    training |= state.seen | {key: value for key, value in optional.items() if value}
    sides = state.source, state.target
    description = ModelDescription(state.config["model"], state.vocabulary_size, *sides, state.tokenizer, training)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    write_model_directory(output, model, tokenizer_file, description, model_card(description, parameters))
