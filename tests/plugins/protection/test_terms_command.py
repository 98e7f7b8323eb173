"""`glossary=` of `nmt translate`: with processes, files, reports, and what it refuses."""

import json

import pytest
from test_translate_command import model, refused, run  # noqa: F401

from nmt.commands import compose
from nmt.plugins.protection.glossary import WORD
from nmt.translation import what_decides

TERMS = "ka\tWort\nlo mi\tnu\nlo mi\tZwei Worte\nKA\tKA\tcase\n"
LINES = b"ka lo mi so\nnothing\nKA pe\n"


@pytest.fixture
def terms(tmp_path) -> str:
    (tmp_path / "terms.tsv").write_text(TERMS)
    return str(tmp_path / "terms.tsv")


@pytest.mark.parametrize("threads", [1, 2])
def test_terms_are_in_the_translations_and_in_the_report(model, terms, threads):  # noqa: F811
    """With lines enough for processes: constraints go there, and the lines come back in order."""
    more = ["decode.max_length=8", f"threads={threads}", "format=jsonl", "decode.n_best=2"]
    done = run(model, f"glossary={terms}", *more, content=LINES * 60)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["source"].encode() for line in found] == LINES.splitlines() * 60
    assert [len(line["terms"]) for line in found] == [2, 0, 1] * 60
    for line in found:
        for each in line["translations"]:
            words = WORD.findall(each["text"].replace("Zwei Worte", "nu"))
            assert {"Wort", "nu"} <= {*words} or line["source"] != "ka lo mi so"
            assert "KA" in words or line["source"] != "KA pe"
    assert done.stderr.decode().endswith("nmt: terms: 180 in the lines, 180 used, 0 inflected, 0 missed\n")


def test_terms_that_the_length_forbids_are_told(model, terms):  # noqa: F811
    done = run(model, f"glossary={terms}", "decode.max_length=1", content=LINES)
    assert done.stdout.count(b"\n") == 3
    assert b"1 used, 0 inflected, 2 missed: KA (1 of 1), ka (1 of 1)\n" in done.stderr


def test_hints_for_a_model_that_was_not_trained_with_them(model, terms):  # noqa: F811
    done = run(model, f"glossary={terms}", "terms=soft", content=LINES)
    assert done.returncode == 0
    assert done.stdout.count(b"\n") == 3
    assert b"nmt: terms=soft: the model was not trained with data.noise.terms" in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["glossary=missing.tsv"], "missing.tsv: No such file"),
        (["glossary=[a.tsv,b.tsv]"], "nmt translate takes one file; put all terms into it"),
        (["engine=ctranslate2"], "engine=ctranslate2: no search for given words; use engine=torch, or terms=soft"),
        (["decode.do_sample=true"], "decode.do_sample=true: no search for given words; use a beam search"),
        (["glossary=null", "terms=soft"], "terms=soft: name its file with glossary=FILE"),
        (["terms=often"], "terms=often: must be one of hard, soft"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_line(model, terms, words, said):  # noqa: F811
    refused(run(model, f"glossary={terms}", *words, content=LINES), said)


def test_a_file_goes_on_only_with_the_same_terms(model, terms, tmp_path):  # noqa: F811
    config = compose("translate", [f"run={model}", f"glossary={terms}"])
    before = what_decides(config)
    assert what_decides(config) == before
    (tmp_path / "terms.tsv").write_text(TERMS + "pe\tnu\n")
    assert what_decides(config) != before
    (tmp_path / "same.tsv").write_text(TERMS)
    assert what_decides(compose("translate", [f"run={model}", f"glossary={tmp_path / 'same.tsv'}"])) == before
