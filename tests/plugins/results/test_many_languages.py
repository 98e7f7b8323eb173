"""A model between 202 languages in `nmt cite`, `verify`, `compare` and `attention`."""

import json
from pathlib import Path
from zipfile import ZipFile

import pytest

TEXT = "ཀ ক ອая"
"""Subwords of the small model, whose translations depend on the languages."""
SEARCH = ["engine=torch", "decode.beam_size=2", "decode.max_extra_length=3"]
FILES = ["source=in.txt", "reference=ref.ja"]


@pytest.fixture
def files(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(f"{TEXT}\n{TEXT} {TEXT}\n")
    (tmp_path / "ref.ja").write_text("日本\n語\n")


@pytest.mark.usefixtures("files")
def test_a_bundle_states_both_languages(nmt, nllb_model):
    bundle = "output=bundle.zip"
    done = nmt("cite", str(nllb_model), *FILES, *SEARCH, bundle, "target=fr2ja", "text=true")
    assert done.code == 0, done.err
    assert "fra_Latn-jpn_Jpan" in done.out
    with ZipFile("bundle.zip") as archive:
        statement = json.loads(archive.read("bundle.json"))
        assert {"hypotheses.jpn_Jpan", "source.fra_Latn"} <= {*archive.namelist()}
    assert (statement["source"], statement["target"]) == ("fra_Latn", "jpn_Jpan")
    assert "language=ja" in statement["commands"][-1]
    checked = nmt("verify", "bundle.zip", f"run={nllb_model}")
    assert checked.code == 0, checked.out
    assert "2 of 2 lines are the same" in checked.out


@pytest.mark.slow
@pytest.mark.usefixtures("files")
def test_models_of_two_and_of_many_languages_are_compared(nmt, nllb_model, word_model):
    options = ["source=in.txt", "reference=ref.ja", "output=null", "metrics=[chrf]"]
    systems = [str(nllb_model), str(word_model)]
    done = nmt("compare", *systems, *options, *SEARCH, "target=en2de")
    assert done.code == 0, done.err
    wrong = nmt("compare", *systems, *options, *SEARCH, "target=fr2de")
    assert wrong.code == 2


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["cite", *FILES], "the source language is not known; pass both, such as target=en2de"),
        (["cite"], "has several target languages; pass source=FILE reference=FILE and both"),
        (["attention", "Hello."], "sentence: begin it with the tag of two languages of the model"),
        (["attention", "<en2tlh> Hello."], "sentence: begin it with the tag of two languages"),
    ],
)
def test_missing_languages_end_in_one_line(nmt, nllb_model, words, message):
    done = nmt(*words, f"run={nllb_model}")
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_attention_of_a_sentence_with_its_languages(nmt, nllb_model):
    sentence = f"<fr2ja> {TEXT}"
    for words in (["decode.max_extra_length=3"], [f"target={TEXT}"]):
        done = nmt("attention", sentence, str(nllb_model), *words)
        assert done.code == 0, done.err
        page = Path("attention.html").read_text()
        # The tags of both sides are tokens, too.
        assert "fra_Latn" in page
        assert "jpn_Jpan" in page
