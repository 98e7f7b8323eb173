"""A model between 202 languages in the Python API and the commands of the core."""

import json
from pathlib import Path

import pytest

import nmt as package
from nmt.config import DecodeConfig
from nmt.errors import NMTError
from tests.helpers.options import translate_config

TEXT = "ཀ ক ອая"
"""Subwords of the small model, whose translations depend on the languages."""
SEARCH = ["engine=torch", "decode.beam_size=2", "decode.max_extra_length=3"]


@pytest.fixture(scope="module")
def model(nllb_model: Path) -> package.Model:
    options = {"source": "en", "target": "ru", "beam_size": 2, "max_extra_length": 3}
    return package.load(nllb_model, engine="torch", **options)


@pytest.mark.plugins
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


@pytest.mark.plugins
def test_stages_and_sentences_know_the_languages_of_a_call(model):
    translator = model.searching({"source": "fr", "target": "de"})
    limits = translator.limits
    assert (limits.language, limits.target) == translator.direction == ("fra_Latn", "deu_Latn")


@pytest.mark.plugins
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


@pytest.mark.plugins
@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nmt: line 1: its source language is not known; pass target=en2de, or begin lines"),
        (["source=en"], "nmt: line 1: its target language is not known"),
        (["source=xx", "target=de"], "nmt: source=xx: not a language of the model"),
    ],
)
def test_missing_languages_end_in_one_line(nmt, nllb_model, words, message):
    done = nmt("translate", str(nllb_model), TEXT, *SEARCH, *words)
    assert done.code == 2
    (problem,) = done.err.splitlines()
    assert problem.startswith(message)


@pytest.mark.plugins
def test_lines_that_begin_with_markup_are_text(nmt, nllb_model, tmp_path):
    (tmp_path / "lines.txt").write_text("<h2>Title</h2>\n<b2b>\n<fr2de> Bonjour\n")
    job = ["translate", str(nllb_model), "lines.txt", "format=jsonl", *SEARCH]
    done = nmt(*job, "target=en2ru")
    assert done.code == 0, done.err
    # With their tags, as they were typed.
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [record["source"] for record in records] == [
        "<h2>Title</h2>",
        "<b2b>",
        "<fr2de> Bonjour",
    ]
    assert nmt(*job, "target=de").code == 2


@pytest.mark.plugins
def test_a_job_resumes_only_in_the_same_languages(nmt, nllb_model, tmp_path, monkeypatch):
    (tmp_path / "lines.txt").write_text(f"{TEXT}\n<fr2de> {TEXT}\n<en2tlh> {TEXT}\n")
    job = ["translate", str(nllb_model), "lines.txt", "output=out.txt", *SEARCH, "buffer=1"]
    assert "line 3: target=tlh" in nmt(*job, "source=en", "target=ru").err
    other = nmt(*job, "source=fr", "target=ru")
    assert other.code == 2
    assert "source" in other.err
    again = nmt(*job, "source=en", "target=ru")
    assert "resuming after 2 of 3 lines" in again.err


@pytest.mark.slow
@pytest.mark.plugins
def test_processes_translate_between_the_languages_that_a_command_names(nllb_model, model):
    from nmt.translation.devices import on_devices

    decode = DecodeConfig(beam_size=2, max_extra_length=3)
    config = translate_config(
        [str(nllb_model)], device="cpu", decode=decode, source="fr", target="de"
    )
    with on_devices(config, ["cpu"]) as translator:
        rows = list(translator.stream([TEXT, f"<en2ru> {TEXT}"], 10))
    expected = [model.translate(TEXT, source="fr", target="de"), model.translate(TEXT)]
    assert [row[0].text for row in rows] == expected


@pytest.mark.slow
@pytest.mark.parametrize("target", ["en2de", "<eng_Latn2deu_Latn>", "German"])
def test_a_bilingual_model_confirms_both_languages(nmt, word_model, target):
    expected = nmt("translate", str(word_model), "va so tu.", "engine=torch").out
    assert (
        nmt("translate", str(word_model), "va so tu.", "engine=torch", f"target={target}").out
        == expected
    )


def test_a_bilingual_model_refuses_another_source(nmt, word_model):
    done = nmt("translate", str(word_model), "va so tu.", "target=fr2de")
    assert done.code == 2
    assert "translates from English (en)" in done.err
