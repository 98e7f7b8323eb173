"""Option trees that an earlier or later nmt stored.

Runs, corpora, checkpoints and model directories outlive versions. An option that a stored tree
lacks did not exist when the tree was written. It then has the value that nmt used before: the
option's default or, where that differs, the value that its field declares as `before`. Both sides
of a comparison are completed in this way, so an option that is added with its default fits every
older run and corpus.
"""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar

from nmt.config.building import build
from nmt.config.fields import MISSING
from nmt.config.members import Member, members_of, to_tree
from nmt.config.values import shown
from nmt.errors import NMTError, SettingError

Record = TypeVar("Record")


def value_before(member: Member, tree: Mapping[str, Any]) -> Any:
    """The value of an option that `tree`, its group, lacks.

    MISSING if trees without the option are incomplete. A field's `before` is a value, or a function
    of the group if the value depends on other options.
    """
    before = member.metadata.get("before", member.default)
    return before(tree) if callable(before) else before


def with_defaults(
    cls: Any, tree: Mapping[str, Any], offered: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A stored tree of the record `cls` with the options that it lacks.

    Other keys stay as they are. If `offered` is given, only its keys are added.
    """
    complete = dict(tree)
    for member in members_of(cls, offered):
        name = member.name
        if member.is_inline:
            # In stored trees, as in YAML, the keys of an inline record stand next to its owner's.
            values = to_tree(member.base) if member.base else {}
            complete = with_defaults(member.type, {**values, **complete}, member.offered)
        elif is_dataclass(member.type):
            # A missing group is completed like a missing key, for example the options of a later
            # plugin.
            stored = complete.get(name, {})
            # Anything else is a damaged file, which `build` refuses with the name of the key.
            if isinstance(stored, Mapping):
                complete[name] = with_defaults(member.type, stored)
        elif name not in complete:
            # From the stored tree, because `before` must not see values that were just filled in.
            value = value_before(member, tree)
            if value != MISSING:
                complete[name] = value
    return complete


def unknown_keys(cls: Any, tree: Mapping[str, Any], group: str = "") -> Iterator[str]:
    """The keys of a stored tree that this nmt and its plugins do not have."""
    rest = dict(tree)
    for member in members_of(cls):
        if member.is_inline:
            for key in member.first_names:
                rest.pop(key, None)
            continue
        value = rest.pop(member.name, None)
        if is_dataclass(member.type) and isinstance(value, Mapping):
            yield from unknown_keys(member.type, value, f"{group}{member.name}.")
    for key in rest:
        yield f"{group}{key}"


def build_stored(cls: type[Record], tree: Any, where: str, group: str = "") -> Record:
    """Build a record from a stored tree.

    NMTError, prefixed with `where`, names a key of a newer nmt or a bad value.
    """
    if not isinstance(tree, Mapping):
        name = group.rstrip(".") or "content"
        raise NMTError(f"{where}: {name}: not a mapping of names to values")
    # Before `build`, which would suggest the nearest key, as if the user had mistyped it.
    for key in unknown_keys(cls, tree, group):
        raise SettingError(
            f"unknown key {shown(key)}: a newer nmt, or a plugin that is not installed, wrote it",
            where=where,
            key=key,
            advice="use that version, or install the plugin",
        )
    return build(cls, with_defaults(cls, tree), where, group)
