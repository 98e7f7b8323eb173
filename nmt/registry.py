"""Everything that the core and the plugins add, by kind and name.

Each plugin defines a function `register(add)`: the core in `nmt/commands/__init__.py`, built-in
plugins in `nmt/plugins/NAME/plugin.py`, and other packages under the entry-point group
`nmt.plugins`. An entry names its code, which is imported on first use.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from nmt.errors import NMTError, one_line

PLUGINS = Path(__file__).parent / "plugins"
KINDS = (
    "command",
    "option",
    "options",
    "engine",
    "document",
    "corpus",
    "pairs",
    "metric",
    "optimizer",
    "stage",
    "transform",
    "api",
    "answer",
    "file",
    "import",
    "export",
    "folder",
)


@dataclass(frozen=True)
class Entry:
    name: str
    path: str
    """package.module:attribute"""
    plugin: str
    facts: Mapping[str, Any]
    """Properties that need no import, such as a command's summary or a document's suffixes."""

    def load(self) -> Any:
        return import_attribute(self.path)


def import_attribute(path: str) -> Any:
    """Import `package.module:attribute`."""
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


@cache
def registry() -> dict[str, dict[str, Entry]]:
    """Kind -> name -> entry: core entries first, then built-in plugins', then other packages'."""
    built_in = sorted(file.parent.name for file in PLUGINS.glob("*/plugin.py"))
    paths = {"core": "nmt.commands:register"}
    for name in built_in:
        paths[name] = f"nmt.plugins.{name}.plugin:register"
    for point in entry_points(group="nmt.plugins"):
        paths[point.name] = point.value
    entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
    for plugin, path in paths.items():

        def add(kind: str, name: str, path: str, plugin: str = plugin, **facts: Any) -> None:
            assert kind in KINDS, f"unknown kind {kind}"
            assert name not in entries[kind], (
                f"{entries[kind][name].plugin} already adds {kind} {name}"
            )
            entries[kind][name] = Entry(name, path, plugin, facts)

        try:
            import_attribute(path)(add)
        except Exception as error:
            if plugin == "core" or plugin in built_in:
                raise
            raise NMTError(f"plugin {plugin}: {one_line(error)}; fix or uninstall it") from error
    return entries


def entries_of(kind: str) -> dict[str, Entry]:
    return registry()[kind]
