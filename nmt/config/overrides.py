"""The syntax of one override, `KEY=VALUE`, which Hydra parses."""

import re
from functools import lru_cache
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException

from nmt.config.values import in_words


# Several checks parse the same word.
@lru_cache(maxsize=4096)
def parse(word: str) -> Override | None:
    """Parse an override with Hydra; return None if that fails."""
    try:
        # Undocumented, but the only way to read a word by the same grammar as `compose`.
        return OverridesParser.create().parse_override(word)
    except (HydraException, RecursionError, ValueError):
        # A number of thousands of digits is a ValueError.
        return None


def single_value(word: str) -> Any:
    """The value that an override sets; None if it cannot be parsed or lists alternatives."""
    override = parse(word)
    if override is None or override.is_sweep_override():
        return None
    return override.value()


def set_text(key: str, value: str | list[str]) -> str:
    """An override that sets a key to a string or list of strings, quoted if Hydra requires it."""
    if isinstance(value, list):
        return f"{key}=[{','.join(map(quoted, value))}]"
    # Hydra decides: it has too many rules for values without quotes to repeat them here.
    plain = f"{key}={value}"
    if single_value(plain) == value:
        return plain
    return f"{key}={quoted(value)}"


def set_value(key: str, value: Any) -> str:
    """An override that sets a key to a value of any type, quoted only where Hydra requires it."""
    plain = f"{key}={in_words(value)}"
    if single_value(plain) == value and not isinstance(value, dict):
        return plain
    return f"{key}={in_grammar(value)}"


def in_grammar(value: Any) -> str:
    """A value in Hydra's grammar, with quoted strings."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return f"[{','.join(map(in_grammar, value))}]"
    if isinstance(value, dict):
        items = [f"{key}:{in_grammar(item)}" for key, item in value.items()]
        return f"{{{','.join(items)}}}"
    return in_words(value)


def quoted(text: str) -> str:
    string: str = QuotedString(text, Quote.double).with_quotes()
    return string


def literal(value: Any) -> Any:
    """Escape ${} in strings, at any depth of a value, so that OmegaConf does not interpolate it."""
    if isinstance(value, dict):
        return {key: literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [literal(item) for item in value]
    if isinstance(value, str):
        # OmegaConf halves the backslashes before ${.
        return re.sub(r"(\\*)\$\{", r"\1\1\\${", value)
    return value


def is_bare(word: str) -> bool:
    """True for an argument that is neither KEY=VALUE nor ~KEY: no key precedes an =.

    Keys are in ASCII, without slashes and blanks.
    """
    key, equals, _ = word.partition("=")
    if not equals:
        return not re.fullmatch(r"~[\w.]+", word)
    # So a path such as runs/heads=4, and text with an = in it, are not taken for KEY=VALUE.
    return re.search(r"[^!-~]|/", key) is not None


def key_of(word: str) -> str:
    """The key of KEY=VALUE, without Hydra's marks for additions (+) and deletions (~)."""
    return word.partition("=")[0].lstrip("+~")
