"""Whatever a file from a stranger holds, the answer is a value of the wanted types, or one line."""

import os
from dataclasses import dataclass, field

import pytest

from nmt.config import build
from nmt.errors import NMTError
from nmt.files import parse_json, parse_yaml, read_bytes, read_mapping


@pytest.mark.parametrize("content", ['{"a": 1, "b": [1.5, null, "x"]}', "{}"])
def test_plain_json_is_read(tmp_path, content):
    (tmp_path / "a").write_text(content)
    assert read_mapping(tmp_path / "a", parse_json) == eval(content, {"null": None})


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "[" * 100 + "]" * 100, "1" * 5000, "1e999", "NaN", "[-Infinity]", str(2**63), "", "{", '{"a"}'],
    ids=lambda text: text[:12],
)
def test_json_that_no_program_of_ours_wrote_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011
        parse_json(content)


@pytest.mark.parametrize(
    "content",
    [
        "a: &x [1]\nb: *x",
        "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]",
        "!!python/object/apply:os.system [true]",
        "[" * 2000,
        "a: [",
        "- " * 60 + "1",
    ],
    ids=lambda text: text[:12],
)
def test_yaml_that_no_program_of_ours_wrote_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011
        parse_yaml(content)


@pytest.mark.parametrize("content", ["[1]", "text", "1: 2", "null"])
def test_what_is_no_mapping_is_refused(tmp_path, content):
    (tmp_path / "a").write_text(content)
    with pytest.raises(NMTError, match="not a mapping"):
        read_mapping(tmp_path / "a", parse_yaml)


def test_links_devices_and_large_files_are_not_read(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    assert read_bytes(tmp_path / "file", 5) == b"12345"
    (tmp_path / "folder").mkdir()
    for name, words in (
        ("folder", "regular"),
        ("file", "larger"),
        ("link", "link"),
        ("pipe", "regular"),
        ("none", "No such file"),
    ):
        with pytest.raises(NMTError, match=words):
            read_bytes(tmp_path / name, 4)


@dataclass
class Inner:
    size: float = 1.0


@dataclass
class Outer:
    name: str
    count: int
    maybe: int | None = None
    values: list[int] = field(default_factory=list)
    table: dict[str, float] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)


def test_a_dataclass_is_built_from_its_fields():
    tree = {"name": "x", "count": 2, "maybe": None, "values": [1], "table": {"a": 1}, "inner": {"size": 2}}
    assert build(Outer, tree, "file") == Outer("x", 2, None, [1], {"a": 1}, Inner(2))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"count": "2"}, "count"),
        ({"count": True}, "count"),
        ({"count": 2.0}, "count"),
        ({"name": None}, "name"),
        ({"values": [1, "2"]}, "values"),
        ({"values": {}}, "values"),
        ({"table": {1: 2}}, "table"),
        ({"inner": {"size": "big"}}, "inner: size"),
        ({"inner": []}, "inner: not a mapping"),
        ({"other": 1}, "unknown key 'other'"),
    ],
)
def test_other_types_and_names_are_refused_by_name(change, words):
    with pytest.raises(NMTError, match=words):
        build(Outer, {"name": "x", "count": 2, **change}, "file")
    with pytest.raises(NMTError, match="no key 'count'"):
        build(Outer, {"name": "x"}, "file")
