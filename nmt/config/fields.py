"""Fields of option records (ranges, choices and help), conversion to and from trees of keys, answers to mistakes.

An option record is a dataclass. A field's type and metadata define which values its key accepts; the string literal
below the field is the key's help, and `{choices}` in it stands for the key's choices. `build` checks every value;
`__post_init__` checks only rules across several keys.

Plugins can add keys to a record that has a field `plugin_options("OWNER")`: a registry entry of kind "options" named
"OWNER.NAME" adds the group NAME or, with `inline=True`, keys next to the owner's. At run time, the plugin's record
is `owner.plugins["NAME"]`; its optional method `check(owner)` raises NMTError if keys are mutually exclusive.
"""

import ast
import difflib
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING as NO_DEFAULT, dataclass, field, fields, is_dataclass, replace
from functools import cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin

from nmt.errors import (
    IF_LATIN_1,
    NMTError,
    SameForAll,
    enough_memory_or,
    how_to_install,
    is_out_of_memory,
    one_line,
)
from nmt.registry import entries_of

MISSING: Any = "???"  # OmegaConf's marker for a required value
Record = TypeVar("Record")


def number(default: Any, least: float, most: float, *names: str, **metadata: Any) -> Any:
    """A field that accepts a number from `least` to `most`, or one of `names`."""
    return field(
        default=default, metadata={"range": (least, most), "choices": lambda: names, **metadata}
    )


def choice(
    default: Any, *names: Any, names_of: Callable[[], Iterable[str]] = tuple, **metadata: Any
) -> Any:
    """A field for one of `names`, or a list of them if `default` is a list; `names_of` returns further names."""
    metadata = {"choices": lambda: (*names, *names_of()), **metadata}
    if isinstance(default, list):
        return field(default_factory=lambda: [*default], metadata=metadata)
    return field(default=default, metadata=metadata)


def running_text(default: Any, **metadata: Any) -> Any:
    """A field for text in which ${} is literal, not an interpolation."""
    return field(default=default, metadata={"literal": True, **metadata})


def inline(default: Any, *offered: str) -> Any:
    """A field for a record whose keys appear next to its owner's; `offered` limits them to certain keys or fields."""
    return field(default_factory=lambda: default, metadata={"inline": default, "offered": offered})


def setting(default: Any, **metadata: Any) -> Any:
    """A field with metadata.

    `affects_output=False`: the value may change when a job resumes. `decides=False`: the value may change when a run
    resumes. `is_file=True`: the value names a file whose content counts. `before`: see `nmt.config.stored`.
    """
    return field(default=default, metadata=metadata)


def plugin_options(owner: str) -> Any:
    return field(default_factory=dict, kw_only=True, metadata={"owner": owner})


@dataclass(frozen=True)
class Member:
    """A field of a record, or a record that a plugin adds to it."""

    record: Any
    name: str
    type: Any
    default: Any
    metadata: Mapping[str, Any]
    plugin: bool = False

    @property
    def choices(self) -> tuple[Any, ...]:
        return tuple(self.metadata.get("choices", tuple)())

    @property
    def types(self) -> set[Any]:
        return {*get_args(self.type)} if isinstance(self.type, UnionType) else {self.type}

    @property
    def is_list(self) -> bool:
        return any(get_origin(kind) is list for kind in self.types)

    @property
    def is_text(self) -> bool:
        """True if the key accepts any string or list of strings, and nothing else except null."""
        return self.types <= {str, list[str], NoneType} and not self.choices

    @property
    def keys(self) -> dict[str, "Member"]:
        return keys_of(self.type, tuple(self.metadata.get("offered", ())))

    @property
    def help(self) -> str:
        return texts_below_fields(self.record)[self.name].replace(
            "{choices}", ", ".join(map(in_words, self.choices))
        )


@cache
def members_of(cls: Any, offered: tuple[str, ...] = ()) -> tuple[Member, ...]:
    """The members of a record that users can set; `offered` keeps only its keys and the records that contain them."""
    members: list[Member] = []
    for item in fields(cls):
        if owner := item.metadata.get("owner"):
            for name, entry in entries_of("options").items():
                if name.startswith(f"{owner}."):
                    metadata = {"inline": None} if entry.facts.get("inline") else {}
                    members.append(
                        Member(
                            cls, name.removeprefix(f"{owner}."), entry.load(), None, metadata, True
                        )
                    )
        elif item.init and "internal" not in item.metadata:
            default = item.default if item.default_factory is NO_DEFAULT else item.default_factory()
            default = MISSING if default is NO_DEFAULT else default
            members.append(Member(cls, item.name, item.type, default, item.metadata))
    if not offered:
        return tuple(members)
    for index, member in enumerate(members):
        if "inline" in member.metadata and member.name not in offered:
            part = tuple({name.split(".")[0] for name in member.keys} & {*offered})
            members[index] = replace(member, metadata={**member.metadata, "offered": part})
    return tuple(
        member for member in members if member.name in offered or member.metadata.get("offered")
    )


@cache
def keys_of(cls: Any, offered: tuple[str, ...] = ()) -> dict[str, Member]:
    """Dotted key -> member, for every key of a record and its nested records."""
    keys: dict[str, Member] = {}
    for member in members_of(cls, offered):
        if "inline" in member.metadata:
            values = flatten(to_tree(base)) if (base := member.metadata["inline"]) else {}
            keys |= {
                name: replace(key, default=values.get(name, key.default))
                for name, key in member.keys.items()
            }
        elif is_dataclass(member.type):
            keys |= {f"{member.name}.{name}": key for name, key in member.keys.items()}
        else:
            keys[member.name] = member
    return keys


def build(
    cls: type[Record],
    tree: Any,
    where: str = "",
    group: str = "",
    base: Any = None,
    offered: tuple[str, ...] = (),
) -> Record:
    """Build a record from a tree of keys; NMTError, prefixed with `where`, if a key is unknown, missing or invalid.

    Error messages prefix keys with `group`, which ends in a dot. Keys that the tree omits get their values
    from `base`; if `offered` is given, only its keys are accepted.
    """
    if where:
        try:
            return build(cls, tree, "", group, base, offered)
        except NMTError as error:
            raise NMTError(f"{where}: {error}") from error
    require(
        isinstance(tree, dict),
        f"{group.rstrip('.') or 'content'}: not a mapping of names to values",
    )
    rest, values, added = dict(tree), dict[str, Any](), dict[str, Any]()
    for member in members_of(cast(Any, cls), offered):
        name, key = member.name, f"{group}{member.name}"
        if "inline" in member.metadata:
            before = (
                member.metadata["inline"] if base is None or member.plugin else getattr(base, name)
            )
            names = {name.split(".")[0] for name in member.keys}
            part = {name: rest.pop(name) for name in names & rest.keys()}
            value = build(
                member.type, part, "", group, before, tuple(member.metadata.get("offered", ()))
            )
        elif name in rest or member.plugin or (base is None and member.default == MISSING):
            raw = rest.pop(name, {} if member.plugin else MISSING)
            nested = is_dataclass(member.type) and not is_dataclass(raw) and raw != MISSING
            value = build(member.type, raw, "", f"{key}.") if nested else checked(key, raw, member)
        else:
            continue
        (added if member.plugin else values)[name] = value
    for name in map(str, rest):
        near = nearest_key(
            f"{group}{name}", [f"{group}{key}" for key in keys_of(cast(Any, cls), offered)]
        )
        raise NMTError(f"unknown key {shown(f'{group}{name}')}; {near}")
    if added:
        values["plugins"] = added
    record = replace(base, **values) if base is not None else cls(**values)
    for options in added.values():
        if check := getattr(options, "check", None):
            check(record)
    return record


def to_tree(record: Any) -> dict[str, Any]:
    """A record's keys and values as a tree that `build` accepts."""
    tree: dict[str, Any] = {}
    for member in members_of(cast(Any, type(record))):
        value = record.plugins.get(member.name) if member.plugin else getattr(record, member.name)
        if is_dataclass(value):
            tree |= to_tree(value) if "inline" in member.metadata else {member.name: to_tree(value)}
        elif not member.plugin:
            tree[member.name] = value
    return tree


def checked(key: str, value: Any, member: Member) -> Any:
    """Convert a value to its key's type; NMTError if the key does not accept it."""
    require(value != MISSING, f"{key}: a value is needed; pass {key}=VALUE")
    limits, choices, fits = member.metadata.get("range"), member.choices, True
    # Convert YAML's types to the key's type: a single string to a list, 1.10 to a string, 1 to 1.0.
    if member.is_list and not matches(value, member.type) and not isinstance(value, bool | dict):
        items = value if isinstance(value, list | tuple) else as_list(value)
        value = [str(item) if is_number(item) else item for item in items]
    elif is_number(value) and str in member.types and not {int, float} & member.types:
        value = str(value)
    elif is_number(value) and float in member.types and int not in member.types:
        value = float(value)
    for item in value if isinstance(value, list) else [value]:
        is_outside = limits and is_number(item) and not limits[0] <= item <= limits[1]
        fits = (
            fits
            and not is_outside
            and not (choices and isinstance(item, str) and item not in choices)
        )
    fits = fits and matches(value, member.type)
    require(fits, f"{key}={shown(in_words(value))}: must be {takes(member)}")
    return value


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def matches(value: Any, kind: Any) -> bool:
    """True if a value matches a type annotation; an int also matches float, but a bool matches neither."""
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, UnionType):
        return any(matches(value, option) for option in arguments)
    if origin is list:
        return isinstance(value, list) and all(matches(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            all(map(matches, item, arguments)) for item in value.items()
        )
    if kind is Any or isinstance(value, bool):
        return kind in (Any, bool)
    return isinstance(value, int | float if kind is float else kind)


def takes(member: Member) -> str:
    kinds, limits, choices = member.types, member.metadata.get("range"), member.choices
    words = []
    if limits or {int, float} & kinds:
        span = " and ".join(
            f"{limit:,}" if int in kinds else f"{limit:,.10g}" for limit in limits or ()
        )
        words.append(
            ("a whole number" if int in kinds else "a number")
            + (f" between {span}" if span else "")
        )
    if choices:
        names = ", ".join(map(in_words, choices))
        kind = "a list of " if member.is_list else "one of "
        words.append(names if len(choices) == 1 and not member.is_list else kind + names)
    elif str in kinds or member.is_list:
        words.append("a string" + (", or a list of strings" if member.is_list else ""))
    words += ["true or false"] if bool in kinds else []
    words += ["a mapping"] if any(get_origin(kind) is dict for kind in kinds) else []
    return ", or ".join([*words, *(["null"] if NoneType in kinds else [])])


def in_words(value: Any) -> str:
    """Format a value as a user would write it after KEY=."""
    if isinstance(value, list | tuple):
        return f"[{','.join(in_words(item) for item in value)}]"
    return (
        str(value).lower() if isinstance(value, bool) else "null" if value is None else str(value)
    )


def require(condition: bool, message: str) -> None:
    if not condition:
        raise NMTError(message)


def shown(value: Any) -> str:
    line = "".join(letter for letter in " ".join(str(value).split()) if letter.isprintable())
    return line if len(line) <= 60 else f"{line[:60]}..."


def check_name(key: str, name: str) -> None:
    for part in name.split("/"):
        fits = (
            part.isprintable()
            and not part.startswith(".")
            and bool(part.strip())
            and len(part.encode()) <= 200
        )
        require(
            fits,
            f"{key}={shown(name)!r}: must be a file name of printable characters without a leading dot",
        )


def as_list(value: Any) -> list[str]:
    items = value if isinstance(value, list | tuple) else [] if value is None else [value]
    return [str(item) for item in items]


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= (
            flatten(value, f"{prefix}{key}.")
            if isinstance(value, dict)
            else {f"{prefix}{key}": value}
        )
    return flat


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """The keys whose values differ between two trees, as "key: old -> new"; lists at most four."""
    old, new = flatten(old), flatten(new)
    changes = [
        f"{key}: {old.get(key)} -> {new.get(key)}"
        for key in {**old, **new}
        if old.get(key) != new.get(key)
    ]
    return ", ".join(changes[:4]) + (f" and {len(changes) - 4} more" if len(changes) > 4 else "")


@cache
def texts_below_fields(cls: type) -> dict[str, str]:
    """Field name -> the string literal below it, for the fields of a class and its bases."""
    texts: dict[str, str] = {}
    for base in filter(is_dataclass, reversed(cls.__mro__)):
        for node, following in pairwise(ast.parse(inspect.getsource(base)).body[0].body):  # type: ignore[attr-defined]
            if isinstance(node, ast.AnnAssign) and isinstance(following, ast.Expr):
                texts[ast.unparse(node.target)] = " ".join(
                    ast.literal_eval(following.value).split()
                )
    return texts


exists = os.path.exists  # unlike Path.exists, False for a string that cannot be a file name


def answer(command: str, words: list[str]) -> str:
    """Return a plugin's one-line answer to keys, options or a command of other toolkits, or an empty string."""
    return next(
        filter(None, (entry.load()(command, words) for entry in entries_of("answer").values())), ""
    )


def explain(command: str, words: list[str], word: str, keys: list[str]) -> str:
    """The message for `word`, an unknown key or option among `words`: a plugin's answer, text= or the nearest key."""
    name = word.partition("=")[0].lstrip("+~")
    near = nearest_key(name.lstrip("-").replace("-", "_"), keys)
    if "text" in keys and " " in word and not near.startswith("did you mean"):
        near = f"if this is input text, write text='{word}'"
    unknown = f"{name}: no such option" if name.startswith("-") else f"unknown key {name}"
    return answer(command, words) or f"{unknown}; {near}"


def nearest(word: str, words: Iterable[str]) -> str:
    matches = difflib.get_close_matches(word, words := [*words], n=1, cutoff=0.5)
    return (
        f"did you mean {matches[0]}?"
        if matches
        else "choose from " + ", ".join(w for w in words if "/" not in w)
    )


def nearest_key(key: str, keys: list[str]) -> str:
    """Suggest the key whose last part is nearest, preferring the same group; otherwise list that group's keys."""
    group, _, last_part = key.rpartition(".")
    siblings = [name for name in keys if group and name.startswith(f"{group}.")]
    for names, cutoff in (
        (siblings or [name for name in keys if "." not in name], 0.6),
        (keys, 0.75),
    ):
        last = {name.rpartition(".")[2]: name for name in names}
        if matches := difflib.get_close_matches(last_part, last, n=1, cutoff=cutoff):
            return f"did you mean {last[matches[0]]}?"
    return (
        f"choose from {', '.join(siblings or dict.fromkeys(name.split('.')[0] for name in keys))}"
    )
