"""`KEY=VALUE` as one writes it in a shell, and as Hydra's grammar wants it."""

import re
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import OmegaConf

from nmt.compose.command import Command
from nmt.config.rules import shown
from nmt.errors import NMTError, one_line

NAMES = ("data.train", "data.valid", "data.test", "data.extra", "data.path")
"""Keys whose values are names of files, which need no quotes either, or lists of these in brackets."""
KEY = re.compile(r"\$\{\.*\w+(\.\w+)*\}")
"""An interpolation that names another key."""
ENVIRONMENT = re.compile(r"\$\{oc\.env:")


def name_bare_word(command: Command, overrides: list[str]) -> list[str]:
    """`runs/x` -> `run=runs/x`, where the command takes a word without =; NMTError for a second one."""
    key = command.word
    # A path may hold a =, as runs/heads=4, and so may a sentence; a key holds neither slash nor blank.
    bare = [word for word in overrides if key and ("=" not in word or re.search(r"[/\s]", word.partition("=")[0]))]
    if not bare:
        return overrides
    if len(bare) > 1 or any(word.startswith(f"{key}=") for word in overrides):
        raise NMTError(f"{bare[-1]}: `nmt {command.name}` takes one {key}; {overrides[0]} is given too")
    return [set_text(str(key), word) if word == bare[0] else word for word in overrides]


def quote_text(command: Command, word: str) -> str:
    """The override of a key for running text, quoted where Hydra or OmegaConf would take that for something else.

    What is null, or quoted in Hydra's way, stays so.
    """
    key, _, value = word.partition("=")
    if key in NAMED and command.tree == "train":
        return quote_name(key, value, parse(word))
    if key not in (*command.texts, *NAMES, command.word) or value == "null":
        return word
    parsed = parse(word)
    if key in NAMES and value.startswith("["):
        return quote_names(key, value, parsed)
    quoted = parsed is not None and not parsed.is_sweep_override() and value.startswith(("'", '"'))
    text = str(parsed.value()) if parsed and quoted else value
    return set_text(key, text if key in NAMES else literal(text))


NAMED = ("name", "data.name", "prepared", "run", "model.name")
"""Keys whose values are names, also those that look like numbers: 1.10 is not 1.1."""


def quote_name(key: str, value: str, parsed: Override | None) -> str:
    """The override of a key for a name."""
    number = parsed is not None and not parsed.is_sweep_override() and isinstance(parsed.value(), int | float | bool)
    return set_text(key, value) if number else f"{key}={value}"


def quote_names(key: str, value: str, parsed: Override | None) -> str:
    """The override of a key for names of files, given as a list: [a, b c]."""
    listed = parsed.value() if parsed and not parsed.is_sweep_override() else None
    texts = isinstance(listed, list) and all(isinstance(item, str) for item in listed)
    names = [item.strip() for item in value[1:-1].split(",")]
    return set_texts(key, names) if value.endswith("]") and not texts else f"{key}={value}"


def literal(text: str) -> str:
    """A text as OmegaConf has to be given it, so that ${} in it names no key."""
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", text)


def check_interpolations(where: str, value: Any, *allowed: re.Pattern[str]) -> None:
    """NMTError where ${} in a value, or in anything below it, is none of those that are allowed."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        for item in value:
            check_interpolations(where, item, *allowed)
        return
    text = str(value)
    for found in re.finditer(r"(\\*)(\$\{)", text):
        escaped = len(found[1]) % 2 == 1
        if not escaped and not any(pattern.match(text, found.start(2)) for pattern in allowed):
            raise NMTError(
                f"{where}: {shown(text[found.start(2) :])} cannot be used; ${{}} names another key, as ${{data.name}}"
            )


def parse(text: str) -> Override | None:
    """An override as Hydra understands it; None where it does not."""
    try:
        return parse_override(text)
    except NMTError:
        return None


def parse_override(text: str) -> Override:
    """An override as Hydra understands it; NMTError, which says why, where it does not."""
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException as error:
        raise NMTError(one_line(error)) from error
    except (RecursionError, ValueError) as error:
        raise NMTError("nested too deeply, or a number of thousands of digits") from error


def set_text(key: str, value: str) -> str:
    """The override that sets a key to a text, quoted where Hydra would take the text for something else."""
    plain = parse(f"{key}={value}")
    if plain and not plain.is_sweep_override() and plain.value() == value:
        return f"{key}={value}"
    return f"{key}={QuotedString(value, Quote.double).with_quotes()}"


def set_texts(key: str, values: list[str]) -> str:
    """The override that sets a key to a list of texts."""
    return f"{key}=[{','.join(QuotedString(value, Quote.double).with_quotes() for value in values)}]"


def in_yaml(value: Any) -> str:
    """A value as one would write it behind KEY=."""
    if OmegaConf.is_list(value) or isinstance(value, list):
        return f"[{','.join(in_yaml(item) for item in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
