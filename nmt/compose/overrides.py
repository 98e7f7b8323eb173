"""`KEY=VALUE` as one writes it in a shell, and as Hydra's grammar wants it."""

import re
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, Quote, QuotedString
from hydra.errors import HydraException
from omegaconf import OmegaConf

from nmt.errors import NMTError

BARE_WORDS = {"report": "run", "export": "checkpoint", "attention": "sentence", "reproduce": "table"}
"""The key that a word without = is the value of."""
TEXTS = {"attention": ("target",), "translate": ("source_prefix", "target_prefix")}
"""Keys whose values are running text, with commas, brackets and blanks at the end that need no quotes."""
NAMES = ("data.train", "data.valid", "data.test", "data.extra", "data.path")
"""Keys whose values are names of files, which need no quotes either, or lists of these in brackets."""


def name_bare_word(command: str, overrides: list[str]) -> list[str]:
    """`runs/x` -> `run='runs/x'`, where the command takes a word without =; NMTError for a second one."""
    key = BARE_WORDS.get(command)
    # A path may hold a =, as runs/heads=4, and so may a sentence; a key holds neither slash nor blank.
    bare = [word for word in overrides if key and ("=" not in word or re.search(r"[/\s]", word.partition("=")[0]))]
    if not bare:
        return overrides
    if len(bare) > 1 or any(word.startswith(f"{key}=") for word in overrides):
        raise NMTError(f"{bare[-1]}: `nmt {command}` takes one {key}; {overrides[0]} is given too")
    # In Hydra's quotes a quote is escaped by a backslash, and so are the backslashes before one.
    quoted = re.sub(r"(\\*)('|$)", lambda found: 2 * found[1] + found[2].replace("'", "\\'"), bare[0])
    return [f"{key}='{quoted}'" if word == bare[0] else word for word in overrides]


def quote_text(command: str, word: str) -> str:
    """The override of a key for running text, quoted where Hydra would take that for something else.

    What is null, or quoted in Hydra's way, stays so.
    """
    key, _, value = word.partition("=")
    if key not in (*TEXTS.get(command, ()), *NAMES):
        return word
    parsed = parse(word)
    if key in NAMES and value.startswith("["):
        listed = parsed.value() if parsed and not parsed.is_sweep_override() else None
        texts = isinstance(listed, list) and all(isinstance(item, str) for item in listed)
        return (
            word
            if texts or not value.endswith("]")
            else set_texts(key, [item.strip() for item in value[1:-1].split(",")])
        )
    understood = parsed is not None and not parsed.is_sweep_override() and isinstance(parsed.value(), str | None)
    return word if understood and (value == "null" or value.startswith(("'", '"'))) else set_text(key, value)


def parse(text: str) -> Override | None:
    """An override as Hydra understands it; None where it does not."""
    try:
        return OverridesParser.create().parse_override(text)
    except HydraException:
        return None


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
