"""YAML files with texts, compared with PyYAML, which reads files as a whole."""

import pytest
import yaml

from nmt.errors import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, pseudo

LOCALE = r"""# A comment: stays
en: # another
  plain: Open the file # here
  symbol: :year
  number: 12
  answer: "yes"
  anchor: &shared 'It''s shared'
  alias: *shared
  double: "%{count} caf\u00e9s\tand\n\"more\""
  url: https://example.org/a
  date:
    formats:
      default: "%Y-%m-%d"
      long: "%d de %B"
    order: [":year", ":month"]
    day_names: [~, Monday, Tuesday]
  text_html: <b>Bold</b> text
  literal: |
    First line
      indented line

    last line
  kept: |+
    Some text

  folded: >-
    These words are
    in one line

    and these follow
  files:
    zero: no files
    one: one file # a comment
    other: "%{count} files"
"""
UNCHANGED = ("symbol", "number", "url", "formats", "order")


def uppercase(value, key=""):
    """The expected value: all text in capitals, apart from placeholders and tags."""
    if key in UNCHANGED:
        return value
    if isinstance(value, dict):
        return {name: uppercase(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [uppercase(item) for item in value]
    if not isinstance(value, str):
        return value
    upper = value.upper().replace("%{COUNT}", "%{count}")
    return upper.replace("<B>", "<b>").replace("</B>", "</b>")


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_only_texts_change(line_end: str):
    text = LOCALE.replace("\n", line_end)
    document = read_document("rails", text.encode())
    result = document.join(capitals(document.lines)).decode()
    assert yaml.safe_load(result) == uppercase(yaml.safe_load(text))
    assert result.count(line_end) == text.count(line_end)
    for mark in ("# A comment: stays", "&shared 'IT''S", "*shared", "|+", ">-", r"CAF\u00c9S"):
        assert mark in result
    assert document.notice.endswith("formats of dates and numbers, left unchanged: 1")
    assert read_document("rails", text.encode()).join(same(document.lines)) == text.encode()


def same(lines: list[str]) -> list[Translated]:
    return [Translated(line) for line in lines]


@pytest.mark.parametrize(
    ("target", "root"),
    [("de", "de"), ("pt_BR", "pt-BR"), ("deu_Latn", "de"), ("no", '"no"')],
)
def test_the_root_becomes_the_target_language(target: str, root: str):
    document = read_document("rails", b"en:\n  a: Some text\n", target, "en")
    assert document.join([Translated("Text")]).decode() == f"{root}:\n  a: Text\n"


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("files:\n    one: a file # c\n    other: some files # d", ["one", "other", "few", "many"]),
        ("files: {one: a file, other: some files}", ["one", "other", "few", "many"]),
        (
            "files:\n    other: >\n      some files\n    one: a file",
            ["other", "one", "few", "many"],
        ),
        ("files:\n    one: a file\n    few: b c\n    other: d e\n  x: y z", None),
        ("files:\n    one: a file\n    title: other files", []),
    ],
)
def test_plural_forms_that_the_target_lacks_are_added(text: str, forms: list[str] | None):
    text = f"en:\n  {text}\n"
    document = read_document("rails", text.encode(), "pl", "en")
    result = yaml.safe_load(document.join(capitals(document.lines)))["pl"]["files"]
    source = yaml.safe_load(text)["en"]["files"]
    expected = ["one", "few", "other", "many"] if forms is None else forms or list(source)
    assert list(result) == expected
    for form, translation in result.items():
        assert translation == source.get(form, source.get("other", "")).upper()


@pytest.mark.parametrize(
    "translation",
    [
        "a: b",
        "yes",
        "12",
        "# no",
        "- x",
        "[x]",
        "x #y",
        "'x'",
        '"',
        "null",
        "x:",
        "{a}",
        "*a",
        "é\x85",
    ],
)
@pytest.mark.parametrize("notation", ["{}", "'{}'", '"{}"', "[{}]", "|\n  {}", ">\n  {}"])
def test_any_translation_is_read_as_text(notation: str, translation: str):
    text = f"a: {notation.format('Some text')}\n"
    document = read_document("yaml", text.encode())
    # A translator returns one line, in which other white space is a space.
    expected = " ".join(translation.split())
    result = yaml.safe_load(document.join([Translated(translation)]))["a"]
    assert result in (expected, [expected], f"{expected}\n")


def test_other_yaml_is_translated_on_request():
    text = "title: A page\nitems:\n- {name: One thing, size: 3}\n"
    with pytest.raises(NMTError, match="pass format=yaml"):
        read_document("rails", text.encode())
    lines, result, _ = pseudo("yaml", text)
    assert lines == ["A page", "One thing"]
    assert yaml.safe_load(result) == {
        "title": "A PAGE",
        "items": [{"name": "ONE THING", "size": 3}],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("en:\n  a: [b\n", "line 3: not valid YAML"),
        ("fr:\n  a: b c\n", r"line 1: its root key declares French \(fr\), but the model"),
        ("de:\n  a: b c\n", r"German \(de\), the language of the translation"),
        ("a: " + "[" * 300, "line 1: nested more than 200 levels deep"),
    ],
)
def test_damaged_files_and_other_languages_are_errors(text: str, message: str):
    with pytest.raises(NMTError, match=message):
        read_document("yaml", text.encode(), "de", "en")


def test_a_string_without_its_placeholder_stays_and_is_counted():
    text = 'en:\n  a: "Delete %s now"\n'
    document = read_document("rails", text.encode())
    assert document.join([Translated("Löschen")]).decode() == text
    assert (
        document.notice
        == "strings left untranslated because the translation lost their placeholders: 1"
    )


def test_values_for_the_code_of_rails_stay():
    text = """en:
  date:
    order: [year, month]
    prompts: {year: Year}
  number:
    format: {round_mode: default, delimiter: x}
    currency: {format: {unit: EUR, negative_format: -%u a}}
    human: {storage_units: {units: {kb: KB, byte: Byte}}, decimal_units: {units: {million: Million}}}
"""
    lines, _, notice = pseudo("rails", text)
    assert lines == ["Year", "Byte", "Million"]
    assert notice.endswith("left unchanged: 7")
