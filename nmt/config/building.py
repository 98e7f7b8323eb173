"""Build option records from trees of keys, and check each value."""

from dataclasses import dataclass, field, is_dataclass, replace
from types import NoneType
from typing import Any, TypeVar, cast, get_origin

from nmt.config.fields import MISSING
from nmt.config.members import Member, keys_of, members_of
from nmt.config.suggestions import nearest_key
from nmt.config.values import as_list, in_words, is_number, matches, shown
from nmt.errors import NMTError, SettingError

Record = TypeVar("Record")


def build(
    cls: type[Record],
    tree: Any,
    where: str = "",
    group: str = "",
    base: Any = None,
    offered: tuple[str, ...] = (),
) -> Record:
    """Build a record from a tree of keys.

    Keys that the tree omits get their values from `base`; None: the record's defaults. If `offered`
    is given, only its keys are accepted.

    Raises NMTError if a key is unknown, missing or invalid. Its message begins with `where`, such
    as the name of a file, and writes keys with `group`, such as "model.", before them.
    """
    # Records inside this one are built without `where`, so that an error gets it only once.
    if where:
        try:
            return build(cls, tree, "", group, base, offered)
        except NMTError as error:
            raise error.within(where) from error
    if not isinstance(tree, dict):
        name = group.rstrip(".") or "content"
        raise NMTError(f"{name}: not a mapping of names to values")
    # A copy, because members take their keys out of it: what remains is unknown.
    parts = Parts(dict(tree), group, base)
    for member in members_of(cast(Any, cls), offered):
        parts.add(member)
    for name in parts.rest:
        known = [f"{group}{key}" for key in keys_of(cast(Any, cls), offered)]
        raise unknown_key(f"{group}{name}", known)
    values = parts.values
    if parts.of_plugins:
        values["plugins"] = parts.of_plugins
    # Either way, `__post_init__` checks the rules between keys. `replace` keeps `base` unchanged.
    record = replace(base, **values) if base is not None else cls(**values)
    # A plugin's rule may need the owner's keys, so the owner is built first.
    for options in parts.of_plugins.values():
        check = getattr(options, "check", None)
        if check:
            check(record)
    return record


def unknown_key(key: str, known: list[str]) -> SettingError:
    return SettingError(f"unknown key {shown(key)}; {nearest_key(key, known)}", key=key)


@dataclass
class Parts:
    """The values of a record that is being built."""

    rest: dict[str, Any]
    """The keys of the tree that no member has taken."""
    group: str
    base: Any
    values: dict[str, Any] = field(default_factory=dict)
    of_plugins: dict[str, Any] = field(default_factory=dict)

    def add(self, member: Member) -> None:
        """Build the value of a member and take its keys, unless its default applies."""
        if member.is_inline:
            value = self.inline_record(member)
        elif self.is_needed(member):
            value = self.value_of(member)
        else:
            return
        values = self.of_plugins if member.plugin else self.values
        values[member.name] = value

    def is_needed(self, member: Member) -> bool:
        """Whether to build a value even if the tree lacks it, because no default applies."""
        # A plugin's record is always built, so that `plugins[NAME]` exists at run time. A required
        # key is built to raise the error that names it.
        is_missing = self.base is None and member.default == MISSING
        return member.name in self.rest or bool(member.plugin) or is_missing

    def inline_record(self, member: Member) -> Any:
        """Build a record whose keys stand next to its owner's."""
        if self.base is None or member.plugin:
            before = member.base
        else:
            before = getattr(self.base, member.name)
        # The tree has the keys of this record next to its owner's, so pick them out.
        tree = {}
        for name in member.first_names & self.rest.keys():
            tree[name] = self.rest.pop(name)
        return build(member.type, tree, "", self.group, before, member.offered)

    def value_of(self, member: Member) -> Any:
        key = f"{self.group}{member.name}"
        raw = self.rest.pop(member.name, {} if member.plugin else MISSING)
        is_given = raw != MISSING
        is_built = is_dataclass(raw)
        # A nested record is a tree if it comes from YAML. In Python, it may be a record already.
        if is_dataclass(member.type) and is_given and not is_built:
            return build(cast(Any, member.type), raw, "", f"{key}.")
        if not is_given:
            # Together with later ones, such as the languages of both sides.
            later = [f"{self.group}{name}" for name, value in self.rest.items() if value == MISSING]
            raise missing_values([key, *later])
        return checked(key, raw, member)


def missing_values(keys: list[str]) -> SettingError:
    """The error for keys that need values."""
    needed = "a value is needed" if len(keys) == 1 else "values are needed"
    words = " ".join(f"{key}=VALUE" for key in keys)
    return SettingError(f"{' and '.join(keys)}: {needed}; pass {words}", key=keys[0])


def checked(key: str, value: Any, member: Member) -> Any:
    """Convert a value to its key's type; NMTError if the key does not accept it."""
    if value == MISSING:
        raise missing_values([key])
    value = converted(value, member)
    # Ranges and choices of a list hold for each of its items.
    items = value if isinstance(value, list) else [value]
    are_accepted = all(is_accepted(item, member) for item in items)
    if not are_accepted or not matches(value, member.type):
        raise SettingError(
            f"must be {accepted_values(member)}",
            key=key,
            value=shown(in_words(value)),
            advice=member.metadata.get("advice", ""),
        )
    return value


def converted(value: Any, member: Member) -> Any:
    """Convert YAML's types to the key's: a single string to a list, 1.10 to a string, 1 to 1.0."""
    # Not a truth value: YAML reads words such as `no` and `on` as one, so the word that was meant
    # is unknown.
    is_item = not matches(value, member.type) and not isinstance(value, bool | dict)
    if member.is_list and is_item:
        items = value if isinstance(value, list | tuple) else as_list(value)
        return [str(item) if is_number(item) else item for item in items]
    if is_number(value):
        # A name such as 2024, which YAML reads as a number.
        if str in member.types and not {int, float} & member.types:
            return str(value)
        # So that 1 and 1.0 are the same value when the configurations of runs are compared.
        if float in member.types and int not in member.types:
            return float(value)
    return value


def is_accepted(item: Any, member: Member) -> bool:
    """Whether a value, or an item of a list, is in the key's range and one of its choices."""
    limits = member.metadata.get("range")
    if limits and is_number(item):
        least, most = limits
        return bool(least <= item <= most)
    choices = member.choices
    # A key may have choices besides numbers or truth values; their type is checked elsewhere.
    return not choices or not isinstance(item, str) or item in choices


def accepted_values(member: Member) -> str:
    """The values that a key accepts, such as "a whole number between 1 and 8, or null"."""
    kinds = member.types
    alternatives = []
    if "range" in member.metadata or {int, float} & kinds:
        alternatives.append(accepted_numbers(member))
    if member.choices:
        alternatives.append(accepted_choices(member))
    elif list[int] in kinds:
        alternatives.append("a list of whole numbers")
    elif list[float] in kinds:
        alternatives.append("a list of numbers")
    elif member.is_list:
        alternatives.append("a string, or a list of strings")
    elif str in kinds:
        alternatives.append("a string")
    if bool in kinds:
        alternatives.append("true or false")
    if any(get_origin(kind) is dict for kind in kinds):
        alternatives.append("a mapping")
    if NoneType in kinds:
        alternatives.append("null")
    return ", or ".join(alternatives)


def accepted_numbers(member: Member) -> str:
    is_whole = int in member.types
    kind = "a whole number" if is_whole else "a number"
    if "range" not in member.metadata:
        return kind
    least, most = member.metadata["range"]
    if is_whole:
        return f"{kind} between {least:,} and {most:,}"
    return f"{kind} between {least:,.10g} and {most:,.10g}"


def accepted_choices(member: Member) -> str:
    names = ", ".join(map(in_words, member.choices))
    if member.is_list:
        return f"a list of {names}"
    if len(member.choices) == 1:
        return names
    return f"one of {names}"
