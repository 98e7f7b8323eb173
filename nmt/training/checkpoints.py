"""Checkpoints: writing, reading and checking them, when to save, and which one a run resumes from.

`checkpoints/step=00001000.ckpt` holds plain tensors, numbers and strings; it loads with weights_only=True. Lightning
writes weights, Adam's moments and loops; everything else is under "nmt".
"""

import json
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from lightning import LightningModule, Trainer
from torch import Tensor

from nmt.config import CheckpointConfig, ExperimentConfig, ModelConfig, build, difference, matches, require, to_tree
from nmt.data import STOPPING, Manifest, PreparedCorpus, as_prepared
from nmt.errors import NMTError, one_line
from nmt.files import check_version, load_plain, parse_json
from nmt.model import check_ours, check_shapes
from nmt.training.module import TranslationModule
from nmt.training.run_folder import check_configuration, check_no_links, list_checkpoints, remove_older
from nmt.training.trainer import UpdateCallback
from nmt.training.validation import Validation

FORMAT_VERSION = 3
PREFIX = "model."  # of the names of the Transformer's own weights
CONTENT = {
    **{"global_step": int, "epoch": int, "sums": Tensor, "skipped": int, "callbacks": dict[str, dict[str, Any]]},
    **{"state_dict": dict[str, Tensor], "optimizer_states": list[dict[Any, Any]]},
}
"""Keys of a checkpoint beside "nmt", and the types of their values."""
AGREEMENT_UPDATES = 10
"""Updates between two agreements of the processes on stopping and saving. Each one waits for the device."""


@dataclass
class RunState:
    """`checkpoint["nmt"]`: the run that the checkpoint belongs to, and its state."""

    config: dict[str, Any]
    vocabulary_size: int
    source: str
    target: str
    tokenizer: str  # SHA-256
    corpus: str  # fingerprint
    files: dict[str, str] = field(default_factory=dict)  # name -> SHA-256
    init: str = ""  # SHA-256 of the weights; empty for random ones
    seen: dict[str, Any] = field(default_factory=dict)  # from the manifest
    tokens: int = 0  # of the target
    seconds: float = 0.0
    devices: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, Any] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION


class UnreadableCheckpoint(NMTError):
    """A checkpoint that is empty, cut or damaged, or not written by nmt. The one before it may still be good."""


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content, memory-mapped and verified; UnreadableCheckpoint, or NMTError for another format."""
    require(path.is_file(), f"{path}: no such checkpoint")
    try:
        content: dict[str, Any] = load_plain(path)
        state = content.get("nmt") if isinstance(content, dict) else None
        if not isinstance(state, dict) or "format_version" not in state:
            raise ValueError("it has no entry 'nmt'")
        if state["format_version"] == FORMAT_VERSION:
            check_content(content)
    except (NMTError, ValueError, TypeError) as error:
        raise UnreadableCheckpoint(f"{path}: no readable checkpoint ({one_line(error)})") from error
    check_version(path, state["format_version"], FORMAT_VERSION)
    return content


def check_content(content: dict[str, Any]) -> None:
    """NMTError, ValueError or TypeError where training cannot have written this."""
    for key, kind in CONTENT.items():
        require(matches(content.get(key), kind), f"its {key!r} is missing or of another type")
    require(content["sums"].shape == (3,), "its sums are not three")
    parse_json(json.dumps(content["nmt"]))
    run = build(RunState, content["nmt"], "its entry 'nmt'")
    model = build(ModelConfig, run.config.get("model"), "its model")
    shapes = {name: tuple(tensor.shape) for name, tensor in model_weights(content).items()}
    check_shapes(model, run.vocabulary_size, shapes, "its weights are not of its model")


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    return {k.removeprefix(PREFIX): v for k, v in checkpoint["state_dict"].items() if k.startswith(PREFIX)}


class CheckpointCallback(UpdateCallback):
    """Saves checkpoints to average and, by the clock, others that are not kept; stops the run early on request."""

    def __init__(
        self, config: CheckpointConfig, state: RunState, validation: Validation, max_seconds: float | None
    ) -> None:
        self.config, self.state, self.validation, self.max_seconds = config, state, validation, max_seconds
        self.metrics, self.run = validation.metrics, validation.metrics.run
        # The last signal that this process was sent, and the one that ended the run early; 0: none.
        self.signal = self.stopped_by = 0
        # The handlers from before training. Lightning sets its own in the meantime, and restores these.
        self.handlers = {number: signal.getsignal(number) for number in STOPPING}

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        same = trainer.strategy.broadcast(str(trainer.ckpt_path)) == str(trainer.ckpt_path)
        require(same, f"{self.run}: the processes see different checkpoints; all nodes must share the folder")

    def catch_signals(self, *arguments: Any) -> None:
        for number in self.handlers:
            signal.signal(number, self.on_signal)
        self.start = self.last_save = time.monotonic()

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        # The update ends first; a second signal ends the process as usual.
        self.signal = number
        signal.signal(number, self.handlers[signal.Signals(number)])

    def restore_handlers(self) -> None:
        for number, handler in self.handlers.items():
            signal.signal(number, handler)

    def requests(self, trainer: Trainer, module: LightningModule, step: int) -> list[int]:
        """The signal to stop for (0: none), whether time is up, and whether to save: the same on every process."""
        now, minutes = time.monotonic(), self.config.every_minutes
        time_is_up = self.max_seconds is not None and now - self.start >= self.max_seconds
        requests = [self.signal, time_is_up, minutes is not None and now - self.last_save >= 60 * minutes]
        if trainer.world_size == 1:
            return requests
        if step % AGREEMENT_UPDATES:
            return [0, 0, 0]
        return trainer.strategy.reduce(torch.tensor(requests, device=module.device), reduce_op="max").tolist()

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        number, time_is_up, save = self.requests(trainer, module, step)
        self.stopped_by = number or self.stopped_by
        # Lightning reads should_stop after every micro-batch, so it is only set here, at the end of an update.
        trainer.should_stop = trainer.should_stop or bool(number or time_is_up)
        if self.validation.improved:
            # Before the regular checkpoint: a run resumes from that one, and would not save this one again.
            trainer.save_checkpoint(self.run / "checkpoints" / "best.ckpt")
        if trainer.should_stop or step == trainer.max_steps or save or step % self.config.every_steps == 0:
            trainer.save_checkpoint(self.run / "checkpoints" / f"step={step:08d}.ckpt")
            self.last_save = time.monotonic()
            if trainer.is_global_zero:
                remove_older(self.run, self.config)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        assert isinstance(pl_module, TranslationModule)
        pl_module.check_finite()  # a checkpoint never holds such an update
        validation = {"best": self.validation.best, "worse": self.validation.worse}
        checkpoint["nmt"] = {**vars(self.state), **self.metrics.state(pl_module), "validation": validation}

    def on_load_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        state = checkpoint["nmt"]
        self.metrics.load(state["seconds"], state["metrics"])
        vars(self.validation).update(state["validation"])


@dataclass
class Resumed:
    """Where a run resumes: at its beginning, or at a checkpoint, with the newer ones that are unreadable."""

    checkpoint: Path | None = None
    update: int = 0
    finished: bool = False
    unreadable: tuple[Path, ...] = ()


def check_run(config: ExperimentConfig, corpus: PreparedCorpus, now: RunState) -> Resumed:
    """Find the newest readable checkpoint; NMTError where the run cannot resume, or its options or files changed."""
    run = Path(config.run)
    check_no_links(run)
    check_ours(run / "model")
    check_configuration(run, config)
    unreadable: dict[Path, UnreadableCheckpoint] = {}
    for path in reversed(list_checkpoints(run)):
        try:
            content = load_checkpoint(path)
        except UnreadableCheckpoint as error:
            unreadable[path] = error
            continue
        state, update, patience = RunState(**content["nmt"]), content["global_step"], config.validation.patience
        check_origin(path, state, corpus, now.files)
        start = config.init or "null (random)"
        require(state.init == now.init, f"{path} began with other weights than those of init={start}: pass name=OTHER")
        assert config.trainer.max_steps is not None
        stopped_early = patience is not None and state.validation["worse"] >= patience
        return Resumed(path, update, update >= config.trainer.max_steps or stopped_early, tuple(unreadable))
    for reason in unreadable.values():
        raise NMTError(f"{reason}; none of {run} can be read: remove that folder to start again, or pass name=OTHER")
    return Resumed()


def check_origin(path: Path, state: RunState, corpus: PreparedCorpus, files: dict[str, str] | None = None) -> None:
    """NMTError where a checkpoint was trained on another corpus, with another vocabulary, or with other `files`."""
    before = {"tokenizer": state.tokenizer, "corpus": state.corpus} | (state.files if files is not None else {})
    now = {"tokenizer": corpus.manifest.tokenizer, "corpus": corpus.manifest.fingerprint} | (files or {})
    for name, identity in before.items():
        there = f"than there is now ({corpus.folder}): restore it, or pass name=OTHER for a new run"
        require(now.get(name) == identity, f"{path} was trained with another {name} {there}")


def check_corpus(manifest: Manifest, config: ExperimentConfig) -> None:
    """NMTError where the corpus was prepared with another configuration of data or tokenizer."""
    trees = manifest.content, to_tree(config)
    changed = difference(*({"data": as_prepared(x["data"]), "tokenizer": x["tokenizer"]} for x in trees))
    require(
        not changed,
        f"{Path(config.prepared)} was prepared with another configuration ({changed}): "
        "pass the same options to nmt train, or prepare it again",
    )
