"""`nmt plugins`: the plugins, and what each adds."""

from dataclasses import dataclass
from typing import Any

from nmt.config import Command
from nmt.errors import NMTError
from nmt.registry import KINDS, entries_of


@dataclass
class PluginsConfig:
    """The options of `nmt plugins`: there are none."""


def run(config: PluginsConfig) -> None:
    """Print a line for each plugin and kind, with the names of what it adds."""
    added: dict[tuple[bool, str], dict[str, list[str]]] = {}
    for kind in KINDS:
        for name, entry in entries_of(kind).items():
            added.setdefault((entry.plugin != "core", entry.plugin), {}).setdefault(kind, []).append(name)
    for (_, plugin), kinds in sorted(added.items()):
        for kind, names in kinds.items():
            print(f"{plugin:12} {kind:9} {', '.join(names)}")


def no_words(words: list[str]) -> dict[str, Any]:
    raise NMTError(f"{words[0]}: `nmt plugins` takes no words")


COMMAND = Command("plugins", PluginsConfig, run, no_words)
