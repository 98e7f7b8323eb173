"""Checkpoints: writing, reading, checking and upgrading them, and finding the one that a run resumes from.

`checkpoints/step=00001000.ckpt` holds plain tensors, numbers and strings; it loads with weights_only=True. Lightning
writes weights, Adam's moments and loops; everything else is under "nmt".
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins import TorchCheckpointIO
from torch import Tensor

from nmt.config import ExperimentConfig, ModelConfig, build, matches, sources_of
from nmt.data import PreparedCorpus, transforms_for
from nmt.errors import NMTError, one_line
from nmt.files import check_ours, check_shapes, check_version, load_plain, parse_json, sha256, whole_file
from nmt.training.run_folder import check_configuration, check_no_links, list_checkpoints

FORMAT_VERSION = 2
PREFIX = "model."
"""Begins the names of the Transformer's own weights."""
CONTENT = {
    "global_step": int,
    "epoch": int,
    "sums": Tensor,
    "skipped": int,
    "state_dict": dict[str, Tensor],
    "optimizer_states": list[dict[Any, Any]],
    "callbacks": dict[str, dict[str, Any]],
}
"""Keys of a checkpoint beside "nmt", and the types of their values."""


@dataclass
class RunState:
    """`checkpoint["nmt"]`: the run that the checkpoint belongs to, and its state."""

    config: dict[str, Any]
    vocabulary_size: int
    source: str
    target: str
    tokenizer: str
    """SHA-256 of the tokenizer."""
    corpus: str
    """Fingerprint of the prepared corpus."""
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the other files that decide updates, by name; older checkpoints have none."""
    init: str = ""
    """SHA-256 of the weights that training started from, if it did not start from random ones."""
    seen: dict[str, Any] = field(default_factory=dict)
    """Lengths and characters of the training pairs, from the corpus's manifest."""
    tokens: int = 0
    """Target tokens trained on, also since the last report."""
    seconds: float = 0.0
    """Training time, over all restarts."""
    devices: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    metrics: dict[str, Any] = field(default_factory=dict)
    """The state of MetricsCallback."""
    validation: dict[str, Any] = field(default_factory=dict)
    """The state of Validation."""
    format_version: int = FORMAT_VERSION


class UnreadableCheckpoint(NMTError):
    """A checkpoint that is empty, cut or damaged, or not written by nmt. The one before it may still be good."""


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content in the current format, memory-mapped; its check sums are verified.

    Raises UnreadableCheckpoint, and NMTError where there is no such file or its format version is unknown.
    """
    if not path.is_file():
        raise NMTError(f"{path}: no such checkpoint")
    try:
        content = load_plain(path)
        about = content.get("nmt") if isinstance(content, dict) else None
        if not isinstance(about, dict) or "format_version" not in about:
            raise ValueError("it has no entry 'nmt'")
        if about["format_version"] != 1:
            check_version(path, about["format_version"], FORMAT_VERSION)
        upgrade(content)
        check_content(content)
    except ValueError as error:
        raise UnreadableCheckpoint(f"{path}: no readable checkpoint ({one_line(error)})") from error
    return content  # type: ignore[no-any-return]


def upgrade(content: dict[str, Any]) -> None:
    """Bring content of format 1 to the current one: each callback's state was then under the name of its class."""
    about = content["nmt"]
    if about["format_version"] != 1:
        return
    try:
        metrics = next(state for state in content["callbacks"].values() if "seconds" in state)
        content["nmt"] = {
            **about,
            **{key: metrics[key] for key in ("tokens", "seconds", "devices")},
            "config": about["config"],
            "metrics": {
                "flops": metrics["flops"],
                "cost": metrics["cost"],
                "peaks": dict(metrics.get("peaks", [])),  # the first checkpoints had none
                "interval": metrics["interval_size"],
            },
            "validation": next(state for state in content["callbacks"].values() if "worse" in state),
            "format_version": FORMAT_VERSION,
        }
    except (AttributeError, LookupError, StopIteration, TypeError) as error:
        raise ValueError("its 'callbacks' is missing or of another type") from error
    content["callbacks"] = {}


def check_content(content: dict[str, Any]) -> None:
    """ValueError where a checkpoint lacks something, or holds something that training cannot have written."""
    for key, kind in CONTENT.items():
        if key not in content or not matches(content[key], kind):
            raise ValueError(f"its {key!r} is missing or of another type")
    if not 0 <= content["global_step"] < 2**40 or not 0 <= content["epoch"] < 2**31 or content["sums"].shape != (3,):
        raise ValueError("its update, epoch or sums are impossible")
    if not counts(content.get("loops", {})):
        raise ValueError("its loops hold more than counts")
    try:
        parse_json(json.dumps(content["nmt"]))
    except (TypeError, ValueError) as error:
        raise ValueError(f"its entry 'nmt' is no plain text ({error})") from error
    try:
        about = build(RunState, content["nmt"], "its entry 'nmt'")
        model = build(ModelConfig, about.config.get("model"), "its model")
        shapes = {name: tuple(tensor.shape) for name, tensor in model_weights(content).items()}
        check_shapes(model, about.vocabulary_size, shapes, "its weights are not of its model")
    except NMTError as error:
        raise ValueError(str(error)) from error
    for name, tensor in tensors(content["state_dict"], "") + tensors(content["optimizer_states"], "optimizer"):
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds numbers that are not finite")


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """The Transformer's own weights of a checkpoint."""
    return {k.removeprefix(PREFIX): v for k, v in checkpoint["state_dict"].items() if k.startswith(PREFIX)}


def counts(tree: Any) -> bool:
    """True for nested mappings that hold only counts, none of them negative."""
    if isinstance(tree, dict):
        return all(counts(value) for value in tree.values())
    return isinstance(tree, int) and 0 <= tree < 2**62


def tensors(tree: Any, name: str) -> list[tuple[str, Tensor]]:
    """The tensors in a tree, with their names."""
    if isinstance(tree, Tensor):
        return [(name, tree)]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list | tuple) else ()
    return [found for key, value in items for found in tensors(value, f"{name} {key}".strip())]


class DirectCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint straight into its folder.

    Lightning's own writes through memory and the system's folder for temporary files, which may be small, and where a
    killed process leaves its file behind.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        try:
            with whole_file(Path(path)) as temporary:
                torch.save(checkpoint, temporary)
        except NMTError as error:
            raise NMTError(
                f"{error} The checkpoints before it are whole, and the same command goes on from them"
            ) from error


@dataclass
class Resumed:
    """Where a run resumes."""

    checkpoint: Path | None = None
    """None: it starts from the beginning."""
    update: int = 0
    finished: bool = False
    unreadable: tuple[Path, ...] = ()
    """Newer checkpoints, which cannot be read."""


def decisive_files(config: ExperimentConfig, corpus: PreparedCorpus) -> dict[str, str]:
    """SHA-256 of the files that decide updates: training pairs, and those of transforms."""
    pairs = {f"train/{path.name}": path for path in sorted((corpus.folder / "train").glob("*.arrow"))}
    transforms = transforms_for(corpus.tokenizer_file, sources_of(config.data), config.seed)
    others = {name: Path(name).resolve() for transform in transforms for name in transform.files}
    return {name: sha256(path) for name, path in (pairs | others).items()}


def check_run(run: Path, config: ExperimentConfig, corpus: PreparedCorpus, init: str, files: dict[str, str]) -> Resumed:
    """Find the newest readable checkpoint; NMTError where the run cannot resume, or its options or files changed.

    `init` is the SHA-256 of the weights that training starts from, empty for random ones; `files` are those of
    `decisive_files`.
    """
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
        state = RunState(**content["nmt"])
        check_origin(path, state, corpus)
        if changed := [name for name, before in state.files.items() if files.get(name) != before]:
            raise NMTError(
                f"{path} was trained with another {changed[0]}: restore that file, or pass name=OTHER for a new run"
            )
        if state.init != init:
            began = "other weights than those of init" if state.init and init else "the weights of a model: pass init"
            began = began if state.init else "random weights: leave init out"
            raise NMTError(f"{path} began with {began}, or pass name=OTHER for a new run")
        update, patience = int(content["global_step"]), config.validation.patience
        stopped_early = patience is not None and state.validation["worse"] >= patience
        return Resumed(path, update, update >= config.trainer.max_steps or stopped_early, tuple(unreadable))
    for reason in unreadable.values():
        raise NMTError(f"{reason}; none of {run} can be read: remove that folder to start again, or pass name=OTHER")
    return Resumed()


def check_origin(path: Path, state: RunState, corpus: PreparedCorpus) -> None:
    """NMTError where a checkpoint was trained on another corpus, or with another vocabulary."""
    manifest = corpus.manifest
    for part, before, now in (
        ("tokenizer", state.tokenizer, manifest.tokenizer),
        ("corpus", state.corpus, manifest.fingerprint),
    ):
        if before != now:
            raise NMTError(
                f"{path} was trained with another {part} than the one in {corpus.folder}: "
                "prepare the corpus as it was, or pass name=OTHER for a new run"
            )
