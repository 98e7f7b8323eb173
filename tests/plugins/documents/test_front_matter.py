"""Front matter of Markdown: chosen values are translated, and parsers read the same otherwise."""

import json
import tomllib

import pytest
import yaml
from hypothesis import given, strategies as st

from nmt.config import DocumentOptions
from nmt.plugins.documents.markdown import MarkdownConfig
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, same


def read(text: str, *keys: str):
    options = DocumentOptions(plugins={"markdown": MarkdownConfig(list(keys))})
    return read_document("markdown", text.encode(), options=options if keys else None)


def translated(text: str, *keys: str, by=capitals) -> str:
    document = read(text, *keys)
    assert document.join(same(document.lines)) == text.encode()
    return document.join(by(document.lines)).decode()


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("title: Some page # why\nweight: 1\n", "title: SOME PAGE # why\nweight: 1\n"),
        ("title: 'It''s so'\n", "title: 'IT''S SO'\n"),
        ('title: "a \\"b\\""\nid: a b\n', 'title: "A \\"B\\""\nid: a b\n'),
        ("description: >-\n  one\n  two\n\n  three\nx: 1\n", "description: >-\n  ONE TWO\n\n  THREE\nx: 1\n"),
        ("summary: |\n\n    a b\n    c\n\nx: 1\n", "summary: |\n\n    A B\n    C\n\nx: 1\n"),
        ("title: a\n  b\nx: 1\n", "title: A B\nx: 1\n"),
        ("sidebar:\n  label: a b\n  order: 1\n", "sidebar:\n  label: A B\n  order: 1\n"),
        ("hero: {tagline: a b, x: c}\n", "hero: {tagline: A B, x: c}\n"),
        ("features:\n- title: a\n  icon: b\n- title: c\n", "features:\n- title: A\n  icon: b\n- title: C\n"),
        ("link_title: a\nlinkTitle: b\n", "link_title: A\nlinkTitle: B\n"),
        ("title: a <b>c</b> {d}\n", "title: A <b>C</b> {d}\n"),
    ],
)  # fmt: skip
def test_chosen_values_of_yaml_are_translated(source, expected, end):
    source = f"---\n{source}---\n\na\n".replace("\n", end)
    assert translated(source) == f"---\n{expected}---\n\nA\n".replace("\n", end)


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("a", "yes", "'yes'"),
        ("a", "b: c", "'b: c'"),
        ("a", "b #c", "'b #c'"),
        ("a", "It's: so", '"It\'s: so"'),
        ("a", "- b", "'- b'"),
        ("a", "12", "'12'"),
        ("[a]", "b, c", "['b, c']"),
        ("'a'", "l'eau", "'l''eau'"),
        ('"a"', 'b "c" \\d', '"b \\"c\\" \\\\d"'),
    ],
)
def test_a_translation_gets_the_quotation_marks_that_it_needs(source, translation, expected):
    file = f"---\ntitle: {source}\n---\n"
    result = translated(file, "title", by=lambda lines: [Translated(translation)])
    assert result == f"---\ntitle: {expected}\n---\n"


TOML = """+++
title = "Some \\"page\\"" # why
weight = 1
summary = 'a b'
description = \"\"\"
one
two\"\"\"
tags = ["a b", "c"]
[params.hero]
tagline = "d"
+++
a
"""


def test_chosen_values_of_toml_are_translated():
    result = translated(TOML, "title", "summary", "description", "params.hero.tagline", "tags")
    before = tomllib.loads(TOML.split("+++")[1])
    after = tomllib.loads(result.split("+++")[1])
    assert after == {
        "title": 'SOME "PAGE"',
        "weight": 1,
        "summary": "A B",
        "description": "ONE\nTWO",
        "tags": ["A B", "C"],
        "params": {"hero": {"tagline": "D"}},
    }
    assert after.keys() == before.keys()
    assert '" # why\n' in result
    assert "'A B'" in result


def test_chosen_values_of_json_are_translated():
    tree = {"title": 'A "b"', "weight": 1, "hero": {"title": "c", "id": "d"}, "tags": ["e"]}
    result = translated(json.dumps(tree, indent=2) + "\nThe text\n")
    front, text = result.split("\n}\n")
    tree |= {"title": 'A "B"', "hero": {"title": "C", "id": "d"}}
    assert json.loads(front + "}") == tree
    assert text == "THE TEXT\n"


@pytest.mark.parametrize(
    ("front", "keys", "left"),
    [
        ("title: a\nseo_title: b\nslug: c d e\nname: f g\n", (), "seo_title, slug"),
        ("title: a\ndescription: b\n", ("title",), "description"),
        ("title: a\ndescription: b\n", ("other",), "title, description"),
        ("title: {{ a }} b\n", (), "title"),
    ],
)
def test_other_texts_stay_and_are_reported(front, keys, left):
    document = read(f"---\n{front}---\na\n", *keys)
    result = document.join(capitals(document.lines)).decode()
    assert document.notice == f"front matter left untranslated: {left}"
    assert ("description: b" in result) == ("description" in front)


def test_damaged_front_matter_stays():
    front = "---\nx: [\n---\n"
    document = read(f"{front}a\n")
    assert document.join(capitals(document.lines)).decode() == f"{front}A\n"
    assert document.notice == "front matter left untranslated, because it is damaged"


@pytest.mark.parametrize("content", ["---\n---\na\n", "---\n# b\n---\na\n", "---\n\na\n"])
def test_a_page_without_values_has_no_notice(content):
    document = read(content)
    assert document.lines == ["a"]
    assert document.notice == ""


NO_LINES = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1)


@given(text=NO_LINES, style=st.sampled_from(["a", "'a'", '"a"', "|\n  a", ">\n  a"]))
def test_yaml_reads_any_translation_or_the_source(text, style):
    page = f"---\ntitle: {style}\nx: 1\n---\n"
    result = translated(page, "title", by=lambda lines: [Translated(text)])
    tree = yaml.safe_load(result.removeprefix("---\n").removesuffix("---\n"))
    assert " ".join(tree["title"].split()) in (" ".join(text.split()), "a")
    assert tree["x"] == 1
