"""The members of option records: their keys, types, defaults and help."""

import ast
import inspect
from collections.abc import Mapping
from dataclasses import MISSING as NO_DEFAULT, Field, dataclass, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, cast, get_args, get_origin

from nmt.config.fields import MISSING
from nmt.config.trees import flatten
from nmt.config.values import in_words
from nmt.errors import NMTError
from nmt.extensions import OptionsEntry
from nmt.registry import entries_of


@dataclass(frozen=True)
class Member:
    """A field of a record, or a record that a plugin adds to it."""

    record: Any
    """The dataclass that declares the field."""
    name: str
    type: Any
    default: Any
    metadata: Mapping[str, Any]
    plugin: str = ""
    """The plugin that adds the record; empty: a field of the core."""

    @property
    def choices(self) -> tuple[Any, ...]:
        if "choices" not in self.metadata:
            return ()
        # A function, because plugins are registered after the records are declared.
        return tuple(self.metadata["choices"]())

    @property
    def types(self) -> set[Any]:
        """The alternatives of the type, such as {int, NoneType}."""
        if isinstance(self.type, UnionType):
            return set(get_args(self.type))
        return {self.type}

    @property
    def is_list(self) -> bool:
        return any(get_origin(kind) is list for kind in self.types)

    @property
    def is_text(self) -> bool:
        """True if the key accepts any string or list of strings, and nothing else except null."""
        return self.types <= {str, list[str], NoneType} and not self.choices

    @property
    def is_inline(self) -> bool:
        """True if the keys of this record appear next to its owner's, without a group."""
        return "inline" in self.metadata

    @property
    def base(self) -> Any:
        """The record that gives the defaults of inline keys; None if their own record does."""
        return self.metadata.get("inline")

    @property
    def offered(self) -> tuple[str, ...]:
        """The keys or fields to which a record is limited; empty: all."""
        return tuple(self.metadata.get("offered", ()))

    @property
    def only_for(self) -> tuple[str, ...]:
        """The only commands that read the key; empty: all commands with the record."""
        return tuple(self.metadata.get("only_for", ()))

    @property
    def keys(self) -> dict[str, "Member"]:
        return keys_of(self.type, self.offered)

    @property
    def first_names(self) -> set[str]:
        """The first parts of the keys of an inline record: its keys without a group, its groups."""
        return {name.split(".")[0] for name in self.keys}

    @property
    def text(self) -> str:
        """The string literal below the field."""
        # Filled in here, so that help lists the choices that plugins add.
        choices = ", ".join(map(in_words, self.choices))
        return texts_below_fields(self.record)[self.name].replace("{choices}", choices)

    @property
    def help(self) -> str:
        """The meaning of the key, with the commands that read it unless all do."""
        if self.only_for:
            return f"{', '.join(self.only_for)}: {self.text[:1].lower()}{self.text[1:]}"
        return self.text


@cache
def members_of(cls: Any, offered: tuple[str, ...] = ()) -> tuple[Member, ...]:
    """The members of a record that users can set.

    If `offered` is given, only the keys and records that it names, and the records that contain
    such keys.
    """
    members = all_members_of(cls)
    return tuple(limited(members, offered) if offered else members)


def all_members_of(cls: Any) -> list[Member]:
    """The members of a record that users can set, in the order of its fields."""
    members: list[Member] = []
    for item in fields(cls):
        if "owner" in item.metadata:
            # The field `plugins` is not a key itself: its records are, each under its name.
            members += plugin_members(cls, item.metadata["owner"])
        # Users cannot set computed fields (without `init`) and internal fields.
        elif item.init and "internal" not in item.metadata:
            members.append(Member(cls, item.name, item.type, default_of(item), item.metadata))
    refuse_keys_of_others(members)
    return members


def refuse_keys_of_others(members: list[Member]) -> None:
    """Refuse a plugin whose keys the core or another plugin already adds to a record."""
    owners: dict[str, str] = {}
    # The core's first: its own keys are never the mistake.
    for member in sorted(members, key=lambda member: bool(member.plugin)):
        for name in sorted(member.first_names) if member.is_inline else [member.name]:
            if member.plugin and name in owners:
                raise NMTError(
                    f"plugin {member.plugin}: {owners[name]} already adds the key {name}; "
                    "fix or uninstall it"
                )
            owners[name] = member.plugin or "core"


def limited(members: list[Member], offered: tuple[str, ...]) -> list[Member]:
    """The members that `offered` names, and the inline records that contain such keys."""
    chosen: list[Member] = []
    for member in members:
        if member.name in offered:
            chosen.append(member)
        elif member.is_inline:
            # The record is not offered by its name, but some of its keys may be.
            part = tuple(member.first_names.intersection(offered))
            if part:
                # `build` passes the limit on to the record, which then refuses all other keys.
                metadata = {**member.metadata, "offered": part}
                chosen.append(replace(member, metadata=metadata))
    return chosen


def plugin_members(cls: Any, owner: str) -> list[Member]:
    """The records that plugins add to the record with `plugin_options(owner)`."""
    members = []
    for name, entry in entries_of(OptionsEntry).items():
        if name.startswith(f"{owner}."):
            members.append(plugin_member(cls, name.removeprefix(f"{owner}."), entry))
    return members


def plugin_member(cls: Any, name: str, entry: OptionsEntry) -> Member:
    metadata = {"inline": None} if entry.is_inline else {}
    return Member(cls, name, entry.load(), None, metadata, plugin=entry.plugin)


def default_of(item: Field[Any]) -> Any:
    """The default of a dataclass's field; MISSING if it has none."""
    if item.default_factory is not NO_DEFAULT:
        # A new list or record for each call, so that callers cannot change a shared one.
        return item.default_factory()
    return MISSING if item.default is NO_DEFAULT else item.default


@cache
def keys_of(cls: Any, offered: tuple[str, ...] = ()) -> dict[str, Member]:
    """Dotted key -> member, for every key of a record and its nested records."""
    keys: dict[str, Member] = {}
    for member in members_of(cls, offered):
        if member.is_inline:
            # The owner may start from other values than the record's own defaults: `nmt parse` has
            # split=never.
            defaults = flatten(to_tree(member.base)) if member.base else {}
            for name, key in member.keys.items():
                keys[name] = replace(key, default=defaults.get(name, key.default))
        elif is_dataclass(member.type):
            for name, key in member.keys.items():
                keys[f"{member.name}.{name}"] = key
        else:
            keys[member.name] = member
    return keys


def to_tree(record: Any) -> dict[str, Any]:
    """A record's keys and values as a tree that `build` accepts."""
    tree: dict[str, Any] = {}
    for member in members_of(cast(Any, type(record))):
        value = value_in(record, member)
        if is_dataclass(value) and member.is_inline:
            # As in YAML, the keys of an inline record are next to its owner's.
            tree |= to_tree(value)
        elif is_dataclass(value):
            tree[member.name] = to_tree(value)
        # A record built in Python may lack plugins' records; `with_defaults` completes its tree.
        elif not member.plugin:
            tree[member.name] = value
    return tree


def value_in(record: Any, member: Member) -> Any:
    """The value of a member; None for a plugin's record if `record` was built without it."""
    if member.plugin:
        return record.plugins.get(member.name)
    return getattr(record, member.name)


@cache
def texts_below_fields(cls: type) -> dict[str, str]:
    """Field name -> the string literal below it, for the fields of a class and its bases.

    Python does not keep these strings, so they are read from the source.
    """
    texts: dict[str, str] = {}
    # Base classes first, so that a subclass may redescribe an inherited field.
    for base in reversed(cls.__mro__):
        if not is_dataclass(base):
            continue
        definition = cast(ast.ClassDef, ast.parse(inspect.getsource(base)).body[0])
        # The string is a separate statement, right after the field.
        for node, following in pairwise(definition.body):
            if isinstance(node, ast.AnnAssign) and isinstance(following, ast.Expr):
                lines: str = ast.literal_eval(following.value)
                texts[ast.unparse(node.target)] = " ".join(lines.split())
    return texts
