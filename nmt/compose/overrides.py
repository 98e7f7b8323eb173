"""`KEY=VALUE` as typed in a shell, and as Hydra's grammar needs it."""

import re
from functools import lru_cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import OmegaConf

from nmt.compose.command import Command
from nmt.compose.words import is_bare, is_entry
from nmt.config import shown, type_of
from nmt.errors import NMTError

FILES = ("data.train", "data.valid", "data.test", "data.extra", "data.path")
"""Keys whose values are file names, or lists of them in brackets; these need no quotes either."""
KEY = re.compile(r"\$\{\.*\w+(\.\w+)*\}")
"""An interpolation that names another key."""
ENVIRONMENT = re.compile(r"\$\{oc\.env:")


@lru_cache(maxsize=4096)
def parse(text: str) -> Override | None:
    """An override parsed by Hydra; None if it cannot be."""
    try:
        return OverridesParser.create().parse_override(text)
    except (HydraException, RecursionError, ValueError):  # ValueError: a number of thousands of digits
        return None


def set_text(key: str, value: str | list[str]) -> str:
    """The override that sets a key to a text or a list of texts, quoted if Hydra would misread it."""
    if isinstance(value, list):
        return f"{key}=[{','.join(QuotedString(item, Quote.double).with_quotes() for item in value)}]"
    plain = parse(f"{key}={value}")
    if plain and not plain.is_sweep_override() and plain.value() == value:
        return f"{key}={value}"
    return f"{key}={QuotedString(value, Quote.double).with_quotes()}"


def in_yaml(value: Any) -> str:
    """A value as it is written after KEY=."""
    if OmegaConf.is_list(value) or isinstance(value, list):
        return f"[{','.join(in_yaml(item) for item in value)}]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)


def literal(value: Any) -> Any:
    """Escape ${} in the texts of a value, at any depth, so that OmegaConf does not interpolate it."""
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [literal(item) for item in value]
    return re.sub(r"(\\*)\$\{", r"\1\1\\${", value) if isinstance(value, str) else value


def check_interpolations(where: str, value: Any, *allowed: re.Pattern[str]) -> None:
    """NMTError if a value, or anything in it, has a ${} that matches none of the allowed patterns."""
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


def name_words(command: Command, words: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The overrides that words stand for, and the groups that words without = set as a whole."""
    for word in words:
        if word == "=" or re.fullmatch(r"[\w.]+=\[[^\]]*,", word):
            raise NMTError(f"{word}: write KEY=VALUE, or KEY=[A,B], without blanks")
    bare = [word for word in words if is_bare(word) or is_entry(command, word)]
    named = [quote(command, word) for word in words if word not in bare]
    if not bare:
        return named, {}
    values = command.words(bare)
    given = {word.partition("=")[0].lstrip("+") for word in named}
    for key in given & values.keys():
        if values[key] in (*bare, bare):
            raise NMTError(f"{bare[-1]}: `nmt {command.name}` takes one {key}, and {key}= is given too")
    settled = {key: value for key, value in values.items() if isinstance(value, dict)}
    short = [set_text(key, literal(value)) for key, value in values.items() if key not in {*settled, *given}]
    return [*short, *named], settled


def quote(command: Command, word: str) -> str:
    """Quote the value of an override where Hydra or OmegaConf would misread a text.

    Running text and file names need no quotes, and a name that looks like a number stays as written: 1.10 is not 1.1.
    null, and what is quoted for Hydra already, stays as it is.
    """
    key, _, value = word.partition("=")
    parsed = parse(word)
    found = parsed.value() if parsed and not parsed.is_sweep_override() and not parsed.is_delete() else None
    if value == "null":
        return word
    if key in FILES and value.startswith("["):
        texts = isinstance(found, list) and all(isinstance(item, str) for item in found)
        names = [item.strip() for item in value[1:-1].split(",")]
        return set_text(key, names) if value.endswith("]") and not texts else word
    if key and key in (*command.texts, *FILES):
        text = str(found) if found is not None and value.startswith(("'", '"')) else value
        return set_text(key, text if key in FILES else literal(text))
    number = isinstance(found, int | float | bool)
    return set_text(key, value) if number and str in type_of(command.config, key)[0] else word
