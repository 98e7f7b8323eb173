"""`glossary=` of `nmt translate`: files, reports, and what it refuses."""

import json

import pytest

from nmt.commands import compose
from nmt.plugins.protection.terms import WORD
from nmt.translation import what_decides

TERMS = "ka\tWort\nlo mi\tnu\nlo mi\tZwei Worte\nKA\tKA\tcase\n"
LINES = "ka lo mi so\nnothing\nKA pe\n"


@pytest.fixture
def terms(tmp_path) -> str:
    (tmp_path / "in").write_text(LINES * 60)
    (tmp_path / "terms.tsv").write_text(TERMS)
    return str(tmp_path / "terms.tsv")


def test_terms_are_in_the_translations_and_in_the_report(nmt, checkpoint, terms):
    more = ["decode.max_length=8", "format=jsonl", "decode.n_best=2"]
    done = nmt("translate", checkpoint, "in", f"glossary={terms}", *more)
    records = [json.loads(line) for line in done.out.splitlines()]
    assert [line["source"] for line in records] == LINES.splitlines() * 60
    assert [len(line["terms"]) for line in records] == [2, 0, 1] * 60
    for line in records:
        for translation in line["translations"]:
            words = WORD.findall(translation["text"].replace("Zwei Worte", "nu"))
            assert {"Wort", "nu"} <= {*words} or line["source"] != "ka lo mi so"
            assert "KA" in words or line["source"] != "KA pe"
    assert "glossary" not in done.err


def test_terms_that_the_length_forbids_are_reported(nmt, checkpoint, terms):
    done = nmt("translate", checkpoint, "in", f"glossary={terms}", "decode.max_length=1")
    assert "line 1: no translation of 'ka' from the glossary" in done.err
    assert done.err.endswith("120 lines lack a translation that the glossary requires (format=jsonl names it)\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["glossary=missing.tsv"], "missing.tsv: No such file"),
        (["engine=ctranslate2"], "engine=ctranslate2 supports no glossary"),
        (["decode.do_sample=true"], "decode.do_sample=true supports no glossary"),
    ],
    ids=str,
)
def test_what_cannot_be_is_refused_in_one_line(nmt, checkpoint, terms, words, message):
    words = words if words[0].startswith("glossary") else [f"glossary={terms}", *words]
    nmt("translate", checkpoint, "in", *words).refused(message)


def test_a_file_is_resumed_only_with_the_same_terms(checkpoint, terms, tmp_path):
    config = compose("translate", [f"run={checkpoint}", f"glossary={terms}"])
    before = what_decides(config)
    (tmp_path / "terms.tsv").write_text(TERMS + "pe\tnu\n")
    assert what_decides(config) != before
    (tmp_path / "same.tsv").write_text(TERMS)
    assert what_decides(compose("translate", [f"run={checkpoint}", f"glossary={tmp_path / 'same.tsv'}"])) == before
