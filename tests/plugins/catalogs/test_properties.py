"""Java properties: what Java reads in a translation, and what stays unchanged."""

import re

import pytest

from nmt.errors import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, pseudo


def values_as_java_reads(text: str) -> dict[str, str]:
    """The keys and values of a file, by the rules of java.util.Properties.load.

    Character by character, unlike the pattern of the format.
    """
    lines = iter(text.splitlines())
    result = {}
    for line in lines:
        line = line.lstrip(" \t\f")
        if not line or line[0] in "#!":
            continue
        while len(line) - len(line.rstrip("\\")) & 1:
            line = line[:-1] + next(lines, "").lstrip(" \t\f")
        end = next((n for n, sign in signs_of(line) if sign in "=: \t\f"), len(line))
        rest = line[end:].lstrip(" \t\f")
        rest = rest[1:].lstrip(" \t\f") if rest[:1] in ("=", ":") else rest
        result[unescaped(line[:end])] = unescaped(rest)
    return result


def signs_of(line: str):
    """The characters of a line that no backslash precedes, with their places."""
    number = 0
    while number < len(line):
        if line[number] == "\\":
            number += 2
        else:
            yield number, line[number]
            number += 1


def unescaped(text: str) -> str:
    text = re.sub(r"\\u(....)", lambda escape: f"\\{chr(int(escape[1], 16))}", text)
    return re.sub(r"\\(.)", lambda e: {"n": "\n", "t": "\t"}.get(e[1], e[1]), text)


FILE = r"""# A comment: not translated
! another = comment
title = Open the file
empty=
path:/etc/hosts
class    org.example.Main
key\ with\:signs \
    = Some text, \
    on two lines\n\
    and more
escaped=caf\u00e9 time\: now
	indented = \ leading space
count=42
last=No line break at the end"""


def test_a_translation_has_the_keys_and_comments_of_its_file():
    _, result, notice = pseudo("properties", FILE)
    source = values_as_java_reads(FILE)
    kept = ("empty", "path", "class", "count")
    expected = {key: text if key in kept else text.upper() for key, text in source.items()}
    assert values_as_java_reads(result) == expected
    assert len(expected) == 9
    assert not notice
    assert result.splitlines()[:2] == FILE.splitlines()[:2]
    # The style of escapes and the places of line breaks stay.
    assert r"escaped=CAF\u00c9 TIME\: NOW" in result
    assert "LINES\\n\\\n    AND MORE\n" in result


@pytest.mark.parametrize(
    ("content", "translation", "expected"),
    [
        (b"a=key", "Schlüssel", rb"a=Schl\u00fcssel"),
        (b"a=key", "\U0001f511", rb"a=\ud83d\udd11"),
        ("a=clé".encode(), "Schlüssel", "a=Schlüssel".encode()),
        ("a=clé".encode("latin-1"), "Schlüssel", "a=Schlüssel".encode("latin-1")),
        ("a=clé".encode("latin-1"), "ключ", rb"a=\u043a\u043b\u044e\u0447"),
        ("# é\na=cl\\u00e9".encode(), "Ü", "# é\na=\\u00dc".encode()),
    ],
    ids=["ASCII", "beyond U+FFFF", "UTF-8", "Latin-1", "not in Latin-1", "escapes"],
)
def test_the_encoding_stays(content: bytes, translation: str, expected: bytes):
    document = read_document("properties", content)
    assert document.join([Translated(translation)]) == expected


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        # In a message with arguments, an apostrophe begins a quotation.
        ("The file {0}", "L'image \U0010e000{0}\U0010e000", "L''image {0}"),
        ("Can''t open {0}", "L'image \U0010e000{0}\U0010e000", "L''image {0}"),
        ("is ''{0}''", "est '\U0010e000{0}\U0010e000'", "est ''{0}''"),
        # Without arguments, programs do not parse the message.
        ("The file", "L'image", "L'image"),
        ("Can''t open it", "L'image", "L''image"),
        # The program does not follow the rules of MessageFormat.
        ("Can't open {0}", "L'image \U0010e000{0}\U0010e000", "L'image {0}"),
        # The model adds a brace, so the message stays.
        ("The file {0}", "} \U0010e000{0}\U0010e000", "The file {0}"),
    ],
)
def test_apostrophes_of_message_format(source: str, translation: str, expected: str):
    document = read_document("properties", f"a={source}".encode())
    assert document.join([Translated(translation)]).decode() == f"a={expected}"


def test_arguments_stay_even_if_the_model_loses_them():
    document = read_document("properties", b"a=Delete {0,number,integer} of {1} files")
    result = document.join([Translated("Dateien", [(2, 0)])]).decode()
    assert sorted(re.findall(r"\{.*?\}", result)) == ["{0,number,integer}", "{1}"]


def test_a_lost_directive_and_a_choice_stay_and_are_counted():
    text = "a=Delete %s now\nb={0,choice,0#no files|1#one file}\n"
    document = read_document("properties", text.encode())
    assert document.join([Translated("Löschen")]).decode() == text
    assert "lost their placeholders: 1" in document.notice
    assert "cannot parse their ICU syntax: 1" in document.notice


def test_a_damaged_escape_is_an_error_with_its_line():
    with pytest.raises(NMTError, match=r"line 3: \\u needs four hexadecimal digits"):
        read_document("properties", b"a=b\nc=d \\\n  e\\u12 f\n")


def test_long_lines_are_wrapped_as_in_the_source():
    text = "a = The first words \\\n    of a text\nb = c d\n"
    document = read_document("properties", text.encode())
    lines = capitals(document.lines)
    assert document.join(lines).decode() == text.replace(text[4:-8], text[4:-8].upper()).replace(
        "c d", "C D"
    )


def test_a_pair_of_escapes_is_one_character():
    lines, result, _ = pseudo("properties", r"a=go \ud83d\ude00 home")
    assert lines == ["go 😀 home"]
    assert result == r"a=GO \ud83d\ude00 HOME"
