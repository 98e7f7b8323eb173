"""Message catalogs: every line besides the translations stays as it is."""

import shutil
import subprocess

import pytest

from nmt.errors import NMTError
from nmt.translation import Translated, read_document

LONG = "word " * 30
# polib would wrap long lines, drop empty comments and order comments by their kind.
CATALOG = rf"""# A license, {LONG}

#  indented
#
msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\nLanguage: en\n"
"Plural-Forms: nplurals=2; plural=n != 1;\n"

#. For translators: {LONG}
#.
#.   an indented example
#: a-file.c:1 {"another/file.c:20 " * 9}
# A comment of a translator: {LONG}
#: b.c
msgid "one"
msgstr ""

#: c.c:3
#, python-brace-format, no-wrap
#| msgid "{{}} {LONG}"
msgctxt "here"
msgid ""
"Language: {{}}.\n"
"More."
msgstr ""


# Two messages without a blank line between them.
msgid "two"
msgid_plural "twos"
msgstr[0] ""
msgstr[1] ""
#.
msgid "three"
msgstr "{LONG}"
# A comment
#,
msgid "four"
msgstr ""
#~ # obsolete
#~ msgid "five"
#~ msgstr "{LONG}"

#~| msgid "{LONG}"
#~ msgid "six"
#~ msgstr ""

# {LONG}
msgid "seven"
msgstr ""
"""
CHANGES = {
    'msgid "one"\nmsgstr ""': '#, fuzzy\nmsgid "one"\nmsgstr "ONE"',
    "#, python-brace-format, ": "#, fuzzy, python-brace-format, ",
    '"More."\nmsgstr ""': '"More."\nmsgstr ""\n"LANGUAGE: {}.\\n"\n"MORE."',
    '[0] ""\nmsgstr[1] ""': '[0] "TWO"\nmsgstr[1] "TWOS"',
    'msgid "two"': '#, fuzzy\nmsgid "two"',
    '#,\nmsgid "four"\nmsgstr ""': '#, fuzzy\nmsgid "four"\nmsgstr "FOUR"',
    'msgid "seven"\nmsgstr ""': '#, fuzzy\nmsgid "seven"\nmsgstr "SEVEN"',
    "Language: en\\": "Language: de\\",
}
"""What a translation into capitals changes in the catalog."""


def translated(catalog: str, target: str = "") -> str:
    document = read_document("po", catalog.encode(), source="en", target=target)
    return document.join([Translated(line.upper()) for line in document.lines]).decode()


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n", "\n\n# the end"])
def test_only_translations_flags_and_the_language_change(line_end, last):
    catalog = CATALOG.rstrip("\n") + last
    expected = catalog
    for old, new in CHANGES.items():
        assert expected.count(old) == 1
        expected = expected.replace(old, new)
    assert translated(catalog.replace("\n", line_end), "de") == expected.replace("\n", line_end)


MESSAGE = 'msgid "a"\nmsgstr ""\n'
TRANSLATED_MESSAGE = '#, fuzzy\nmsgid "a"\nmsgstr "A"\n'


def test_a_catalog_may_lack_a_header():
    assert translated(MESSAGE) == TRANSLATED_MESSAGE


def test_a_header_may_be_the_last_entry():
    header = '\nmsgid ""\nmsgstr ""\n"Language: en\\n"\n'
    result = translated(MESSAGE + header, "de")
    assert result == TRANSLATED_MESSAGE + header.replace("en", "de")


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="needs GNU gettext")
@pytest.mark.parametrize(
    ("catalog", "line"),
    [
        ('msgid "a"\nmsgstr ""\n\nmsgid "b"\n', 4),
        ('msgid "a"\nmsgid_plural "b"', 2),
        ('msgid "a"\n# c\nmsgstr ""\n', 2),
        ('msgid "a"\n#~ msgstr ""\n', 2),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n#.\nmsgstr[1] ""\n', 5),
        ('msgid "a"\nmsgstr ""\n#.\n"b"\n', 4),
    ],
)
def test_what_msgfmt_rejects_is_an_error(catalog, line):
    with pytest.raises(NMTError, match=f"damaged: line {line} "):
        translated(catalog)
    command = ["msgfmt", "-o", "/dev/null", "-"]
    assert subprocess.run(command, input=catalog.encode(), capture_output=True).returncode == 1


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="needs GNU gettext")
@pytest.mark.parametrize(
    ("catalog", "line"),
    [
        ('msgid "one\nmsgstr ""\n', 1),
        ('msgid "a"\nmsgstr ""\n\nmsgid ""\n"one\nmsgstr ""\n', 5),
        ('msgid "a"\nmsgstr "\n', 2),
        ('msgid "a\\"\nmsgstr ""\n', 1),
    ],
)
def test_an_unclosed_string_is_an_error_with_its_line(catalog, line):
    with pytest.raises(NMTError, match=f"^line {line}: a string without a closing quotation mark$"):
        translated(catalog)
    command = ["msgfmt", "-o", "/dev/null", "-"]
    assert subprocess.run(command, input=catalog.encode(), capture_output=True).returncode == 1


@pytest.mark.parametrize(
    ("catalog", "line"),
    [
        ('msgid "one" msgstr ""\n', 1),
        ('msgid "one" "two"\nmsgstr ""\n', 1),
        ('msgid "one"\nmsgstr ""\n"" ""\n', 3),
        ('msgid "one" "two" msgstr[0]""', 1),
    ],
)
def test_several_strings_on_a_line_are_an_error_with_advice(catalog, line):
    with pytest.raises(NMTError, match=f"^line {line}: more than one keyword or string .*msgcat"):
        read_document("po", catalog.encode())


@pytest.mark.parametrize("kind", ["perl", "java", "sh", "object-pascal"])
def test_a_line_break_is_no_format_directive(kind):
    catalog = f'#, {kind}-format\nmsgid "go ->\\nnext page"\nmsgstr ""\n'
    document = read_document("po", catalog.encode())
    # The model translates the word after the line break.
    result = document.join([Translated("weiter -> Seite", [(0, 0), (1, 1), (3, 2)])]).decode()
    assert 'msgstr ""\n"weiter ->\\n"\n"Seite"' in result
    assert not document.notice


def test_a_line_break_may_be_part_of_a_directive_of_lisp():
    catalog = '#, lisp-format\nmsgid "go ~\\nnext page"\nmsgstr ""\n'
    document = read_document("po", catalog.encode())
    result = document.join([Translated("weiter ~ Seite", [(0, 0), (1, 1), (3, 2)])]).decode()
    assert result == catalog
    assert "lost their format directives: 1" in document.notice
