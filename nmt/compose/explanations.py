"""What is wrong with an override, and what would be right, in one line."""

import difflib
import re
from pathlib import Path

from nmt.compose.command import Command
from nmt.compose.options import command_groups, command_options
from nmt.compose.overrides import KEY, check_interpolations, parse, parse_override
from nmt.compose.own_groups import explain_own_groups
from nmt.config.renamed import RENAMED
from nmt.config.rules import shown
from nmt.config.trainer import check_flag
from nmt.errors import NMTError


def check_overrides(command: Command, overrides: list[str], config_dir: Path | None) -> None:
    """NMTError for what Hydra lets pass in silence: an unknown option of a group, an added key that nothing reads."""
    parsed = [override for override in map(parse, overrides) if override]
    known_groups = command_groups(command, config_dir)
    keys: list[str] = []
    for override in parsed:
        key = override.key_or_group
        if key in RENAMED and RENAMED[key].split(".")[0] in known_groups:
            raise NMTError(f"{key}: it is called {RENAMED[key]} now")
        if override.is_sweep_override():
            sweeps = ", and --sweep trains with each value in turn" if "--sweep" in command.options else ""
            raise NMTError(f"{override.input_line}: one value, please; lists are written [a,b]{sweeps}")
        value = None if override.is_delete() else override.value()
        check_interpolations(str(override.input_line), value, KEY)
        if key.startswith("trainer."):
            check_flag(key.split(".")[1])
        wanted = key in known_groups and not (key == "experiment" and value is None)
        if wanted and value not in known_groups[key][1]:
            shown = "null" if value is None else value
            raise NMTError(f"{key}={shown}: no such option; {nearest(str(value), known_groups[key][1])}")
        if override.is_add() or re.match(r"hydra\b", key):
            keys = keys or [*(option.key for option in command_options(command)), *known_groups]
            if key not in keys:
                raise NMTError(f"unknown key {key}; {nearest_key(key, keys)}")


def explain(command: Command, overrides: list[str], config_dir: Path | None, error: Exception) -> str:
    """One line for a composition that failed: the override that is to blame, what is wrong, what is allowed."""
    known_groups = command_groups(command, config_dir)
    keys: list[str] | None = None
    for text in overrides:
        try:
            override = parse_override(text)
        except NMTError as parse_error:
            if "=" not in text:
                return f"{text!r} is not KEY=VALUE; `nmt {command.name} --help` lists the keys"
            return f"{shown(text)!r} cannot be parsed ({parse_error}); quote special characters: 'KEY=\"VALUE\"'"
        key = override.key_or_group
        if not key:
            return f"{text!r} is not KEY=VALUE; `nmt {command.name} --help` lists the keys"
        if key in known_groups:
            continue
        if keys is None:
            keys = [option.key for option in command_options(command)]
        if key not in keys and not override.is_add():
            return f"unknown key {key}; {nearest_key(key, [*keys, *known_groups])}"
        full_key = getattr(error.__cause__ or error, "full_key", None)
        if full_key == key:
            return f"{text}: {one_line(error.__cause__ or error).removesuffix(f'full_key: {key}').strip()}"
    return explain_own_groups(config_dir, list(known_groups), one_line(error)) if config_dir else one_line(error)


def nearest(word: str, words: list[str]) -> str:
    """ "; did you mean X?", or the words themselves where none is near."""
    matches = difflib.get_close_matches(word, words, n=1, cutoff=0.5)
    return f"did you mean {matches[0]}?" if matches else f"there are {', '.join(words)}"


def nearest_key(key: str, keys: list[str]) -> str:
    """The nearest of all keys, or those of the same group."""
    matches = difflib.get_close_matches(key, keys, n=1, cutoff=0.6)
    if matches:
        return f"did you mean {matches[0]}?"
    last = {name.rsplit(".", 1)[-1]: name for name in keys}
    matches = difflib.get_close_matches(key.rsplit(".", 1)[-1], list(last), n=1, cutoff=0.75)
    if matches:
        return f"did you mean {last[matches[0]]}?"
    group = key.split(".")[0] + "."
    siblings = [name for name in keys if name.startswith(group)] or list(dict.fromkeys(n.split(".")[0] for n in keys))
    return f"there are {', '.join(siblings)}"


def one_line(error: BaseException) -> str:
    """An error's message and its cause's, without line ends and without the folders that Hydra looked in."""
    parts = [str(error)] + ([str(error.__cause__)] if error.__cause__ else [])
    lines = [line.strip() for part in parts for line in part.splitlines() if line.strip()]
    said = " ".join(line for line in lines if not re.match(r"(object_type|reference_type|To append)", line))
    return said.partition(" Config search path:")[0].removesuffix(" full_key:")
