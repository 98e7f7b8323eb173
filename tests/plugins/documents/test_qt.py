"""Qt Linguist's catalogs."""

import shutil
import subprocess
from xml.etree import ElementTree

import pytest

from nmt.errors import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, same

BEFORE = '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n<TS version="2.1" language="de">\n'
BEFORE += "<context>\n    <name>Main</name>\n"
AFTER = "\n</context>\n</TS>\n"


def translated(
    messages: str, target: str = "de", by=capitals, before: str = BEFORE
) -> tuple[list[str], str, str]:
    """The lines of a catalog, its messages with their translations, and the notice."""
    before = before.replace('"de"', f'"{target}"')
    document = read_document("qt", f"{before}{messages}{AFTER}".encode(), target, "en")
    result = document.join(by(document.lines)).decode()
    ElementTree.fromstring(result)
    again = read_document("qt", result.encode(), target, "en")
    assert again.join(by(again.lines)).decode() == result
    return document.lines, result.removeprefix(before).removesuffix(AFTER), document.notice


def message(source: str, translation: str = "", attributes: str = ' type="unfinished"') -> str:
    return (
        "    <message>\n"
        '        <location filename="a.cpp" line="1"/>\n'
        f"        <source>{source}</source>\n"
        "        <comment>A comment</comment>\n"
        "        <extracomment>Another</extracomment>\n"
        f"        <translation{attributes}>{translation}</translation>\n"
        "    </message>"
    )


MESSAGES = """
Open file | OPEN FILE
Say &quot;hi&quot; | SAY &quot;HI&quot;
It&apos;s %1 of %L2 | IT&apos;S %1 OF %L2
&amp;Open | &amp;OPEN
E&amp;xit now | &amp;EXIT NOW
R&amp;D now | R&amp;D NOW
&lt;b&gt;Big&lt;/b&gt; cat | &lt;b&gt;BIG&lt;/b&gt; CAT
&lt;p&gt;One&lt;/p&gt;&lt;p&gt;Two&lt;/p&gt; | &lt;p&gt;ONE&lt;/p&gt;&lt;p&gt;TWO&lt;/p&gt;
Hi <byte value="x1b"/> you | HI <byte value="x1b"/> YOU
""".strip("\n").splitlines()


@pytest.mark.parametrize("row", MESSAGES)
def test_unfinished_messages_are_translated(row):
    source, expected = row.split(" | ")
    lines, result, notice = translated(message(source))
    assert (bool(lines), notice) == (True, "")
    assert result == message(source, expected)


def test_white_space_stays():
    assert translated(message(" One\nTwo\n"))[1] == message(" One\nTwo\n", " ONE\nTWO\n")


@pytest.mark.parametrize("content", [message("One\ntwo"), message("%n cats\n%n dogs")])
@pytest.mark.parametrize("is_plural", [False, True])
def test_line_ends_of_windows_stay(content, is_plural):
    if is_plural:
        content = content.replace("<message>", '<message numerus="yes">')
    before, expected = translated(content)[:2]
    source = f"{BEFORE}{content}{AFTER}".replace("\n", "\r\n")
    document = read_document("qt", source.encode(), "de", "en")
    assert document.lines == before
    result = document.join(capitals(document.lines)).decode()
    assert result == f"{BEFORE}{expected}{AFTER}".replace("\n", "\r\n")


def test_text_that_does_not_change_keeps_its_bytes():
    source = "E&amp;xit &#34;now&#34;"
    assert translated(message(source), by=same)[1] == message(source, source)


@pytest.mark.parametrize(
    ("attributes", "translation", "left"),
    [
        (' type="unfinished"', "Alt", ""),
        ("", "Fertig", ""),
        ("", "", "messages left untranslated because they are finished without a translation: 1"),
        (' type="obsolete"', "", ""),
        (' type="vanished"', "", ""),
        (
            ' type="unfinished" variants="yes"',
            "<lengthvariant></lengthvariant>",
            "messages left untranslated because they have variants of several lengths: 1",
        ),
    ],
)
def test_other_messages_stay(attributes, translation, left):
    content = message("Open file", translation, attributes)
    assert translated(content) == ([], content, left)


def test_an_empty_tag_is_opened():
    source = message("One").replace("></translation>", "/>")
    assert translated(source)[1] == message("One", "ONE")


def plural(*forms: str) -> str:
    lines = [f"\n            <numerusform>{form}</numerusform>" for form in forms]
    inside = "".join(lines) + "\n        "
    return message("%n file(s)", inside).replace("<message>", '<message numerus="yes">')


NEW = "%n FILE(S)"


@pytest.mark.parametrize(
    ("target", "number"),
    [
        ("ja", 1),
        ("tr", 1),
        ("de", 2),
        ("pt-BR", 2),
        ("ru", 3),
        ("pl", 3),
        ("sl", 4),
        ("cy", 5),
        ("ar", 6),
    ],
)
def test_plural_forms(target, number):
    expected = plural(*[NEW] * number)
    for content in (plural(), plural(""), plural(*[""] * number)):
        assert translated(content, target) == (["%n file(s)"], expected, "")


def test_existing_plural_forms_stay():
    assert translated(plural("Eine", ""))[1] == plural("Eine", NEW)
    assert translated(plural("Eine"))[1] == plural("Eine", NEW)
    assert translated(plural("a", "b", "c"))[1] == plural("a", "b", "c")


def test_a_message_that_would_lose_a_placeholder_stays():
    content = message("Open %1 now")
    _, result, notice = translated(content, by=lambda lines: [Translated("Jetzt!")])
    assert result == content
    assert notice == "messages left untranslated because the translation lost their placeholders: 1"


def test_messages_without_words_are_counted():
    content = message("%1 (%2)")
    assert translated(content) == ([], content, "messages without words left untranslated: 1")


@pytest.mark.parametrize(
    ("target", "code"), [("de", "de"), ("pt-BR", "pt_BR"), ("zh_Hant", "zh_Hant")]
)
def test_a_missing_language_is_declared(target, code):
    document = read_document("qt", b'<TS version="2.1"></TS>', target, "en")
    assert document.join([]).decode() == f'<TS version="2.1" language="{code}"></TS>'


def test_refused_files():
    for content, problem in (
        (b'<TS language="fr"></TS>', 'line 1: declares language="fr", but the model has German'),
        (b'<TS sourcelanguage="fr"></TS>', 'line 1: declares sourcelanguage="fr"'),
        (b"<a/>", "not a Qt catalog"),
        (b"const x = 1;", "line 1: not well-formed XML"),
    ):
        with pytest.raises(NMTError) as error:
            read_document("qt", content, "de", "en")
        assert str(error.value).startswith(problem)


def test_icons_are_not_taken_for_bytes():
    content = message('Hi \ue100 <byte value="x1b"/>')
    lines, result, notice = translated(content)
    assert (lines, result) == ([], content)
    assert notice == "messages left untranslated because nmt cannot parse them: 1"


@pytest.mark.skipif(not shutil.which("lrelease"), reason="needs lrelease of Qt")
def test_qt_compiles_a_translation(tmp_path):
    content = "\n".join([message("Open &amp;file"), message('Hi <byte value="x1b"/>'), plural()])
    _, result, _ = translated(content)
    file = tmp_path / "a.ts"
    file.write_text(f"{BEFORE}{result}{AFTER}")
    command = ["lrelease", str(file), "-qm", str(tmp_path / "a.qm")]
    output = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "3 translation(s) (0 finished and 3 unfinished)" in output.stdout
    assert output.stderr == ""
