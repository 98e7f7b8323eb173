"""Every number of every command has a range, and what lies outside is one line that names key and value."""

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Iterator

import pytest

from nmt.commands import COMMANDS, compose
from nmt.config import FilterConfig, check_name, check_number, number
from nmt.errors import NMTError


def numbers(
    cls: type, command: str, group: str = ""
) -> Iterator[tuple[str, str, dataclasses.Field[object], set[type]]]:
    """Command, dotted key, field and types of every int and float below a class."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        kinds = set(typing.get_args(hints[field.name]) or [hints[field.name]])
        if dataclasses.is_dataclass(hints[field.name]):
            yield from numbers(hints[field.name], command, f"{group}{field.name}.")
        elif kinds & {int, float}:
            yield command, group + field.name, field, kinds


NUMBERS = [
    found for command, each in COMMANDS.items() for found in numbers(each.config, command) if command != "preprocess"
]
NAMES = [f"{command} {key}" for command, key, _, _ in NUMBERS]
NEEDED = {"score": ["reference=x"], "attention": ["sentence=x"], "import": ["path=x", "output=y"]}


def test_the_numbers_are_found():
    assert {"train model.heads", "translate decode.top_p", "train data.filters.max_words", "average last"} <= set(NAMES)
    assert len(NAMES) > 90


@pytest.mark.parametrize(("command", "key", "field", "kinds"), NUMBERS, ids=NAMES)
def test_every_number_has_a_range_that_holds_its_default(command, key, field, kinds):
    least, most = field.metadata["range"]
    assert math.isfinite(least)
    assert least < most < 2**63
    assert type(least) is type(most) is (float if float in kinds else int)
    assert field.default in (None, "???") or least <= field.default <= most


@pytest.mark.parametrize(("command", "key", "field", "kinds"), NUMBERS, ids=NAMES)
def test_what_is_outside_is_refused(command, key, field, kinds):
    """Also where no command line has looked at it, as in models and runs of other people."""
    part = composed(command)
    for name in key.split(".")[:-1]:
        part = getattr(part, name)
    for value in outside(field.metadata["range"], kinds):
        with pytest.raises(NMTError) as error:
            dataclasses.replace(part, **{field.name: value})
        assert str(error.value).startswith(f"{key}=" if value is not None else key)
        assert "\n" not in str(error.value)


def outside(limits: tuple[float, float], kinds: set[type]) -> list[object]:
    """What a field of that range and type is not to be set to."""
    least, most = limits
    beyond = [least - 1, most + 1, 10**30, -(10**30), math.nan, math.inf, -math.inf, "x", [], True]
    return [*beyond, *([] if types.NoneType in kinds else [None]), *([] if float in kinds else [least + 0.5])]


@functools.cache
def composed(command: str) -> object:
    return compose(command, NEEDED.get(command, []))


@pytest.mark.parametrize(
    ("command", "override"),
    [
        ("train", "seed=18446744073709551616"),
        ("train", "optim.beta1=1.5"),
        ("train", "optim.beta2=1"),
        ("train", "optim.epsilon=-1"),
        ("train", "optim.factor=nan"),
        ("train", "optim.factor=inf"),
        ("train", "tokenizer.vocabulary_size=1000000000"),
        ("train", "model.d_model=1000000000000"),
        ("train", "workers=1000000"),
        ("train", "batching.max_tokens=0"),
        ("train", "data.filters.min_words=251"),
    ],
)
def test_a_command_line_refuses_it(command, override):
    with pytest.raises(NMTError) as error:
        compose(command, [*NEEDED.get(command, []), override])
    assert str(error.value).startswith(override.split("=")[0] + "=")
    assert "must be" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", ["9" * 5000, "1e999", "-inf", "1_0x", "[" * 3000])
def test_a_number_without_measure_is_one_short_line(value):
    with pytest.raises(NMTError) as error:
        compose("train", [f"optim.factor={value}"])
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (0, (1, 10**6), "k=0: must be a whole number between 1 and 1,000,000"),
        (2.5, (1, 9), "k=2.5: must be a whole number between 1 and 9"),
        ("ten", (1, 9), "k=ten: must be a whole number between 1 and 9"),
        (True, (0.0, 1.0), "k=True: must be a number between 0 and 1"),
        (math.nan, (1e-6, 1e6), "k=nan: must be a number between 1e-06 and 1,000,000"),
    ],
)
def test_what_is_said_of_a_number(value, limits, message):
    with pytest.raises(NMTError) as error:
        check_number("k", value, limits)
    assert str(error.value) == message


def test_a_number_may_be_left_out_where_its_type_says_so():
    assert FilterConfig(max_words=None).max_words is None
    with pytest.raises(NMTError, match=r"data\.filters\.max_words=0: .*, or null"):
        FilterConfig(max_words=0)
    assert number(3, 1, 9).default == 3


@pytest.mark.parametrize(
    "name", ["", " ", ".", "..", ".x", "a/b", "/", "a\nb", "a\0b", "a\x1b[31m", "\u202ea", "x" * 201]
)
def test_a_name_of_files_cannot_lead_elsewhere_or_hide(name):
    with pytest.raises(NMTError, match=r"^data\.name=") as error:
        check_name("data.name", name)
    assert str(error.value).isprintable()


@pytest.mark.parametrize("name", ["a/b", "x.y", "日本", "a b", "a=b,c", "<b>|`", "x" * 200])
def test_other_names_are_good_and_those_of_runs_may_lie_in_folders(name):
    check_name("name", name, folders=True)
    for bad in ("/a", "a/", "a//b", "a/../b", "a/.b"):
        with pytest.raises(NMTError):
            check_name("name", bad, folders=True)
