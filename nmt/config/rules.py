"""Checks for configuration classes, and the help texts under their fields."""

import ast
import inspect
from dataclasses import field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, get_args, get_type_hints

from nmt.errors import NMTError

MISSING: Any = "???"
"""OmegaConf's mark of a field that needs a value, without loading OmegaConf."""


def require(condition: bool, message: str) -> None:
    """Raise NMTError(message) unless `condition` holds."""
    if not condition:
        raise NMTError(message)


def require_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise NMTError unless `value` is one of `choices`."""
    require(value in choices, f"{key}={value}: must be one of {', '.join(choices)}")


def number(default: Any, least: float, most: float) -> Any:
    """A field for a number from `least` to `most`, which `check_numbers` checks."""
    return field(default=default, metadata={"range": (least, most)})


def check_numbers(config: Any, group: str = "") -> None:
    """Raise NMTError where a `number` field holds none, or one out of range; `group` is its key up to the last dot."""
    hints = get_type_hints(type(config))
    for each in fields(config):
        value, null = getattr(config, each.name), NoneType in get_args(hints[each.name])
        if "range" in each.metadata and not (value is None and null):
            check_number(group + each.name, value, each.metadata["range"], ", or null" if null else "")


def check_number(key: str, value: Any, limits: tuple[float, float], otherwise: str = "") -> None:
    """Raise NMTError unless a value is a number within limits, whole where they are; `otherwise` ends the message."""
    kind = int if isinstance(limits[0], int) else int | float
    fits = isinstance(value, kind) and not isinstance(value, bool) and limits[0] <= value <= limits[1]
    require(fits, f"{key}={shown(value)}: must be {number_words(limits)}{otherwise}")


def number_words(limits: tuple[float, float]) -> str:
    """ "a whole number between 1 and 1,000"."""
    whole = isinstance(limits[0], int)
    least, most = (f"{limit:,}" if whole else f"{limit:,.10g}" for limit in limits)
    return f"{'a whole number' if whole else 'a number'} between {least} and {most}"


def type_of(cls: type, key: str) -> tuple[tuple[Any, ...], tuple[float, float] | None]:
    """The types and the range of a dotted key below a configuration class; no types for an unknown key."""
    kind: Any = cls
    limits = None
    for name in key.split("."):
        hints = get_type_hints(kind) if is_dataclass(kind) else {}
        if name not in hints:
            return (), None
        limits = next(each for each in fields(kind) if each.name == name).metadata.get("range")
        kind = hints[name]
    return (get_args(kind) if isinstance(kind, UnionType) else (kind,)), limits


def shown(value: Any) -> str:
    """A value for a message: on one line, and cut if it is long."""
    text = " ".join(str(value).split())
    return text if len(text) <= 60 else f"{text[:60]}..."


def check_name(key: str, name: str, folders: bool = False) -> None:
    """Raise NMTError unless a text can name a file, or with `folders` a path such as a/b."""
    for part in name.split("/") if folders else [name]:
        require(
            part.isprintable() and "/" not in part and not part.startswith(".") and bool(part.strip()),
            f"{key}={shown(name)!r}: it names files, so it needs visible characters, no slash"
            f"{' at an end' if folders else ''} and no dot at its beginning",
        )
    require(len(name.encode()) <= 200, f"{key}={shown(name)}: too long for a file name, of 200 bytes at most")


def as_list(value: Any) -> list[str]:
    """One path, several, or none, as a list."""
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]


def texts_below_fields(cls: type) -> dict[str, str]:
    """Field -> the text under it, for the fields of a class itself, not of its bases."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            texts[node.target.id] = " ".join(str(following.value.value).split()) if documented else ""  # type: ignore[union-attr]
    return texts


def field_help(cls: type) -> dict[str, str]:
    """Key -> help text, for every leaf below a configuration class."""
    texts: dict[str, str] = {}
    for part in filter(is_dataclass, reversed(cls.__mro__)):
        texts |= texts_below_fields(part)
    help_texts: dict[str, str] = {}
    for key, kind in get_type_hints(cls).items():
        if is_dataclass(kind):
            help_texts |= {f"{key}.{inner}": text for inner, text in field_help(kind).items()}  # type: ignore[arg-type]
        else:
            help_texts[key] = texts[key]
    return help_texts
