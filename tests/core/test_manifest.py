"""The manifest: what a prepared corpus was made from, and how two configurations differ."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.config import difference, flatten
from nmt.data import FORMAT_VERSION, Manifest, fingerprint, read_manifest
from nmt.errors import NMTError

CONTENT = {
    "data": {"name": "toy", "train": ["a", "b"], "filters": {"max_words": None, "max_ratio": 4.0}},
    "seed": 1,
    "sources": {"a.en": "0123", "Größe.tsv": "4567"},
}


def changed(**keys: Any) -> dict[str, Any]:
    return {**CONTENT, **keys}


@pytest.mark.parametrize(
    ("tree", "flat"),
    [
        ({}, {}),
        ({"a": 1, "b": {"c": [2], "d": {"e": None}}}, {"a": 1, "b.c": [2], "b.d.e": None}),
    ],
)
def test_a_tree_flattens_to_dotted_keys(tree: dict[str, Any], flat: dict[str, Any]) -> None:
    assert flatten(tree) == flat


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (CONTENT, ""),
        (changed(seed=2), "seed: 1 -> 2"),
        (changed(sources={"a.en": "89", "Größe.tsv": "4567"}), "sources.a.en: 0123 -> 89"),
        (changed(sources={"Größe.tsv": "4567"}), "sources.a.en: 0123 -> None"),
        (changed(tokenizer={"kind": "bpe"}), "tokenizer.kind: None -> bpe"),
        (changed(seed=2, a=1, b=2, c=3, d=4, e=5), "seed: 1 -> 2, a: None -> 1, b: None -> 2, c: None -> 3 and 2 more"),
    ],
)
def test_a_difference_names_the_keys_with_old_and_new_value(new: dict[str, Any], words: str) -> None:
    assert difference(CONTENT, new) == words


def test_a_key_that_turns_from_absent_to_null_is_no_silent_difference() -> None:
    assert fingerprint(CONTENT) != fingerprint(changed(extra=None))
    assert Manifest(1, "", CONTENT, {}, 300, "", {}).difference(changed(extra=None)) != ""


def test_the_fingerprint_depends_on_every_value_and_not_on_the_order() -> None:
    others = [
        changed(seed=2),
        changed(data={**CONTENT["data"], "train": ["b", "a"]}),  # type: ignore[dict-item]
        changed(data={**CONTENT["data"], "filters": {"max_words": 0, "max_ratio": 4.0}}),  # type: ignore[dict-item]
        changed(sources={"a.en": "0123", "Größe.tsv": "4568"}),
    ]
    assert len({fingerprint(content) for content in [CONTENT, *others]}) == 5
    assert fingerprint(dict(reversed(CONTENT.items()))) == fingerprint(CONTENT)
    assert fingerprint(json.loads(json.dumps(CONTENT))) == fingerprint(CONTENT)


WHOLE = {
    "format_version": FORMAT_VERSION,
    "fingerprint": "abc",
    "content": {
        "data": {"name": "toy", "kind": "files", "source": "en", "target": "de", "filters": {"max_ratio": None}},
        "tokenizer": {"kind": "bpe"},
        "seed": 1,
        "sources": {"Größe.tsv": "4567"},
    },
    "counts": {"train": {"read": 3, "dropped": {"empty side": 1}, "kept": 2, "tokens": {"source": 5, "target": 6}}},
    "vocabulary_size": 300,
    "tokenizer": "def",
    "versions": {"datasets": "5"},
}


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    manifest = Manifest(**WHOLE)  # type: ignore[arg-type]
    manifest.write(tmp_path)
    assert read_manifest(tmp_path) == manifest
    assert json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8")) == {**WHOLE, "characters": None}


BROKEN: list[tuple[str, Any, str]] = [
    ("fingerprint", 7, "fingerprint"),
    ("content", [], "content"),
    ("content", {}, "content, data"),
    ("content.data", None, "content, data"),
    ("content.data.kind", ["files"], "content, data"),
    ("content.data.source", "../../../etc/passwd", "not a language code"),
    ("content.data.target", "..", "not a language code"),
    ("content.data.target", 3, "content, data"),
    ("content.tokenizer", {"kind": None}, "content, tokenizer"),
    ("content.sources", ["a"], "content, sources"),
    ("counts", [], "counts"),
    ("counts.train", None, "counts, train"),
    ("counts.train", {"read": 3}, "no key 'dropped'"),
    ("counts.train.read", "3", "read"),
    ("counts.train.dropped", {"a": "b"}, "dropped"),
    ("counts.train.tokens", {"source": 1.5}, "tokens"),
    ("vocabulary_size", 0, "vocabulary_size"),
    ("vocabulary_size", 2**40, "vocabulary_size"),
    ("vocabulary_size", True, "vocabulary_size"),
    ("versions", {"datasets": 5}, "versions"),
    ("tokenizer", None, "tokenizer"),
    ("unknown", 1, "unknown key"),
]


@pytest.mark.parametrize(("key", "value", "words"), BROKEN, ids=lambda value: str(value)[:30])
def test_a_manifest_of_anyone_is_checked_where_it_is_read(tmp_path: Path, key: str, value: Any, words: str) -> None:
    tree = json.loads(json.dumps(WHOLE))
    *groups, last = key.split(".")
    part = tree
    for group in groups:
        part = part[group]
    part[last] = value
    (tmp_path / "manifest.json").write_text(json.dumps(tree))
    with pytest.raises(NMTError, match=rf"manifest\.json.*{words}") as error:
        read_manifest(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "text", ["", "[]", "7", "{", "[" * 10**5, '{"a": 1e999}', '{"format_version": ' + "9" * 5000 + "}"]
)
def test_what_is_no_manifest_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(NMTError, match=r"manifest\.json: cannot be read") as error:
        read_manifest(tmp_path)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("folder", [".", "nowhere"])
def test_a_folder_without_a_manifest_is_an_error_naming_it(tmp_path: Path, folder: str) -> None:
    with pytest.raises(NMTError, match="nmt preprocess") as error:
        read_manifest(tmp_path / folder)
    assert str(tmp_path / folder) in str(error.value)


@pytest.mark.parametrize("text", ['{"format_version": 0}', f'{{"format_version": {FORMAT_VERSION + 1}}}', "{}"])
def test_another_format_is_an_error_that_says_what_to_do(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(NMTError, match="overwrite=true") as error:
        read_manifest(tmp_path)
    assert str(tmp_path) in str(error.value)
