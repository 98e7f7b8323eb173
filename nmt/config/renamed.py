"""Keys that had another name before 0.1.0: old files are still read, and a command line gets the new name."""

from dataclasses import MISSING, asdict, fields
from typing import Any

from nmt.plugins.augment.config import NoiseConfig

RENAMED = {
    "batching.shards": "batching.micro_batches",
    "batching.tokens": "batching.tokens_per_update",
    "batching.tokens_per_device": "batching.max_tokens",
    "decode.sample": "decode.do_sample",
    "decode.no_repeat_ngram": "decode.no_repeat_ngram_size",
    "decode.max_extra": "decode.max_extra_length",
    "model.restricted_to": "model.attention_window",
}
"""Old key -> new key, of the same group."""


def with_defaults(group: type, tree: dict[str, Any]) -> dict[str, Any]:
    """The values of a configuration group, with the defaults of keys that were added since they were written."""
    return {**{each.name: each.default for each in fields(group) if each.default is not MISSING}, **tree}


ADDED: dict[str, Any] = {"tag": None, "temperature": 1.0, "sources": [], "noise": asdict(NoiseConfig())}
"""Keys of `data` and `tokenizer` since 0.1.0, and the values with which a corpus is what it was without them."""


def without_defaults(group: dict[str, Any]) -> dict[str, Any]:
    """The values that make a prepared corpus what it is, as they were written before there were more keys."""
    return {key: value for key, value in group.items() if key not in ADDED or value != ADDED[key]}


def with_new_names(tree: dict[str, Any]) -> dict[str, Any]:
    """A configuration with the current names of its keys; what is no group stays as it is."""
    renamed = dict(tree)
    for old, new in RENAMED.items():
        group, name = old.split(".")
        keys = renamed.get(group)
        if isinstance(keys, dict) and name in keys:
            new_name = new.split(".")[1]
            renamed[group] = {new_name if key == name else key: value for key, value in keys.items()}
    return renamed
