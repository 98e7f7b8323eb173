"""Corpora of the Hugging Face Hub, read from a local copy."""

from collections import Counter
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from nmt.commands import compose
from nmt.config import DataConfig, NMTError, build
from nmt.preparation import corpus_for
from nmt.text import Pair

CARD = "---\nconfigs:\n- config_name: de-en\n  data_files:\n  - split: test\n    path: {}\n---\n"
SPLITS = {
    "train": [
        ("Resumption of the session", "Wiederaufnahme der Sitzungsperiode"),
        ("", "leer"),
        ("\u2028 a", "b  c"),
    ],
    "validation": [("A Republican strategy", "Eine republikanische Strategie")],
    "test": [("Gutach: Increased safety", "Gutach: Noch mehr Sicherheit"), ("Yes.", "Ja.")],
}


def write(path: Path, pairs: list[Pair]) -> None:
    rows = [{"de": target, "en": source} for source, target in pairs]
    pq.write_table(pa.table({"translation": rows}), path)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local copy of a dataset like wmt/wmt14, with its training set in two files."""
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "wmt14"
    (folder / "de-en").mkdir(parents=True)
    for split, pairs in SPLITS.items():
        parts = [pairs[:2], pairs[2:]] if len(pairs) > 2 else [pairs]
        for i, part in enumerate(parts):
            write(folder / "de-en" / f"{split}-{i:05}-of-00002.parquet", part)
    return folder


def configuration(path: Path, **changes: Any) -> DataConfig:
    values = {
        "name": "toy",
        "kind": "hub",
        "hub": "wmt/wmt14",
        "subset": "de-en",
        "path": str(path),
    }
    return build(DataConfig, {**values, **changes})


def read(config: DataConfig, split: str) -> list[Pair]:
    return list(corpus_for(config).read(split, Counter()) or ())


def test_default_corpora_are_those_of_the_paper():
    for options, subset in (([], "de-en"), (["data=wmt14_en_fr"], "fr-en")):
        config = compose("train", options)
        language = subset[:2]
        assert config.name == f"wmt14_en_{language}-base"
        assert (config.data.kind, config.data.source, config.data.target) == ("hub", "en", language)
        assert vars(config.data.plugins["hub"]) == {"hub": "wmt/wmt14", "subset": subset}


def test_local_copy_is_read_without_the_files_that_its_readme_names(copy, tmp_path):
    write(tmp_path / "private.parquet", [("My password.", "Mein Passwort.")])
    (copy / "README.md").write_text(CARD.format(tmp_path / "private.parquet"))
    for split, name in (("train", "train"), ("valid", "validation"), ("test", "test")):
        assert read(configuration(copy), split) == SPLITS[name]
    assert len(corpus_for(configuration(copy)).digests()) == 4


def test_missing_language_or_subset_is_reported(copy):
    problem = r"row 1: .* strings en and fr; check data.source and data.target"
    with pytest.raises(NMTError, match=problem):
        read(configuration(copy, target="fr"), "train")
    with pytest.raises(NMTError, match=r"no files match None/train-\*\.parquet"):
        read(configuration(copy, subset=None), "train")


@pytest.mark.parametrize(
    ("rows", "malformed"),
    [
        ([{"en": "Yes.", "de": "Ja."}, None], 1),
        ([{"en": "Yes.", "de": "Ja."}, {"en": None, "de": "Ja."}], 1),
        (["text"] * 2, 2),
    ],
)
def test_row_without_two_texts_is_reported_or_counted(copy, rows, malformed):
    for file in (copy / "de-en").glob("train-*"):
        file.unlink()
    pq.write_table(pa.table({"translation": rows}), copy / "de-en" / "train-00000-of-00001.parquet")
    problem = r"train, row [12]: not an object with strings en and de; .*data\.errors=skip"
    with pytest.raises(NMTError, match=problem):
        read(configuration(copy), "train")
    counts = Counter[str]()
    corpus = corpus_for(configuration(copy, errors="skip"))
    assert len(list(corpus.read("train", counts))) == 2 - malformed
    assert counts == {"malformed": malformed}
