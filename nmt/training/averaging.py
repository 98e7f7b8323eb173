"""Checkpoint averaging (section 6.1): the mean of a run's last k checkpoints becomes its model directory.

The paper fixes k. By default the validation loss chooses it, because a model that learns fast is better than its mean.
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

RECORDED = ("tokens", "seconds", "devices", "versions", "corpus", "config")


class Average:
    """The mean of checkpoints of one model (section 6.1), summed in float64; they were saved after `updates`.

    `state`, `skipped` and `made` (updates) are those of the newest one; `losses` are of candidates by their updates.
    """

    state: RunState
    skipped: int
    made: int

    def __init__(self, *paths: Path) -> None:
        self.sums, self.updates, self.losses = dict[str, Tensor](), list[int](), dict[str, float]()
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        """Read another checkpoint; NMTError where it is of another model."""
        checkpoint = load_checkpoint(path)
        state = RunState(**checkpoint["nmt"])
        models = (
            {"model": x.config["model"], "vocabulary_size": x.vocabulary_size, "tokenizer": x.tokenizer}
            for x in (self.state if self.updates else state, state)
        )
        changed = difference(*models)
        require(not changed, f"{path} is of another model than the checkpoints before it ({changed})")
        for name, tensor in model_weights(checkpoint).items():
            self.sums[name] = tensor.double() + self.sums[name] if name in self.sums else tensor.double()
        self.state, self.skipped, self.made = state, checkpoint["skipped"], checkpoint["global_step"]
        self.updates.append(self.made)

    def make_model(self) -> Transformer:
        model = Transformer(ModelConfig(**self.state.config["model"]), self.state.vocabulary_size)
        model.load_state_dict({name: (total / len(self.updates)).float() for name, total in self.sums.items()})
        return model.eval()


def delivered_model(run: Path, checkpoints: CheckpointConfig, split: PreparedSplit, device: torch.device) -> Average:
    """The model that a run delivers, by the rule `checkpoints.average`; `split` is its validation set.

    Raises NMTError where the run skipped more than half of its updates.
    """
    paths = kept_checkpoints(run, checkpoints.every_steps, checkpoints.keep)
    newest, mean, best = Average(paths[-1]), Average(), run / "checkpoints" / "best.ckpt"
    require(
        2 * newest.skipped <= newest.made,
        f"{run}: no model is written, because optim.not_finite=skip left out {newest.skipped:,} of the "
        f"{newest.made:,} updates. Pass a lower optim.factor, or trainer.precision=32-true, with name=OTHER",
    )
    if checkpoints.average == "all":
        return Average(*paths)
    candidates: dict[str, tuple[float, list[Path]]] = {}

    def consider(average: Average, *paths: Path) -> None:
        name = ", ".join(f"{update:,}" for update in sorted(average.updates))
        if name not in candidates:
            model, smoothing = average.make_model().to(device), newest.state.config["optim"]["label_smoothing"]
            candidates[name] = validation_loss(model, split, smoothing), [*paths]

    with enough_memory_or("validation of the candidates does not fit: pass checkpoints.average=all"):
        for number, path in enumerate(reversed(paths), 1):
            mean.add(path)
            consider(mean, *paths[-number:])
        with suppress(UnreadableCheckpoint):
            if best.is_file():
                consider(Average(best), best)
    chosen = Average(*min(candidates.values(), key=lambda candidate: candidate[0])[1])
    chosen.state, chosen.made, chosen.skipped = newest.state, newest.made, newest.skipped
    chosen.losses = {name: loss for name, (loss, _) in candidates.items()}
    return chosen


def tokenizer_of(checkpoint: Path, state: RunState) -> Path:
    """The tokenizer of a checkpoint's run; NMTError where it is missing, or not the one used in training."""
    path = checkpoint.parent.parent / "tokenizer.model"
    same = path.is_file() and sha256(path) == state.tokenizer
    require(same, f"{path}: missing, or not the tokenizer that {checkpoint} was trained with")
    return path


def write_average(average: Average, tokenizer_file: Path, output: Path, score: tuple[Score, int] | None = None) -> None:
    """Write the model directory of an average; `score` is its validation score, and on how many sentences."""
    state, model = average.state, average.make_model()
    scored = {**asdict(score[0]), "sentences": score[1]} if score else {}
    optional = {"init": state.init, "candidates": average.losses, "score": scored}
    training = {"updates": average.made, "averaged": average.updates, **{key: vars(state)[key] for key in RECORDED}}
    training |= state.seen | {key: value for key, value in optional.items() if value}
    sides = state.source, state.target
    description = ModelDescription(state.config["model"], state.vocabulary_size, *sides, state.tokenizer, training)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    write_model_directory(output, model, tokenizer_file, description, model_card(description, parameters))
