"""Tables of the options that another program, such as an engine, can reproduce.

A table maps keys, such as `model.norm`, to rules. It names what the program can do. A key that is
missing from the table is refused with any value, because nobody has checked yet how the program
treats it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from nmt.config.values import in_words
from nmt.errors import SettingError

Settings = Mapping[str, Any]
"""The values of all keys, such as {"model.norm": "post"}."""


@dataclass(frozen=True)
class Rule:
    """The values of a key that a program supports, given the values of the other keys."""

    # With the other keys, because some values depend on them: d_k must be d_model / heads, for
    # example.
    fits: Callable[[Any, Settings], bool]
    needs: Callable[[str, Settings], str]
    """Describes, for a key, the value that the program needs."""


ANY = Rule(lambda value, settings: True, lambda key, settings: key)


def only(*values: Any) -> Rule:
    """A rule that allows only these values, the most common one first."""
    return only_by(lambda settings: values)


def only_by(values_of: Callable[[Settings], tuple[Any, ...]]) -> Rule:
    """A rule that allows only the values that a function of the other keys returns.

    The most common value comes first.
    """

    def needs(key: str, settings: Settings) -> str:
        return f"{key}={' or '.join(map(in_words, values_of(settings)))}"

    return Rule(lambda value, settings: value in values_of(settings), needs)


FLAG = only(False, True)


@dataclass(frozen=True)
class Problem:
    """A key whose value a program does not support."""

    key: str
    value: Any
    needs: str
    """The required value, such as "model.norm=post"; empty if no value is known to work."""


@dataclass(frozen=True)
class Program:
    """A program that runs nmt's models."""

    name: str
    table: Mapping[str, Rule]
    advice: str

    def problems(self, settings: Settings) -> Iterator[Problem]:
        """The keys that the program cannot reproduce."""
        for key, value in settings.items():
            rule = self.table.get(key)
            # Nobody has checked what the program makes of this key. It might ignore it silently.
            if rule is None:
                yield Problem(key, value, "")
            elif not rule.fits(value, settings):
                yield Problem(key, value, rule.needs(key, settings))

    def check(self, settings: Settings) -> None:
        """Raise NMTError for the first key that the program cannot reproduce."""
        # The first one is enough for a message; lists of all problems come from `problems`.
        for problem in self.problems(settings):
            needs = f"needs {problem.needs}" if problem.needs else "lacks this key"
            raise SettingError(
                f"{self.name} {needs}",
                key=problem.key,
                value=in_words(problem.value),
                advice=self.advice,
            )


def settings_of(group: str, record: Any) -> dict[str, Any]:
    """The values of a record of options, keyed by full names such as `model.norm`."""
    return {f"{group}.{field.name}": getattr(record, field.name) for field in fields(record)}


def exported_settings(
    model: Any, tokenizer: Mapping[str, Any], kind: str | None, tags: Sequence[str]
) -> dict[str, Any]:
    """The values of all keys that an export must reproduce.

    `model` is a ModelConfig, `tokenizer` maps the keys of a TokenizerConfig to their values, `kind`
    is the kind of the training corpus (None: unknown), and `tags` are the symbols with which
    sources may begin.
    """
    settings = settings_of("model", model)
    settings |= {f"tokenizer.{key}": value for key, value in tokenizer.items()}
    settings["data.kind"] = kind
    settings["data.tag"] = list(tags) or None
    return settings
