"""The environment that computed a checkpoint's updates. It decides the last bits of the weights."""

from collections.abc import Mapping
from typing import Any

from nmt.data import accumulation
from nmt.training.reduction import has_fixed_order

DEVICES = "number of devices"
"""A fact that matters only if several devices add gradients in another order than one device."""


def environment_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that the last bits depend on, by name; `state` is a checkpoint's entry "nmt"."""
    # As devices_in_words writes it: the number and the kind.
    count, _, device = state["devices"].partition(" x ")
    facts: dict[str, Any] = {}
    facts["torch"] = state["versions"].get("torch")
    facts["device"] = device
    if not is_order_fixed(state["config"], count):
        facts[DEVICES] = count
    facts.update(state.get("environment", {}))
    return facts


def has_other_environment(before: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the environments of two checkpoints may compute different bits.

    `before` and `now` are their entries "nmt".
    """
    recorded = environment_of(before)
    current = environment_of(now)
    # Older versions of nmt recorded less. DEVICES is missing if the number does not matter.
    names = {*recorded, DEVICES}
    return any(recorded.get(name) != current.get(name) for name in names)


def is_order_fixed(config: Mapping[str, Any], count: str) -> bool:
    """Whether this number of devices adds gradients in the order of a single device."""
    if count == "1":
        return True
    is_number = count.isascii() and count.isdigit()  # a damaged checkpoint may have any text
    if config["trainer"]["reduction"] != "exact" or not is_number:
        return False
    micro_batches = config["batching"]["micro_batches"]
    devices = int(count)
    # Such a run cannot exist, but the file may say so.
    if devices == 0 or micro_batches % devices:
        return False
    return has_fixed_order(accumulation(micro_batches, devices), devices)
