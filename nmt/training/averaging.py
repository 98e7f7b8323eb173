"""The mean of a run's checkpoints (section 6.1), and the choice of the checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import CheckpointConfig, ModelConfig, difference
from nmt.data import PreparedSplit
from nmt.errors import NMTError, enough_memory_or
from nmt.files import architecture
from nmt.model import Transformer
from nmt.training.checkpoints import RunState, load_checkpoint, model_weights
from nmt.training.run_folder import kept_checkpoints
from nmt.training.scoring import validation_loss


class Average:
    """The mean of checkpoints of one model (section 6.1), summed in float64.

    `updates` are the checkpoints' update numbers. `state` and the numbers of updates `skipped` and
    `made` come from the last checkpoint added. `losses` maps each candidate, named by its updates,
    to its validation loss.
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
        """Add a checkpoint; NMTError if it belongs to a different model."""
        checkpoint = load_checkpoint(path)
        state = RunState(**checkpoint["nmt"])
        if self.updates:
            changed = difference(model_of(self.state), model_of(state))
            if changed:
                raise NMTError(
                    f"{path} belongs to a different model than the checkpoints before it "
                    f"({changed})"
                )
        for name, tensor in model_weights(checkpoint).items():
            total = tensor.double()  # so that the mean is rounded only once, in make_model
            if name in self.sums:
                total = total + self.sums[name]
            self.sums[name] = total
        self.state = state
        self.skipped = checkpoint["skipped"]
        self.made = checkpoint["global_step"]
        self.updates.append(self.made)

    def make_model(self) -> Transformer:
        config = ModelConfig(**self.state.config["model"])
        model = Transformer(config, self.state.vocabulary_size)
        weights = {}
        for name, total in self.sums.items():
            mean = total / len(self.updates)
            weights[name] = mean.float()
        model.load_state_dict(weights)
        return model.eval()


def model_of(state: RunState) -> dict[str, Any]:
    """The settings that must be equal in checkpoints for their mean to make sense."""
    # Other settings, such as the seed or the data, do not change the meaning of a weight.
    return {
        # Without the options that change no result, which a run may resume with.
        "model": architecture(state.config["model"]),
        "vocabulary_size": state.vocabulary_size,
        # Two vocabularies of one size give embeddings of equal shapes, whose mean is nonsense.
        "tokenizer": state.tokenizer,
    }


@dataclass
class Candidate:
    """A mean of checkpoints that a run may deliver."""

    paths: list[Path]
    """The checkpoints in the order in which to add them, which decides the last bits."""
    loss: float
    """The validation loss."""


def delivered_model(
    run: Path, checkpoints: CheckpointConfig, split: PreparedSplit, device: torch.device
) -> Average:
    """The model that a run delivers under the rule `checkpoints.average`.

    The paper averages a fixed number of checkpoints. By default, the number whose average has the
    lowest loss on the validation set `split` is chosen: while a model learns fast, its newest
    weights beat the mean. The best checkpoint, if the run kept one, is also a candidate. Raises
    NMTError if most updates were skipped.
    """
    paths = kept_checkpoints(run, checkpoints.every_steps, checkpoints.keep)
    newest = Average(paths[-1])
    # Read now, because `candidates_of` adds older checkpoints.
    state = newest.state
    made = newest.made
    skipped = newest.skipped
    if 2 * skipped > made:
        raise NMTError(
            f"{run}: no model was written because optim.not_finite=skip skipped {skipped:,} of the "
            f"{made:,} updates. "
            "Pass a lower optim.factor or trainer.precision=32-true, with name=OTHER"
        )
    if checkpoints.average == "all":
        return Average(*paths)
    smoothing = state.config["optim"]["label_smoothing"]

    def loss_of(average: Average) -> float:
        return validation_loss(average.make_model().to(device), split, smoothing)

    best = run / "checkpoints" / "best.ckpt"
    with enough_memory_or("validating the checkpoints does not fit: pass checkpoints.average=all"):
        candidates = candidates_of(newest, paths, best, loss_of)
    lowest = min(candidates.values(), key=lambda candidate: candidate.loss)
    chosen = Average(*lowest.paths)
    # The numbers of the run, even if the newest checkpoint is not part of the mean.
    chosen.state = state
    chosen.made = made
    chosen.skipped = skipped
    chosen.losses = {name: candidate.loss for name, candidate in candidates.items()}
    return chosen


def candidates_of(
    newest: Average, paths: list[Path], best: Path, loss_of: Callable[[Average], float]
) -> dict[str, Candidate]:
    """The means of the last 1, 2, ... of the checkpoints `paths`, and `best` if it exists.

    Their names are their updates, such as "90, 100". `newest` contains the last checkpoint; this
    adds all others, so that one set of sums in memory serves all means.
    """
    candidates: dict[str, Candidate] = {}

    def consider(average: Average, paths: list[Path]) -> None:
        name = ", ".join(f"{update:,}" for update in sorted(average.updates))
        # `best` may be the same update as the last checkpoint.
        if name not in candidates:
            candidates[name] = Candidate(paths, loss_of(average))

    consider(newest, paths[-1:])
    for count in range(2, len(paths) + 1):
        newest.add(paths[-count])
        consider(newest, paths[-count:])
    if best.is_file():
        consider(Average(best), [best])
    return candidates
