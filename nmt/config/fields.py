"""Declare the options of a record: each field's default, range, choices and other facts.

An option record is a dataclass. A field's type and metadata define which values its key accepts.
The string literal below the field is the key's help, and `{choices}` in it stands for the key's
choices. `build` checks every value; `__post_init__` checks only rules across several keys.

Plugins can add keys to a record that has a field `plugin_options("OWNER")`: an `OptionsEntry` named
"OWNER.NAME" adds the group NAME or, with `is_inline=True`, keys next to the owner's. At run
time, the plugin's record is `owner.plugins["NAME"]`. Its optional method `check(owner)` raises
NMTError if keys are mutually exclusive.
"""

from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any

MISSING: Any = "???"  # OmegaConf's marker for a required value


def setting(default: Any, **metadata: Any) -> Any:
    """A field with facts about its key.

    - `affects_output=False`: the value may change when a job resumes.
    - `decides=False`: the value may change when a run resumes.
    - `only_for=("train",)`: of the commands that share the record, only these read the key.
    - `is_file=True`: the value names a file whose content counts.
    - `files="module:function"`: the content of several files counts; the function takes the value
      and the TranslatorOptions, and returns the paths.
    - `literal=True`: the value is text in which ${} is not an interpolation.
    - `internal=True`: the program sets the value, and users cannot.
    - `advice="..."`: what to do about a value that is refused.
    - `before`: the value of older runs, see `nmt.config.stored`.
    """
    # Dataclasses refuse a list as a default, because all records would share it.
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def number(default: Any, least: float, most: float, *names: str, **metadata: Any) -> Any:
    """A field that accepts a number from `least` to `most`, or one of `names`."""
    return setting(default, range=(least, most), choices=lambda: names, **metadata)


def choice(
    default: Any,
    *names: Any,
    names_of: Callable[[], Iterable[str]] = tuple,
    **metadata: Any,
) -> Any:
    """A field for one of `names`, or a list of them if `default` is a list.

    `names_of` returns further names. It is called when they are needed, because plugins are
    registered after the records.
    """

    def choices() -> tuple[Any, ...]:
        return (*names, *names_of())

    return setting(default, choices=choices, **metadata)


def running_text(default: Any, **metadata: Any) -> Any:
    """A field for text in which ${} is literal, not an interpolation."""
    return setting(default, literal=True, **metadata)


def inline(default: Any, *offered: str) -> Any:
    """A field for a record whose keys appear next to its owner's.

    `offered` limits them to certain keys or fields.
    """
    # The default is also in the metadata, where `Member.base` finds it without a record.
    metadata = {"inline": default, "offered": offered}
    return field(default_factory=lambda: default, metadata=metadata)


def plugin_options(owner: str) -> Any:
    """A field for the records that plugins add to this one."""
    # Only by keyword, so that it has no place among the arguments given by position.
    return field(default_factory=dict, kw_only=True, metadata={"owner": owner})
