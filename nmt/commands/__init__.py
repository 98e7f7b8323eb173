"""The commands, by name; each is imported when it is used."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nmt.config import Command
from nmt.registry import entries_of


class Commands(Mapping[str, Command]):
    """Name -> command, in the order of `nmt --help`."""

    def __getitem__(self, name: str) -> Command:
        command: Command = entries_of("command")[name].load()
        return command

    def __iter__(self) -> Iterator[str]:
        return iter(entries_of("command"))

    def __len__(self) -> int:
        return len(entries_of("command"))


COMMANDS = Commands()


def compose(command: str, overrides: list[str], config_dir: Path | None = None) -> Any:
    """The options of a command, as its dataclass, checked."""
    from nmt.config import compose

    return compose(COMMANDS[command], overrides, config_dir)
