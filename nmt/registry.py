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

CORE = "core"
"""The plugin to which the registry attributes the entries of the core."""

E = TypeVar("E", bound=Entry[Any])


def built_in_plugins() -> list[str]:
    """The names of the folders in nmt/plugins that contain a plugin, in order."""
    folder = Path(__file__).parent / "plugins"
    # Found in the folder, so that a plugin is added or removed with its folder. Sorted, so that
    # help and messages have the same order on every file system.
    return sorted(file.parent.name for file in folder.glob("*/plugin.py"))


def all_plugins() -> dict[str, str]:
    """Name -> path of `register`: the core, built-in plugins, and plugins of other packages."""
    paths = {CORE: "nmt.commands:register"}
    for name in built_in_plugins():
        paths[name] = f"nmt.plugins.{name}.plugin:register"
    packages = dict.fromkeys(paths, "nmt")
    for point in entry_points(group=GROUP):
        package = point.dist.name if point.dist else point.module
        if point.name in paths:
            raise NMTError(
                f"plugin {point.name} of {package}: {packages[point.name]} has a plugin of the "
                "same name; rename or uninstall it"
            )
        paths[point.name] = point.value
        packages[point.name] = package
    return paths


# Once per process: entries name their code by path, so filling the registry imports no plugin's
# libraries.
@cache
def registry() -> dict[type[Entry[Any]], dict[str, Entry[Any]]]:
    """Extension point -> name -> entry: first the core's, then those of plugins."""
    ours = {CORE, *built_in_plugins()}
    entries: dict[type[Entry[Any]], dict[str, Entry[Any]]] = {kind: {} for kind in KINDS}
    for plugin, path in all_plugins().items():
        # The default argument binds the plugin of this turn. A closure would see the next one,
        # should a plugin keep `add`.
        def add(entry: Entry[Any], plugin: str = plugin) -> None:
            if type(entry) not in entries:
                raise NMTError(f"add takes entries of nmt.extensions, not {type(entry).__name__}")
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
