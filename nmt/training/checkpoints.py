"""The content of a checkpoint: how it is checked, read, written, and brought to today's format.

`checkpoints/step=00001000.ckpt` holds plain tensors, numbers and strings; it loads with weights_only=True. Lightning
writes weights, Adam's moments and loops; everything else stands under "nmt".
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch.plugins import TorchCheckpointIO
from torch import Tensor

from nmt.config import ModelConfig
from nmt.config.renamed import with_new_names
from nmt.errors import NMTError, one_line
from nmt.model_directory.shapes import check_shapes
from nmt.storage.archive import load_plain
from nmt.storage.foreign import build, matches, parse_json
from nmt.storage.whole import whole_file

FORMAT_VERSION = 2
PREFIX = "model."
"""Of the names of the Transformer's own weights."""
CONTENT = {
    "global_step": int,
    "epoch": int,
    "sums": Tensor,
    "skipped": int,
    "state_dict": dict[str, Tensor],
    "optimizer_states": list[dict[Any, Any]],
    "callbacks": dict[str, dict[str, Any]],
}
"""Beside "nmt", and its types."""


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
    seen: dict[str, Any] = field(default_factory=dict)
    """Lengths and characters of the training pairs, as its manifest has them."""
    tokens: int = 0
    """Target tokens trained on."""
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
    """A checkpoint that is empty, cut or damaged, or none of ours: the one before it may be whole."""


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content in today's format, mapped from its file; its check sums are looked at.

    Raises UnreadableCheckpoint, and NMTError where there is none or it is of another format version.
    """
    if not path.is_file():
        raise NMTError(f"{path}: no such checkpoint")
    try:
        content = load_plain(path)
        version = read_version(content)
        if version not in (1, FORMAT_VERSION):
            raise NMTError(
                f"{path}: format version {version}, but this nmt reads {FORMAT_VERSION}: use the nmt that wrote it"
            )
        check_content(upgraded(content))
    except ValueError as error:
        raise UnreadableCheckpoint(f"{path}: no readable checkpoint ({one_line(error)})") from error
    return content  # type: ignore[no-any-return]


def read_version(content: Any) -> Any:
    """The format version of a checkpoint; ValueError where it is none of ours."""
    about = content.get("nmt") if isinstance(content, dict) else None
    if not isinstance(about, dict) or "format_version" not in about:
        raise ValueError("none of nmt's")
    return about["format_version"]


def upgraded(content: dict[str, Any]) -> dict[str, Any]:
    """The content, changed to today's format: in format 1 each callback had its state under the name of its class.

    Raises ValueError where it is of format 1 and lacks that.
    """
    about = content["nmt"]
    if about["format_version"] != 1:
        return content
    try:
        metrics = next(state for state in content["callbacks"].values() if "seconds" in state)
        content["nmt"] = {
            **about,
            **{key: metrics[key] for key in ("tokens", "seconds", "devices")},
            "config": with_new_names(about["config"]),
            "metrics": {
                "flops": metrics["flops"],
                "cost": metrics["cost"],
                "peaks": dict(metrics.get("peaks", [])),  # there was none in the first checkpoints
                "interval": metrics["interval_size"],
            },
            "validation": next(state for state in content["callbacks"].values() if "worse" in state),
            "format_version": FORMAT_VERSION,
        }
    except (AttributeError, LookupError, StopIteration, TypeError) as error:
        raise ValueError("none of nmt's: its 'callbacks' is missing or of another type") from error
    content["callbacks"] = {}
    return content


def check_content(content: dict[str, Any]) -> None:
    """ValueError where a checkpoint lacks something, or holds what training cannot have written."""
    for key, kind in CONTENT.items():
        if key not in content or not matches(content[key], kind):
            raise ValueError(f"none of nmt's: its {key!r} is missing or of another type")
    if not 0 <= content["global_step"] < 2**40 or not 0 <= content["epoch"] < 2**31 or content["sums"].shape != (3,):
        raise ValueError("none of nmt's: its update, epoch or sums cannot be")
    if not counts(content.get("loops", {})):
        raise ValueError("none of nmt's: its loops hold more than counts")
    try:
        parse_json(json.dumps(content["nmt"]))
    except (TypeError, ValueError) as error:
        raise ValueError(f"none of nmt's: what it tells of its run is no plain text ({error})") from error
    try:
        about = build(RunState, content["nmt"], "none of nmt's")
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
    """True for mappings within mappings that hold nothing but counts, none of them negative."""
    if isinstance(tree, dict):
        return all(counts(value) for value in tree.values())
    return isinstance(tree, int) and 0 <= tree < 2**62


def tensors(tree: Any, name: str) -> list[tuple[str, Tensor]]:
    """The tensors in a tree, each behind its name."""
    if isinstance(tree, Tensor):
        return [(name, tree)]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list | tuple) else ()
    return [found for key, value in items for found in tensors(value, f"{name} {key}".strip())]


class DirectCheckpointIO(TorchCheckpointIO):
    """Writes a checkpoint where it is wanted, and reads those of format 1 too.

    Lightning's own takes it through memory and the system's folder for temporary files, which may be small, and where
    a killed process leaves it behind.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: str | Path, storage_options: Any = None) -> None:
        try:
            with whole_file(Path(path)) as temporary:
                torch.save(checkpoint, temporary)
        except NMTError as error:
            raise NMTError(
                f"{error} The checkpoints before it are whole, and the same command goes on from them"
            ) from error

    def load_checkpoint(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        return upgraded(super().load_checkpoint(*arguments, **named))
