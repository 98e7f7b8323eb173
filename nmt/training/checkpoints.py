"""Save, read, resume from and average checkpoints (section 6.1).

`checkpoints/step=00001000.ckpt` contains only tensors, numbers and strings and loads with weights_only=True. Lightning
writes the weights, Adam's moments and its loop state; the module writes "sums" and "skipped"; the rest is in "nmt".
"""

import gc
import json
import os
import signal
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from lightning import LightningModule, Trainer
from rich.console import Console
from torch import Tensor

from nmt import evaluation, search, text, translation
from nmt.config import (
    CheckpointConfig,
    ExperimentConfig,
    ModelConfig,
    build_stored,
    difference,
    flatten,
    matches,
    require,
    to_tree,
    with_defaults,
)
from nmt.data import STOPPING, TOKENIZER, PreparedCorpus, PreparedSplit
from nmt.errors import NMTError, enough_memory_or, one_line
from nmt.files import (
    ModelDescription,
    check_version,
    load_plain,
    model_card,
    parse_json,
    sha256,
    weights_in_words,
)
from nmt.model import Transformer, check_ours, check_shapes, write_model_directory
from nmt.training.checkpoint_io import DirectCheckpointIO
from nmt.training.environments import has_other_environment
from nmt.training.identity import decisive_settings, split_of
from nmt.training.metrics import devices_in_words
from nmt.training.module import REQUESTS, TranslationModule, UpdateCallback, make_trainer
from nmt.training.run_folder import (
    check_configuration,
    checkpoint_step,
    kept_checkpoints,
    latest_link,
    list_checkpoints,
    point_latest_to,
    prune,
)
from nmt.training.validation import Validation, joint_score, translated, validation_loss

FORMAT_VERSION = 3
PREFIX = "model."  # of the Transformer's weight names
CONTENT = {
    **{
        "global_step": int,
        "epoch": int,
        "sums": Tensor,
        "skipped": int,
        "callbacks": dict[str, dict[str, Any]],
    },
    **{"state_dict": dict[str, Tensor], "optimizer_states": list[dict[Any, Any]]},
}
AGREEMENT_UPDATES = 10  # several GPUs check only so often whether to stop or save, because a check waits for the GPU


@dataclass
class RunState:
    """`checkpoint["nmt"]`: the run that the checkpoint belongs to, and the state of that run."""

    config: dict[str, Any]
    vocabulary_size: int
    source: str
    target: str
    tokenizer: str  # SHA-256
    corpus: str  # fingerprint
    files: dict[str, str] = field(
        default_factory=dict
    )  # name -> SHA-256, as `corpus_hashes` returns them
    init: str = ""  # SHA-256 of the initial weights; empty if they are random
    seen: dict[str, Any] = field(default_factory=dict)  # from the manifest
    tokens: int = 0  # target tokens
    seconds: float = 0.0
    devices: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    environment: dict[str, Any] = field(
        default_factory=dict
    )  # the processor and `kernels.environment_record`
    moved: list[int] = field(
        default_factory=list
    )  # the updates after which another environment continued the run
    metrics: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, Any] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content, memory-mapped and checked; NMTError if training cannot have written it.

    Its configuration is complete: it also has the options that were added after the checkpoint was written.
    """
    require(path.is_file(), f"{path}: no such checkpoint")
    try:
        content: dict[str, Any] = load_plain(path)
        state = content.get("nmt") if isinstance(content, dict) else None
        if not isinstance(state, dict) or "format_version" not in state:
            raise ValueError("it has no entry 'nmt'")
        if state["format_version"] == FORMAT_VERSION:
            check_content(content)
    except (NMTError, ValueError, TypeError) as error:
        raise NMTError(
            f"{path}: not a readable checkpoint ({one_line(error)}): restore or remove this file"
        ) from error
    check_version(path, state["format_version"], FORMAT_VERSION)
    return content


def check_content(content: dict[str, Any]) -> None:
    """Raise NMTError, ValueError or TypeError if training cannot have written this content."""
    for key, kind in CONTENT.items():
        require(matches(content.get(key), kind), f"its {key!r} is missing or has the wrong type")
    require(content["sums"].shape == (3,), "it does not have three sums")
    parse_json(json.dumps(content["nmt"]))
    run = build_stored(RunState, content["nmt"], "its entry 'nmt'")
    content["nmt"]["config"] = run.config = with_defaults(ExperimentConfig, run.config)
    model = build_stored(ModelConfig, run.config.get("model"), "its model", "model.")
    shapes = {name: tuple(tensor.shape) for name, tensor in model_weights(content).items()}
    check_shapes(model, run.vocabulary_size, shapes, "its weights do not match its model")


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    return {
        k.removeprefix(PREFIX): v
        for k, v in checkpoint["state_dict"].items()
        if k.startswith(PREFIX)
    }


class CheckpointCallback(UpdateCallback):
    """Saves checkpoints for averaging and, at time intervals, for safety; stops the run early on request."""

    def __init__(
        self,
        config: CheckpointConfig,
        state: RunState,
        validation: Validation,
        max_seconds: float | None,
    ) -> None:
        self.config, self.state, self.validation, self.max_seconds = (
            config,
            state,
            validation,
            max_seconds,
        )
        self.metrics, self.run = validation.metrics, validation.metrics.run
        # The last signal sent to this process, and the signal that stopped the run early; 0: none.
        self.signal = self.stopped_by = 0
        # Signal handlers from before training. Lightning installs its own and restores these afterwards.
        self.handlers = {number: signal.getsignal(number) for number in STOPPING}

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        same = trainer.strategy.broadcast(str(trainer.ckpt_path)) == str(trainer.ckpt_path)
        require(
            same,
            f"{self.run}: the processes see different checkpoints; all nodes must share this folder",
        )

    def catch_signals(self, *arguments: Any) -> None:
        for number in self.handlers:
            signal.signal(number, self.on_signal)
        self.start = self.last_save = time.monotonic()

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        # The current update finishes first; a second signal stops the process as usual.
        self.signal = number
        if not self.metrics.line.console.quiet:
            os.write(
                2, b"stopping after this update; a second signal stops at once, without saving\n"
            )
        signal.signal(number, self.handlers[signal.Signals(number)])

    def restore_handlers(self) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def requests(self) -> list[bool]:
        """Whether to save, to stop because time is up, and to stop for each of the signals."""
        now, minutes = time.monotonic(), self.config.every_minutes
        save = minutes is not None and now - self.last_save >= 60 * minutes
        time_is_up = self.max_seconds is not None and now - self.start >= self.max_seconds
        return [save, time_is_up, *(self.signal == number for number in STOPPING)]

    def on_after_backward(self, trainer: Trainer, pl_module: Any) -> None:
        """Add requests to the sums that the processes exchange with the gradients, so that all stop together."""
        for place, requested in enumerate(
            self.requests() if trainer.world_size > 1 else (), -REQUESTS
        ):
            if requested:
                pl_module.update_sums[place] = 1

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        save, *stop = self.requests() if trainer.world_size == 1 else [False] * REQUESTS
        if trainer.world_size > 1 and (
            module.device.type == "cpu" or step % AGREEMENT_UPDATES == 0
        ):
            save, *stop = (count > 0 for count in module.requests.tolist())
        self.stopped_by = next(
            (number for number, sent in zip(STOPPING, stop[1:], strict=True) if sent), 0
        )
        # Lightning reads should_stop after every micro-batch, so set it only here, at the end of an update.
        trainer.should_stop = trainer.should_stop or any(stop)
        if self.validation.improved:
            # Save best.ckpt first: a run killed after the regular checkpoint would resume without saving best.ckpt.
            trainer.save_checkpoint(self.run / "checkpoints" / "best.ckpt")
        if (
            trainer.should_stop
            or step == trainer.max_steps
            or save
            or step % self.config.every_steps == 0
        ):
            path = self.run / "checkpoints" / f"step={step:08d}.ckpt"
            # No checkpoint is removed before the one that replaces it is on disk.
            trainer.save_checkpoint(path, storage_options=partial(prune, self.run, self.config))
            self.last_save = time.monotonic()

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        self.writer(trainer).finish()

    def on_exception(
        self, trainer: Trainer, pl_module: LightningModule, exception: BaseException
    ) -> None:
        # The second interrupt raises KeyboardInterrupt. After any other error, the write still ends.
        if isinstance(exception, KeyboardInterrupt):
            self.writer(trainer).abandon()

    def writer(self, trainer: Trainer) -> DirectCheckpointIO:
        writer = trainer.strategy.checkpoint_io
        assert isinstance(writer, DirectCheckpointIO)
        return writer

    def on_save_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        assert isinstance(pl_module, TranslationModule)
        pl_module.check_finite()  # so that no checkpoint contains a non-finite update
        validation = {"best": self.validation.best, "worse": self.validation.worse}
        checkpoint["nmt"] = {
            **vars(self.state),
            **self.metrics.state(pl_module),
            "validation": validation,
        }

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]
    ) -> None:
        state = checkpoint["nmt"]
        self.metrics.load(state["seconds"], state["metrics"])
        self.validation.best, self.validation.worse = (
            state["validation"]["best"],
            state["validation"]["worse"],
        )
        self.record_move(trainer, state, checkpoint["global_step"])

    def record_move(self, trainer: Trainer, before: dict[str, Any], update: int) -> None:
        """Record in `moved` if the run resumes in another environment than the checkpoint `before`."""
        self.state.moved = [*before.get("moved", [])]
        now = {**vars(self.state), "devices": devices_in_words(trainer)}
        if has_other_environment(before, now):
            self.state.moved.append(update)


def check_run(
    config: ExperimentConfig, corpus: PreparedCorpus, now: RunState
) -> tuple[Path | None, int, bool]:
    """The checkpoint from which a run resumes (None: from scratch), its update, and whether the run is finished.

    Raises NMTError if the run cannot resume, or if its options or files changed.
    """
    run, patience, start = Path(config.run), config.validation.patience, config.init or "null"
    check_configuration(run, config)
    check_ours(run / "model")
    paths = list_checkpoints(run)
    if not paths:
        return None, 0, False
    content = load_checkpoint(paths[-1])
    state, update = RunState(**content["nmt"]), content["global_step"]
    check_settings(paths[-1], content, config)
    check_origin(paths[-1], state, corpus, now.files)
    check_characters(paths[-1], state, now)
    require(
        state.init == now.init,
        f"{paths[-1]} began with different weights than init={start}: pass name=OTHER",
    )
    finished = update >= config.trainer.max_steps or (
        patience is not None and state.validation["worse"] >= patience
    )
    # There is no optimizer state yet if all updates were skipped, by optim.not_finite=skip or by the loss scaler.
    scaler, has_state = (
        content.get("MixedPrecision"),
        any(x.get("state") for x in content["optimizer_states"]),
    )
    skipped = content["skipped"] >= update or (
        isinstance(scaler, dict) and scaler.get("_growth_tracker") == 0
    )
    advice = f"run `nmt average {run} output=FOLDER` and pass init=FOLDER name=OTHER for a new run from its weights"
    require(
        has_state or skipped or finished,
        f"{paths[-1]} has no optimizer state to resume with: {advice}",
    )
    if update != checkpoint_step(paths[-1]):
        raise NMTError(
            f"{paths[-1]} is the checkpoint of update {update:,}: restore the file, or delete it"
        )
    return paths[-1], update, finished


def changed_settings(content: dict[str, Any], tree: dict[str, Any]) -> str:
    """How a configuration differs from a checkpoint's in what decides; empty if it does not.

    Changes of the schedule's end after the checkpoint do not count: a run that was killed may have
    written them to config.yaml, but not yet to a checkpoint.
    """
    trees = []
    for config in (content["nmt"]["config"], tree):
        complete = to_tree(build_stored(ExperimentConfig, config, "configuration"))
        changes = complete["optim"]["decay_changes"] or []
        made = [change for change in changes if change[0] <= content["global_step"]]
        complete["optim"]["decay_changes"] = made or None
        trees.append(decisive_settings(complete))
    return difference(*trees)


def check_settings(path: Path, content: dict[str, Any], config: ExperimentConfig) -> None:
    """Raise NMTError if a checkpoint has other settings; config.yaml may be missing or edited."""
    changed = changed_settings(content, to_tree(config))
    if changed:
        raise NMTError(
            f"{path} has a different configuration ({changed}): "
            "pass the same values to resume it, or pass name=OTHER for a new run"
        )


def check_origin(
    path: Path, state: RunState, corpus: PreparedCorpus, files: dict[str, str]
) -> None:
    """Raise NMTError if a checkpoint was trained on a different corpus or with a different vocabulary or `files`.

    `files` are the `corpus_hashes` of the splits to compare. A file that an older nmt did not record is not compared.
    """
    splits = {split_of(name) for name in files}
    before = {"tokenizer": state.tokenizer, "corpus": state.corpus}
    before |= {name: identity for name, identity in state.files.items() if split_of(name) in splits}
    now = {"tokenizer": corpus.manifest.tokenizer, "corpus": corpus.manifest.fingerprint, **files}
    for name, identity in before.items():
        advice = f"than {corpus.folder} has now: restore it, or pass name=OTHER for a new run"
        require(now.get(name) == identity, f"{path} was trained with a different {name} {advice}")


def check_characters(path: Path, state: RunState, now: RunState) -> None:
    """Raise NMTError if the corpus's record of lengths and characters, which the model gets, is another one.

    What an older nmt did not record is not compared.
    """
    before, after = flatten(state.seen), flatten(now.seen)
    changed = [key for key in before if key in after and before[key] != after[key]]
    advice = "restore the corpus's manifest.json and the model of init=, or pass name=OTHER for a new run"
    require(
        not changed,
        f"{path} was trained with a different record of {', '.join(changed[:4])}: {advice}",
    )


class Average:
    """The mean of checkpoints of one model (section 6.1), summed in float64.

    `updates` are the checkpoints' update numbers. `state` and the numbers of updates `skipped` and `made` are those of
    the checkpoint added last. `losses` maps each average considered, named by its updates, to its validation loss.
    """

    state: RunState
    skipped: int
    made: int

    def __init__(self, *paths: Path) -> None:
        self.sums, self.updates, self.losses = dict[str, Tensor](), list[int](), dict[str, float]()
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        """Add a checkpoint; NMTError if it belongs to a different model."""
        checkpoint = load_checkpoint(path)
        state = RunState(**checkpoint["nmt"])
        models = (
            {
                "model": x.config["model"],
                "vocabulary_size": x.vocabulary_size,
                "tokenizer": x.tokenizer,
            }
            for x in (self.state if self.updates else state, state)
        )
        changed = difference(*models)
        require(
            not changed,
            f"{path} belongs to a different model than the checkpoints before it ({changed})",
        )
        for name, tensor in model_weights(checkpoint).items():
            self.sums[name] = (
                tensor.double() + self.sums[name] if name in self.sums else tensor.double()
            )
        self.state, self.skipped, self.made = (
            state,
            checkpoint["skipped"],
            checkpoint["global_step"],
        )
        self.updates.append(self.made)

    def make_model(self) -> Transformer:
        model = Transformer(ModelConfig(**self.state.config["model"]), self.state.vocabulary_size)
        model.load_state_dict(
            {name: (total / len(self.updates)).float() for name, total in self.sums.items()}
        )
        return model.eval()


def delivered_model(
    run: Path, checkpoints: CheckpointConfig, split: PreparedSplit, device: torch.device
) -> Average:
    """The model that a run delivers under the rule `checkpoints.average`; `split` is the validation set.

    The paper averages a fixed number of checkpoints. By default, the number whose average has the lowest validation
    loss is chosen: while a model learns fast, its newest weights beat the mean. NMTError if most updates were skipped.
    """
    paths, best = (
        kept_checkpoints(run, checkpoints.every_steps, checkpoints.keep),
        run / "checkpoints" / "best.ckpt",
    )
    mean = Average(paths[-1])
    newest = mean.state, mean.made, mean.skipped
    require(
        2 * mean.skipped <= mean.made,
        f"{run}: no model was written because optim.not_finite=skip skipped {mean.skipped:,} of the "
        f"{mean.made:,} updates. Pass a lower optim.factor or trainer.precision=32-true, with name=OTHER",
    )
    if checkpoints.average == "all":
        return Average(*paths)
    smoothing = mean.state.config["optim"]["label_smoothing"]
    losses, sources = dict[str, float](), dict[str, tuple[Path, ...]]()

    def consider(average: Average, *paths: Path) -> None:
        name = ", ".join(f"{update:,}" for update in sorted(average.updates))
        if name not in losses:
            losses[name] = validation_loss(average.make_model().to(device), split, smoothing)
            sources[name] = paths

    with enough_memory_or("validating the checkpoints does not fit: pass checkpoints.average=all"):
        consider(mean, paths[-1])
        for number, path in enumerate(reversed(paths[:-1]), 2):
            mean.add(path)
            consider(mean, *paths[-number:])
        if best.is_file():
            consider(Average(best), best)
    chosen = Average(*sources[min(losses, key=losses.__getitem__)])
    chosen.state, chosen.made, chosen.skipped = newest
    chosen.losses = losses
    return chosen


def describe(
    average: Average, score: tuple[evaluation.Score, int] | None = None
) -> ModelDescription:
    """The description of an average; `score` is its validation score and the number of sentences scored."""
    state = average.state
    scored = {**asdict(score[0]), "sentences": score[1]} if score else {}
    optional = {"init": state.init, "candidates": average.losses, "score": scored}
    recorded = ("tokens", "seconds", "devices", "versions", "corpus", "config")
    training = {
        "updates": average.made,
        "averaged": average.updates,
        **{key: vars(state)[key] for key in recorded},
    }
    training |= state.seen | {key: value for key, value in optional.items() if value}
    sides = state.source, state.target
    return ModelDescription(
        state.config["model"], state.vocabulary_size, *sides, state.tokenizer, training
    )


def write_average(
    average: Average,
    run: Path,
    output: Path,
    score: tuple[evaluation.Score, int] | None = None,
) -> str:
    """Write an average as a model directory, and return what users should know about that.

    `score` is its validation score and the number of sentences scored. Exports of an older model
    in that directory are removed with it. Raises NMTError if the tokenizer in the run folder is
    missing or is not the one used in training.
    """
    tokenizer = run / TOKENIZER
    same = tokenizer.is_file() and sha256(tokenizer) == average.state.tokenizer
    require(
        same, f"{tokenizer}: missing, or not the tokenizer that the checkpoints were trained with"
    )
    description = describe(average, score)
    model = average.make_model()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    card = model_card(description, parameters)
    folders = output.iterdir() if output.is_dir() else []
    exports = sorted(path.name for path in folders if path.is_dir())
    write_model_directory(output, model, tokenizer, description, card)
    if not exports:
        return ""
    return f"; removed exports of the previous model: {', '.join(exports)} (`nmt export` writes new ones)"


def moved_link(run: Path) -> str:
    """Point the run's link `latest` to the run, and say so; others may own the folder of the link."""
    try:
        return f"; {point_latest_to(run)} now leads to {run}"
    except OSError as error:
        return f"; {latest_link(run)} stays as it is ({error.strerror})"


def deliver(config: ExperimentConfig, corpus: PreparedCorpus, console: Console) -> None:
    """Score the model on the validation set, write its directory, and point `latest` to the run."""
    run, sentences = Path(config.run), config.validation.bleu_sentences
    prune(run, config.checkpoints)
    gc.collect()  # reference cycles would otherwise keep the trained model in memory
    device = make_trainer(config).strategy.root_device
    average = delivered_model(run, config.checkpoints, corpus.split("valid"), device)
    console.print(f"the model is the {weights_in_words(average.updates, average.losses)}")
    scored = None
    if sentences != 0:
        engine = search.TorchEngine([average.make_model().to(device)], config.decode)
        translator = translation.Translator(engine, text.load_tokenizer(run / TOKENIZER))
        texts = translated(translator, corpus, corpus.domains("valid", config.data), sentences)
        score = joint_score(corpus, texts, config.validation.tokenize)
        scored = score, sum(len(references) for _, references in texts)
        console.print(
            f"validation {score.name} {score.value:.2f} on {scored[1]:,} sentences, `{score.signature}`"
        )
    removed = write_average(average, run, run / "model", scored)
    console.print(f"the model is in {run / 'model'}{moved_link(run)}{removed}")
    planned = average.state.config["trainer"][
        "max_steps"
    ]  # a time limit may have changed the number
    if average.made < planned and config.trainer.max_time is not None:
        made = f"update {average.made:,} of {planned:,}"
        console.print(f"stopped by trainer.max_time at {made}; the same command resumes from there")
