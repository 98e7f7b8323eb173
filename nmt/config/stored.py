"""Option trees that an earlier or later nmt stored: runs, corpora, checkpoints and model directories outlive versions.

An option that a stored tree lacks did not exist when the tree was written. It then has the value that nmt used before:
the option's default or, where that differs, the value that its field declares as `before`. Both sides of a comparison
are completed in this way, so an option that is added with its default fits every older run and corpus.
"""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, TypeVar

from nmt.config.fields import MISSING, Member, build, members_of, require, shown, to_tree
from nmt.errors import NMTError

Record = TypeVar("Record")


def value_before(member: Member, tree: Mapping[str, Any]) -> Any:
    """The value of an option that `tree`, its group, lacks; MISSING if trees without the option are incomplete.

    A field's `before` is a value, or a function of the group if the value depends on other options.
    """
    before = member.metadata.get("before", member.default)
    return before(tree) if callable(before) else before


def with_defaults(cls: Any, tree: Mapping[str, Any]) -> dict[str, Any]:
    """A stored tree of the record `cls` with the options that it lacks; other keys stay as they are."""
    complete = dict(tree)
    for member in members_of(cls):
        name = member.name
        if "inline" in member.metadata:
            base = member.metadata["inline"]
            values = to_tree(base) if base else {}
            complete = with_defaults(member.type, {**values, **complete})
        elif is_dataclass(member.type):
            stored = complete.get(name, {})
            if isinstance(stored, Mapping):
                complete[name] = with_defaults(member.type, stored)
        elif name not in complete:
            value = value_before(member, tree)
            if value != MISSING:
                complete[name] = value
    return complete


def unknown_keys(cls: Any, tree: Mapping[str, Any], group: str = "") -> Iterator[str]:
    """The keys of a stored tree that this nmt and its plugins do not have."""
    rest = dict(tree)
    for member in members_of(cls):
        if "inline" in member.metadata:
            for key in {key.split(".")[0] for key in member.keys}:
                rest.pop(key, None)
            continue
        value = rest.pop(member.name, None)
        if is_dataclass(member.type) and isinstance(value, Mapping):
            yield from unknown_keys(member.type, value, f"{group}{member.name}.")
    yield from (f"{group}{key}" for key in rest)


def build_stored(cls: type[Record], tree: Any, where: str, group: str = "") -> Record:
    """Build a record from a stored tree; NMTError, prefixed with `where`, names a key of a newer nmt or a bad value."""
    require(
        isinstance(tree, Mapping),
        f"{where}: {group.rstrip('.') or 'content'}: not a mapping of names to values",
    )
    unknown = [*unknown_keys(cls, tree, group)]
    if unknown:
        raise NMTError(
            f"{where}: unknown key {shown(unknown[0])}: a newer nmt, or a plugin that is not installed, wrote it; "
            "use that version, or install the plugin"
        )
    return build(cls, with_defaults(cls, tree), where, group)
