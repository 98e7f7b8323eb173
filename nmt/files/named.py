"""Models that are named by a plugin's prefix, such as hub:ORG/NAME, instead of by a folder."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from nmt.extensions import ModelsEntry
from nmt.registry import entries_of


@dataclass(frozen=True)
class NamedModel:
    """The model that a name stands for now."""

    folder: Path
    """Its model directory, into which nmt writes nothing."""
    name: str
    """The name of this version, such as hub:ORG/NAME@COMMIT."""
    origin: Mapping[str, str] = field(default_factory=dict)
    """Entries for the TrainingRecord of a model whose training starts from this one."""


def is_prefixed(name: str) -> bool:
    """Whether a name begins with the prefix of a plugin, so that it is no path."""
    return any(name.startswith(prefix) for prefix in entries_of(ModelsEntry))


# Once per process. A command finds its model several times, which must be the same one even if
# somebody publishes a new version meanwhile.
@cache
def named_model(name: str) -> NamedModel:
    """The model of a name with a prefix; NMTError if it cannot be found."""
    for prefix, entry in entries_of(ModelsEntry).items():
        if name.startswith(prefix):
            return entry.load()(name)
    raise AssertionError(f"{name} has no prefix")
