"""Fluent files: what fluent.syntax reads in a translation, and what stays unchanged."""

import pytest
from fluent.syntax import FluentParser, FluentSerializer, ast

from nmt.errors import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, pseudo

FILE = """# A comment
### A group

-brand = Firefox
    .gender = masculine
hello = Hello, { $name }!
about = About { -brand(case: "upper") } and { DATETIME($date, month: "long") }
    .title = A { hello } title
    .accesskey = A
multi =
    The first line <b>is bold</b>
    and the second follows

    A third one.
braces = Literal { "{" } brace
files = There { $count ->
    [0] are no files
    [one] is one file
   *[other] are { NUMBER($count) } files
  } here.
platform = { PLATFORM() ->
    [windows] Settings
   *[other] Preferences
}
key-url = https://example.org/a
"""


def texts_of(node: ast.BaseNode) -> list[str]:
    """The words of all texts below a node, in order."""
    words = []
    for value in vars(node).values():
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.TextElement):
                words += child.value.split()
            elif isinstance(child, ast.BaseNode):
                words += texts_of(child)
    return words


def structure(text: str) -> str:
    """The canonical form of a file in capitals, apart from white space."""
    return " ".join(FluentSerializer().serialize(FluentParser().parse(text)).upper().split())


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_only_texts_change(line_end: str):
    text = FILE.replace("\n", line_end)
    document = read_document("fluent", text.encode())
    assert document.join([Translated(line) for line in document.lines]) == text.encode()
    result = document.join(capitals(document.lines)).decode()
    assert structure(result) == structure(FILE)
    assert result.count(line_end) == text.count(line_end)
    # Names of variables, functions and messages keep their case.
    resource = FluentParser().parse(result.replace("\r\n", "\n"))
    words = [
        word
        for entry in resource.body
        if isinstance(entry, ast.Message)
        for word in texts_of(entry)
    ]
    assert [word for word in words if word.upper() != word] == [
        "<b>IS",
        "BOLD</b>",
        "https://example.org/a",
    ]
    for code in ("{ $name }!", '{ -brand(case: "upper") }', "{ PLATFORM() ->", ".accesskey = A"):
        assert code in result
    assert document.notice == (
        "terms, such as names of products, left untranslated: 1; "
        "keyboard shortcuts and styles left unchanged: 1"
    )


def test_plural_forms_that_the_target_lacks_are_added():
    document = read_document("fluent", FILE.encode(), "pl", "en")
    result = document.join(capitals(document.lines)).decode()
    added = (
        "[few] ARE { NUMBER($count) } FILES\n   [many] ARE { NUMBER($count) } FILES\n   *[other]"
    )
    assert added in result
    again = read_document("fluent", result.encode(), "pl", "en")
    assert again.join(capitals(again.lines)).decode() == result
    # The variants of a platform are no plural forms.
    assert result.count("[few]") == 1


@pytest.mark.parametrize(
    ("text", "translation", "expected"),
    [
        ("a = Some text", "{x}", 'a = {"{"}x{"}"}'),
        ("a = Some text", ".b = c", "a = .b = c"),
        # In a new line, these signs would begin an attribute or a variant: the text stays.
        ("a =\n    Some text", ".b = c", "a =\n    Some text"),
        ("a =\n    Some text", "[x] y", "a =\n    Some text"),
        ("a =\n    Some text", "Text", "a =\n    Text"),
    ],
)
def test_signs_of_fluent_in_a_translation(text: str, translation: str, expected: str):
    document = read_document("fluent", f"{text}\n".encode())
    assert document.join([Translated(translation)]).decode() == f"{expected}\n"
    is_refused = expected == text
    assert ("lost their placeholders: 1" in document.notice) is is_refused


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<#if user??>\n${user}\n</#if>\n", "line 1: not Fluent, but a template of FreeMarker"),
        ("a = b\nc = { $d\ne = f\n", 'line 3: not valid Fluent .Expected token: "}"'),
        ("a = " + "{" * 10_000, "nested too deeply"),
        ("a = " + "{ $n ->\n *[a] " * 30 + "b" + "\n}" * 30 + "\n", "nested more than 20 levels"),
    ],
)
def test_other_files_are_errors(text: str, message: str):
    with pytest.raises(NMTError, match=message):
        read_document("fluent", text.encode())


def test_a_selector_is_a_placeholder_in_its_sentence():
    lines, _, _ = pseudo("fluent", FILE)
    assert "There \U0010e000{$count}\U0010e000 here." in lines
    assert "is one file" in lines
