"""What a checkpoint must hold to be trusted: of the types, names, shapes and finite numbers that training writes."""

import json
from typing import Any

from torch import Tensor

from nmt.config import ModelConfig
from nmt.errors import NMTError
from nmt.model_directory.shapes import check_shapes
from nmt.storage.foreign import build, matches, parse_json

PREFIX = "model."
"""Of the Transformer's own weights."""
ABOUT = {"config": dict, "vocabulary_size": int, "source": str, "target": str, "tokenizer": str, "corpus": str}
CONTENT = {
    "global_step": int,
    "epoch": int,
    "sums": Tensor,
    "skipped": int,
    "state_dict": dict[str, Tensor],
    "optimizer_states": list[dict[Any, Any]],
    "callbacks": dict[str, dict[str, Any]],
}


def model_weights(checkpoint: dict[str, Any]) -> dict[str, Tensor]:
    """The Transformer's own weights of a checkpoint."""
    return {k.removeprefix(PREFIX): v for k, v in checkpoint["state_dict"].items() if k.startswith(PREFIX)}


def check_content(content: dict[str, Any]) -> None:
    """ValueError where a checkpoint lacks something, or holds what training cannot have written."""
    for tree, kinds in ((content, CONTENT), (content["nmt"], ABOUT)):
        for key, kind in kinds.items():
            if key not in tree or not matches(tree[key], kind):
                raise ValueError(f"none of nmt's: its {key!r} is missing or of another type")
    try:
        parse_json(json.dumps(content["nmt"]))
    except (TypeError, ValueError) as error:
        raise ValueError(f"none of nmt's: what it tells of its run is no plain text ({error})") from error
    if not 0 <= content["global_step"] < 2**40 or not 0 <= content["epoch"] < 2**31 or content["sums"].shape != (3,):
        raise ValueError("none of nmt's: its update, epoch or sums cannot be")
    if not counts(content.get("loops", {})):
        raise ValueError("none of nmt's: its loops hold more than counts")
    weights = model_weights(content)
    try:
        config = build(ModelConfig, content["nmt"]["config"].get("model"), "its model")
        shapes = {name: tuple(tensor.shape) for name, tensor in weights.items()}
        check_shapes(config, content["nmt"]["vocabulary_size"], shapes, "its weights are not of its model")
    except NMTError as error:
        raise ValueError(str(error)) from error
    for name, tensor in tensors(content["state_dict"], "") + tensors(content["optimizer_states"], "optimizer"):
        if not tensor.isfinite().all():
            raise ValueError(f"{name} holds numbers that are not finite")


def counts(tree: Any) -> bool:
    """Whether mappings within mappings hold nothing but counts, none of them negative."""
    if isinstance(tree, dict):
        return all(counts(value) for value in tree.values())
    return isinstance(tree, int) and 0 <= tree < 2**62


def tensors(tree: Any, name: str) -> list[tuple[str, Tensor]]:
    """The tensors in a tree, each behind its name."""
    if isinstance(tree, Tensor):
        return [(name, tree)]
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list | tuple) else ()
    return [found for key, value in items for found in tensors(value, f"{name} {key}".strip())]
