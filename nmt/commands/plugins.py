"""`nmt plugins`: the plugins, and what each adds."""

from dataclasses import dataclass

from nmt.config import Command
from nmt.registry import registry


@dataclass
class PluginsConfig:
    """The options of `nmt plugins`: none."""


def run(config: PluginsConfig) -> None:
    """Print a line for each plugin and kind, with the names of what the plugin adds."""
    names: dict[tuple[str, str], list[str]] = {}
    for kind, entries in registry().items():
        for entry in entries.values():
            names.setdefault((entry.plugin, kind), []).append(entry.name)
    for (plugin, kind), added in sorted(names.items(), key=lambda row: (row[0][0] != "core", row[0])):
        print(f"{plugin:12} {kind:9} {', '.join(added)}")


COMMAND = Command("plugins", PluginsConfig, run)
