"""Trees of keys and values, as in YAML files, and their dotted keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_CHANGES = 4
"""The maximum number of changes that a message lists."""


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A tree as dotted keys and values; lists stay as they are."""
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def is_inside(key: str, group: str) -> bool:
    """Whether a key is a group, or one of its keys."""
    # The dots keep `model` from containing `models`.
    return f"{key}.".startswith(f"{group}.")


@dataclass(frozen=True)
class Change:
    """A key whose values differ between two trees; None if a tree lacks the key."""

    key: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.key}: {self.old} -> {self.new}"


def changes_between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """The keys whose values differ between two trees, those of the old tree first."""
    old_values = flatten(old)
    new_values = flatten(new)
    changes = []
    # A dict as an ordered set.
    for key in {**old_values, **new_values}:
        change = Change(key, old_values.get(key), new_values.get(key))
        if change.old != change.new:
            changes.append(change)
    return changes


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The changes between two trees, as "key: old -> new"; empty if there are none."""
    return listed(changes_between(old, new))


def listed(changes: Sequence[Change]) -> str:
    """The first changes, and how many follow."""
    text = ", ".join(map(str, changes[:MOST_CHANGES]))
    if len(changes) > MOST_CHANGES:
        text += f" and {len(changes) - MOST_CHANGES} more"
    return text
