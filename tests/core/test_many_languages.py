"""A model between 202 languages in the Python API and the commands of the core."""

from pathlib import Path

import pytest

import nmt as package
from nmt.errors import NMTError

TEXT = "ཀ ক ອая"
"""Subwords of the small model, whose translations depend on the languages."""
SEARCH = ["engine=torch", "decode.beam_size=2", "decode.max_extra_length=3"]


@pytest.fixture(scope="module")
def model(nllb_model: Path) -> package.Model:
    options = {"source": "en", "target": "ru", "beam_size": 2, "max_extra_length": 3}
    return package.load(nllb_model, engine="torch", **options)


def test_languages_of_a_call_replace_those_of_the_model(model, nllb_model, tmp_path):
    default = model.translate(TEXT)
    other = model.translate(TEXT, source="fr", target="de")
    assert len({default, other, model.translate(TEXT, target="de")}) == 3
    assert model.translate(f"<fr2de> {TEXT}") == other
    assert model.translate(TEXT, target="fra_Latn2deu_Latn") == other
    assert [*model.stream([TEXT], source="fr", target="de")] == [other]
    assert model.translate(TEXT) == default
    assert len(model.sources) == len(model.targets) == 202
    [best, *_] = model.explain(TEXT, source="fr", target="de", n_best=2)
    assert best.text == other
    [score] = model.score([(TEXT, best.text)], source="fr", target="de")
    assert [score] == model.score([(f"<fra_Latn2deu_Latn> {TEXT}", best.text)])
    assert [score] != model.score([(TEXT, best.text)])
    (tmp_path / "lines.txt").write_text(f"{TEXT}\n")
    output = tmp_path / "out.txt"
    model.translate_file(tmp_path / "lines.txt", output, source="fr", target="de")
    assert output.read_text() == f"{other}\n"


def test_stages_and_sentences_know_the_languages_of_a_call(model):
    translator = model.searching({"source": "fr", "target": "de"})
    limits = translator.limits
    assert (limits.language, limits.target) == translator.direction == ("fra_Latn", "deu_Latn")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.translate(TEXT, target="tlh"), "target=tlh: not a language of the model"),
        (lambda m: m.score([(TEXT, TEXT)], beam_size=2), "beam_size: score takes only source and"),
        (lambda m: m.translate(f"<en2tlh> {TEXT}"), "line 1: target=tlh: not a language"),
    ],
)
def test_mistakes_are_named(model, call, message):
    with pytest.raises(NMTError) as caught:
        call(model)
    assert str(caught.value).startswith(message)
