"""Words without =: how they are told from KEY=VALUE."""

import re
from pathlib import Path

from nmt.compose.command import Command
from nmt.config import type_of


def exists(path: Path) -> bool:
    """True if a path exists; False also for a text that cannot be a file name."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_bare(word: str) -> bool:
    """True for a word that is not KEY=VALUE.

    A path such as runs/heads=4 and a sentence may contain =, but a key has neither slash nor blank. Hydra's ~KEY
    deletes a key.
    """
    key, equals, _ = word.partition("=")
    return bool(re.search(r"[/\s]", key)) if equals else not re.fullmatch(r"~[\w.]+", word)


def is_entry(command: Command, word: str) -> bool:
    """True for NAME=[A,B] that is no key, of a command that takes such entries."""
    found = re.fullmatch(r"([\w.+-]+)=\[.*\]", word)
    return bool(command.entries and found and not type_of(command.config, found[1])[0])
