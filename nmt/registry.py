"""Everything that the core and the plugins add, by extension point (nmt/extensions.py) and name.

Each plugin defines a function `register(add)`: the core in `nmt/commands/__init__.py`, built-in
plugins in `nmt/plugins/NAME/plugin.py`, and other packages under the entry-point group
`nmt.plugins`.
"""

from dataclasses import replace
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, TypeVar, cast

from nmt.errors import NMTError, one_line
from nmt.extensions import KINDS, Entry, import_attribute

GROUP = "nmt.plugins"
"""The group of entry points in which other packages list their `register`."""

E = TypeVar("E", bound=Entry[Any])


def built_in_plugins() -> list[str]:
    """The names of the folders in nmt/plugins that contain a plugin, in order."""
    folder = Path(__file__).parent / "plugins"
    # Found in the folder, so that a plugin is added or removed with its folder. Sorted, so that
    # help and messages have the same order on every file system.
    return sorted(file.parent.name for file in folder.glob("*/plugin.py"))


# Once per process: entries name their code by path, so filling the registry imports no plugin's
# libraries.
@cache
def registry() -> dict[type[Entry[Any]], dict[str, Entry[Any]]]:
    """Extension point -> name -> entry: first the core's, then those of plugins."""
    ours = {"core": "nmt.commands:register"}
    for name in built_in_plugins():
        ours[name] = f"nmt.plugins.{name}.plugin:register"
    of_other_packages = {point.name: point.value for point in entry_points(group=GROUP)}
    entries: dict[type[Entry[Any]], dict[str, Entry[Any]]] = {kind: {} for kind in KINDS}
    for plugin, path in {**ours, **of_other_packages}.items():
        # The default argument binds the plugin of this turn. A closure would see the next one,
        # should a plugin keep `add`.
        def add(entry: Entry[Any], plugin: str = plugin) -> None:
            others = entries[type(entry)]
            if entry.name in others:
                owner = others[entry.name].plugin
                raise NMTError(f"{owner} already adds {entry.kind} {entry.name}")
            others[entry.name] = replace(entry, plugin=plugin)

        try:
            import_attribute(path)(add)
        # A plugin of another package may fail in any way, for example if it was made for another
        # version. Errors of our own plugins are bugs, so their traceback stays.
        except Exception as error:
            if plugin in ours:
                raise
            raise NMTError(f"plugin {plugin}: {one_line(error)}; fix or uninstall it") from error
    return entries


def entries_of(kind: type[E]) -> dict[str, E]:
    """Name -> entry, for one extension point."""
    return cast(dict[str, E], registry()[kind])
