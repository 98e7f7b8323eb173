"""Convert the arguments of a command to overrides, and check them before anything is loaded."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt.config.command import Command, Values, groups
from nmt.config.members import keys_of
from nmt.config.overrides import (
    is_bare,
    key_of,
    literal,
    parse,
    set_text,
    single_value,
)
from nmt.config.suggestions import DID_YOU_MEAN, answer, explain, nearest, nearest_key
from nmt.config.trees import is_inside
from nmt.config.values import exists
from nmt.errors import NMTError, SettingError

TEXT_OR_INPUT = re.compile(r"\s|^-$")
"""Text to translate may begin with a dash, and a lone dash means standard input."""
CUT_LIST = re.compile(r"[\w.]+=\[[^\]]*,")
"""KEY=[A, from KEY=[A, B], which the shell splits at the space."""
ENTRY_NAME = re.compile(r"[\w.+-]+")
"""A name that a user may give a system, such as tuned-2."""


@dataclass(frozen=True)
class Arguments:
    """The arguments of a command, as Hydra needs them."""

    overrides: list[str]
    whole_groups: Values = field(default_factory=dict)
    """The groups that arguments without = set as a whole."""

    @property
    def keys(self) -> list[str]:
        """The keys and groups that the overrides set."""
        return [key_of(override) for override in self.overrides]


def read_words(command: Command, words: list[str], config_dir: Path | None) -> Arguments:
    """Convert arguments to overrides; NMTError at the first mistake."""
    words = without_aliases(command, words)
    # Mistakes that Hydra would report in terms of its grammar, or as an unknown key.
    check_words(command, words)
    bare = [word for word in words if is_bare(word) or is_named_system(command, word)]
    named = [as_written(command, word) for word in words if word not in bare]
    # Before `command.words`, which may read large files and load libraries.
    check_overrides(command, named, config_dir, words)
    if not bare:
        return Arguments(named)
    # ~KEY removes a key, so it gives no value that could contradict one of the words.
    given = {key_of(word) for word in named if not word.startswith("~")}
    values = values_of(command, bare, given)
    check_conflicts(command, values, given, bare)
    short: list[str] = []
    whole_groups: Values = {}
    for key, value in values.items():
        # A group is set after Hydra has composed the rest, and key by key, so that the user's own
        # keys stay.
        if isinstance(value, dict):
            whole_groups[key] = value
        elif key not in given:
            short.append(set_text(key, literal(value)))
    return Arguments([*short, *named], whole_groups)


def without_aliases(command: Command, words: list[str]) -> list[str]:
    """Arguments with nmt's own names of keys."""
    renamed = []
    for word in words:
        key, equals, value = word.partition("=")
        if equals and key in command.aliases:
            word = f"{command.aliases[key]}={value}"
        renamed.append(word)
    return renamed


def values_of(command: Command, bare: list[str], given: set[str]) -> Values:
    """The keys and values that arguments without = stand for.

    `given` are the keys that are given as KEY=VALUE.
    """
    if command.words is None:
        raise NMTError(f"{bare[0]}: this command takes only KEY=VALUE arguments")
    try:
        return command.words(bare)
    except SettingError as error:
        if error.key not in given:
            raise
        # Its advice is to pass this key.
        advice = f"`nmt {command.name} {command.usage}`"
        raise NMTError(f"{error.problem}; {advice}") from error


def check_conflicts(command: Command, values: Values, given: set[str], bare: list[str]) -> None:
    """Raise NMTError if a key that is given as KEY=VALUE is also given without =.

    A value that is none of the words, such as a language in a file name, is only a default.
    """
    for key in given & values.keys():
        # The value is one of the words, or the list of all words, such as several runs.
        if values[key] in bare or values[key] == bare:
            raise NMTError(
                f"{bare[-1]}: `nmt {command.name}` takes one {key}, but {key}= is also given"
            )


def check_words(command: Command, words: list[str]) -> None:
    """Raise NMTError for an unknown option, and for KEY=VALUE with blanks."""
    for word in words:
        # Typer passes unknown options on, so that they are answered here like unknown keys.
        if word.startswith("-") and not TEXT_OR_INPUT.search(word):
            keys = [*keys_of(command.config), *groups(command)]
            raise NMTError(explain(command.name, words, word, keys))
        if word == "=" or CUT_LIST.fullmatch(word):
            raise NMTError(f"{word}: write KEY=VALUE or KEY=[A,B] without spaces")


def is_named_system(command: Command, word: str) -> bool:
    """Whether an argument of `nmt compare` names a system, such as tuned=runs/new or new=[a,b].

    False for KEY=VALUE and for what is probably a mistyped key, such as refrence=ref.de, which must
    not silently become a system. A command without `entries` has no systems.
    """
    name, _, value = word.partition("=")
    if not command.entries or not value or not ENTRY_NAME.fullmatch(name):
        return False
    keys = [*keys_of(command.config), *groups(command)]
    if name in keys:
        return False
    # A list of runs or a model's folder can only be a system, even if its name resembles a key.
    if value.startswith("[") and value.endswith("]"):
        return True
    if exists(value) and Path(value).is_dir():
        # The folder of a corpus, such as prepard=prepared/toy, holds no translations.
        is_corpus = (Path(value) / "manifest.json").exists()
        return not is_corpus
    is_path = exists(value) or "/" in value
    if not is_path:
        return False
    return not is_mistyped_key(command, word)


def is_mistyped_key(command: Command, word: str) -> bool:
    """Whether the name in NAME=PATH is more likely a key, such as in refrence=ref.de."""
    name, _, _ = word.partition("=")
    # Only keys for texts may have a path as their value.
    keys = [key for key, member in keys_of(command.config).items() if member.is_text]
    if nearest_key(name, keys).startswith(DID_YOU_MEAN):
        return True
    # A plugin's answer repeats the value if the key of ours that is meant accepts it.
    return answer(command.name, [word]).startswith(f"{word}: ")


def as_written(command: Command, word: str) -> str:
    """Quote a string that Hydra would read as a list or number.

    null and quoted strings keep their meaning.
    """
    key, _, value = word.partition("=")
    member = keys_of(command.config).get(key)
    # Other types keep Hydra's grammar, in which 1e3 is a number and true a truth value.
    if member is None or not member.is_text or value == "null":
        return word
    meaning = single_value(word)
    if value.startswith("["):
        if not value.endswith("]"):
            return word  # refused later
        if member.is_list:
            return list_as_written(key, value, meaning)
    # Quotes that Hydra would remove are removed here, before the text is quoted again.
    is_quoted = isinstance(meaning, str) and value.startswith(("'", '"'))
    text = meaning if is_quoted else value
    return set_text(key, literal(text) if "literal" in member.metadata else text)


def list_as_written(key: str, value: str, meaning: Any) -> str:
    """An override with a list of strings; `meaning` is the value as Hydra reads it."""
    if is_list_of_texts(meaning):
        return f"{key}={value}"
    # Hydra cannot parse such items, for example letters beyond ASCII, or reads them as numbers.
    items = value[1:-1].split(",")
    return set_text(key, [item.strip() for item in items])


def is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def check_overrides(
    command: Command,
    overrides: list[str],
    config_dir: Path | None,
    words: list[str],
) -> None:
    """Raise NMTError for the first override that is no KEY=VALUE of this command.

    `words` are all arguments of the command, for answers that depend on them.
    """
    options = groups(command, config_dir)
    keys = [*keys_of(command.config)]
    for text in overrides:
        override = parse(text)
        if override is None:
            raise NMTError(
                f"{text!r:.62} cannot be parsed; quote special characters: 'KEY=\"VALUE\"'"
            )
        key = override.key_or_group
        # Hydra accepts =VALUE.
        if not key:
            raise NMTError(f"{text!r} is not KEY=VALUE; `nmt {command.name} --help` lists the keys")
        # A key, or a group such as data.filters={min_words: 2}. Hydra would not refuse `hydra.*`,
        # with which an argument could change where it looks for files.
        if key not in options and not any(is_inside(name, key) for name in keys):
            raise NMTError(explain(command.name, words, text, [*keys, *options]))
        # A sweep needs `hydra.main`; `compose` would fail with a message about it.
        if override.is_sweep_override():
            loop = "for several runs, use a shell loop, as in docs/guides/tune.md"
            raise NMTError(f"{text}: give one value; write a list as [a,b]; {loop}")
        if key in options:
            value = None if override.is_delete() else override.value()
            check_option(text, key, value, options[key].options)


def check_option(text: str, group: str, option: Any, options: list[str]) -> None:
    """Raise NMTError unless a group has the option that an override chooses."""
    is_no_experiment = group == "experiment" and option is None
    if option in options or is_no_experiment:
        return
    near = nearest(str(option), options)
    raise NMTError(f"{text}: no such option; {near} (or write ./conf/{group}/{option}.yaml)")


def check_hidden_keys(command: Command, words: list[str]) -> None:
    """Raise NMTError for a key that the command does not read, if users mistake it for another."""
    given = dict(word.split("=", 1) for word in words if "=" in word)
    for hidden, key in command.instead.items():
        if hidden in given and key not in given:
            raise SettingError(
                f"`nmt {command.name}` does not read this key; pass {key}={given[hidden]}",
                key=hidden,
                value=given[hidden],
            )
