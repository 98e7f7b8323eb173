"""The manifest: what a prepared corpus was made from, and how two configurations differ."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.data import FORMAT_VERSION, Manifest, fingerprint, read_manifest
from nmt.errors import NMTError

CONTENT = {
    "data": {"name": "toy", "train": ["a", "b"], "filters": {"max_words": None, "max_ratio": 4.0}},
    "seed": 1,
    "sources": {"a.en": "0123", "Größe.tsv": "4567"},
}


def changed(**keys: Any) -> dict[str, Any]:
    return {**CONTENT, **keys}


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
    "counts": {
        "train": {
            "read": 3,
            "dropped": {"empty side": 1},
            "kept": 2,
            "tokens": {"source": 5, "target": 6},
            "lengths": {"source": {"p99": 3, "max": 3}, "target": {"p99": 3, "max": 4}},
        }
    },
    "vocabulary_size": 300,
    "tokenizer": "def",
    "versions": {"datasets": "5"},
}


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    manifest = Manifest(**WHOLE)  # type: ignore[arg-type]
    manifest.write(tmp_path)
    assert read_manifest(tmp_path) == manifest
    assert json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8")) == {**WHOLE, "characters": None}
    replace(manifest, format_version=2).write(tmp_path)
    with pytest.raises(NMTError, match=r"format version 2, but this nmt reads 3: .*overwrite=true"):
        read_manifest(tmp_path)


NOT_OURS = "not what `nmt preprocess` writes"
BROKEN: list[tuple[str, Any, str]] = [
    ("content.data.kind", ["files"], NOT_OURS),
    ("content.data.source", "../../../etc/passwd", NOT_OURS),
    ("content.sources", ["a"], NOT_OURS),
    ("counts.train.dropped", {"a": "b"}, "dropped"),
    ("vocabulary_size", 2**40, NOT_OURS),
    ("versions", {"datasets": 5}, "versions"),
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
