"""The rules that configuration classes check, and how the classes document themselves."""

import ast
import inspect
from dataclasses import is_dataclass
from typing import Any, get_type_hints

from nmt.errors import NMTError


def require(condition: bool, message: str) -> None:
    """Raise NMTError(message) unless `condition` holds."""
    if not condition:
        raise NMTError(message)


def require_choice(key: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise NMTError unless `value` is one of `choices`."""
    require(value in choices, f"{key}={value}: must be one of {', '.join(choices)}")


def as_list(value: Any) -> list[str]:
    """One path, several, or none, as a list."""
    if value is None:
        return []
    return [str(item) for item in value] if isinstance(value, list | tuple) else [str(value)]


def texts_below_fields(cls: type) -> dict[str, str]:
    """Field -> the text under it, for those that stand in a class itself."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for node, following in zip(body.body, [*body.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            texts[node.target.id] = " ".join(str(following.value.value).split()) if documented else ""  # type: ignore[union-attr]
    return texts


def field_help(cls: type) -> dict[str, str]:
    """Key -> help text for every leaf below a configuration class, read from the texts under its fields."""
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
