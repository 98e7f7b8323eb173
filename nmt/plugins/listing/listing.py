"""`nmt plugins`: list the plugins and what each adds."""

from collections import defaultdict
from dataclasses import dataclass

from nmt.config import Command
from nmt.registry import registry


@dataclass
class PluginsConfig:
    """No options."""


def run(config: PluginsConfig) -> None:
    names = defaultdict[tuple[str, str], list[str]](list)
    for kind, entries in registry().items():
        for entry in entries.values():
            names[entry.plugin, kind].append(entry.name)
    for (plugin, kind), added in sorted(names.items(), key=lambda row: (row[0][0] != "core", row[0])):
        print(f"{plugin:12} {kind:9} {', '.join(added)}")


COMMAND = Command("plugins", PluginsConfig, run, examples=("", "| grep metric"))
