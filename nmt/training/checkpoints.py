"""The content of a checkpoint, checked when it is read.

`checkpoints/step=00001000.ckpt` contains only tensors, numbers and strings, and loads with
weights_only=True. Lightning writes the weights, Adam's moments and its loop state; the module
writes "sums" and "skipped"; the rest is in "nmt".
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from nmt.config import ExperimentConfig, ModelConfig, build_stored, matches, require, with_defaults
from nmt.errors import NMTError, one_line
from nmt.files import check_version, load_plain, parse_json
from nmt.model import check_shapes

FORMAT_VERSION = 3

PREFIX = "model."
"""The prefix of the names of the Transformer's weights."""

CONTENT = {
    "global_step": int,
    "epoch": int,
    "sums": Tensor,
    "skipped": int,
    "callbacks": dict[str, dict[str, Any]],
    "state_dict": dict[str, Tensor],
    "optimizer_states": list[dict[Any, Any]],
}
"""The types of the entries that resuming needs."""


@dataclass
class RunState:
    """`checkpoint["nmt"]`: the run that the checkpoint belongs to, and the state of that run."""

    config: dict[str, Any]
    vocabulary_size: int
    source: str
    target: str
    tokenizer: str
    """SHA-256 of tokenizer.model."""
    corpus: str
    """The fingerprint in the corpus's manifest."""
    files: dict[str, str] = field(default_factory=dict)
    """Name -> SHA-256, as `corpus_hashes` returns them."""
    init: str = ""
    """SHA-256 of the initial weights; empty if they are random."""
    origin: dict[str, str] = field(default_factory=dict)
    """The license and the model on the hub that the initial weights come from, if known."""
    seen: dict[str, Any] = field(default_factory=dict)
    """The lengths and characters of the corpus, from its manifest."""
    tokens: int = 0
    """Target tokens trained on so far."""
    seconds: float = 0.0
    devices: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    """The processor and `kernels.environment_record`."""
    moved: list[int] = field(default_factory=list)
    """The updates after which another environment continued the run."""
    metrics: dict[str, Any] = field(default_factory=dict)
    validation: dict[str, Any] = field(default_factory=dict)
    format_version: int = FORMAT_VERSION


def load_checkpoint(path: Path) -> dict[str, Any]:
    """A checkpoint's content, memory-mapped and checked.

    Its configuration is complete: it also has the options that were added after the checkpoint was
    written. Raises NMTError if training cannot have written the file.
    """
    require(path.is_file(), f"{path}: no such checkpoint")
    try:
        # Memory-mapped, so that a check of gigabytes of weights reads only the parts that it uses.
        content: dict[str, Any] = load_plain(path)
        state = content.get("nmt") if isinstance(content, dict) else None
        if not isinstance(state, dict) or "format_version" not in state:
            raise ValueError("it has no entry 'nmt'")
        # For another format, check_version reports both versions, which is more helpful than a
        # missing key.
        if state["format_version"] == FORMAT_VERSION:
            check_content(content)
    except (NMTError, ValueError, TypeError) as error:
        raise NMTError(
            f"{path}: not a readable checkpoint ({one_line(error)}): restore or remove this file"
        ) from error
    check_version(path, state["format_version"], FORMAT_VERSION)
    return content


def check_content(content: dict[str, Any]) -> None:
    """Raise NMTError, ValueError or TypeError if training cannot have written this content.

    Completes the configuration in place.
    """
    for key, kind in CONTENT.items():
        require(matches(content.get(key), kind), f"its {key!r} is missing or has the wrong type")
    require(content["sums"].shape == (3,), "it does not have three sums")
    parse_json(json.dumps(content["nmt"]))  # rejects deep nesting and numbers that are not finite
    run = build_stored(RunState, content["nmt"], "its entry 'nmt'")
    # Options that later versions added have the values that nmt used before them.
    config = with_defaults(ExperimentConfig, run.config)
    content["nmt"]["config"] = config
    model = build_stored(ModelConfig, config.get("model"), "its model", "model.")
    weights = model_weights(content)
    shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
    # The model is described without memory for its weights: a hostile file may claim any size.
    check_shapes(model, run.vocabulary_size, shapes, "its weights do not match its model")


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """The Transformer's weights by the names that they have in the Transformer."""
    weights = {}
    for name, tensor in checkpoint["state_dict"].items():
        if name.startswith(PREFIX):
            weights[name.removeprefix(PREFIX)] = tensor
    return weights
