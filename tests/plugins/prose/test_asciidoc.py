"""AsciiDoc: only text changes, and its structure stays."""

import pytest

from nmt.config import NMTError
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import pseudo
from tests.plugins.prose.test_rst import turned, without_blanks

BLOCKS = [
    ("= Title\nMe Myself <me@x.org>\nv1.0\n:toc:\n\nText.\n", "Title Text."),
    ("== Part\n\nOne\ntwo.\n", "Part One two."),
    ("Part\n----\n\nOne.\n", "Part One."),
    ("* one\n** two\n. three\n- [x] four\n", "one two three four"),
    ("***** one\n****** two\n******* three\n...... four\n", "one two three four"),
    ("* one\n+\n----\ncode\n----\n+\nmore\n", "one more"),
    ("term:: A text.\nother::\n  Its text.\n", "term A text. other Its text."),
    ("NOTE: A text.\n\n[TIP]\n====\nInside.\n====\n", "A text. Inside."),
    (".Below\n[source,java]\n----\ncode\n----\n<1> A text.\n", "Below A text."),
    ("....\ncode\n....\n++++\ncode\n++++\n////\ncode\n////\n", ""),
    (" literal\n\nText.\n\n[listing]\ncode\n", "Text."),
    ("// comment\ninclude::x.adoc[]\nifdef::y[]\nText.\nendif::[]\n", "Text."),
    (":name: value\n:description: A text\n", "A text"),
    ("image::a.png[A text,300]\n", "A text"),
    ("[[id]]\n[quote,Me]\n____\nText.\n____\n'''\n<<<\n", "Text."),
    ("|===\n|One |two\n\n2+^|Three\na|* four\nl|code\n|===\n", "One two Three four"),
    ('[cols="1,l"]\n|===\n|One |code\n|===\n', "One"),
    ("[verse]\nOne\ntwo\n", "One two"),
    ("[%hardbreaks]\nOne\ntwo\n", "One two"),
]


@pytest.mark.parametrize(("source", "words"), BLOCKS)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_blocks(source, words, newline):
    source = source.replace("\n", newline)
    lines, result, _ = pseudo("asciidoc", source)
    assert " ".join(lines) == words
    for line in words.split():
        source = source.replace(line, line.upper(), 1) if line.islower() else source
    assert result.lower() == source.lower()


INLINES = [
    ("*one* two `code` x", "X `code` TWO *ONE*"),
    ("see <<id,the text>> now", "NOW <<id,TEXT THE>> SEE"),
    ("see xref:a.adoc#b[the text] now", "NOW xref:a.adoc#b[TEXT THE] SEE"),
    ("see https://x.y[the text] now", "NOW https://x.y[TEXT THE] SEE"),
    ("see https://x.y[the text^] now", "NOW https://x.y[TEXT THE^] SEE"),
    ("see {url-a}{url-b} now", "NOW {url-a}{url-b} SEE"),
    ("see {name} and kbd:[Ctrl] now", "NOW kbd:[Ctrl] AND {name} SEE"),
    ("a textfootnote:[Its note.] b", "B TEXTfootnote:[NOTE. ITS] A"),
    ("an image:x.png[icon text] b", "image:x.png[TEXT ICON] B AN"),
]


@pytest.mark.parametrize(("source", "expected"), INLINES)
def test_inline_markup(source, expected):
    assert pseudo("asciidoc", source, turned)[1] == expected


def test_letters_beside_code():
    assert pseudo("asciidoc", "see `x` now", without_blanks)[1] == "SEE``x``NOW"


def test_hard_line_breaks_stay():
    assert pseudo("asciidoc", "One +\ntwo\n")[1] == "ONE +\nTWO\n"
    source = "One three +\r\ntwo four\r\nfive.\r\n"
    assert pseudo("asciidoc", source)[1:] == (source.upper(), "")


BRACKETS = [
    ("The (((a, b))) is (open).", "Die (offen).", "Die ( (((a, b))) offen)."),
    ("The cat (((a, b))) is", "Die (Katze)", "Die (Katze(((a, b))) )"),
]


@pytest.mark.parametrize(("source", "translation", "expected"), BRACKETS)
def test_index_terms_are_apart_from_brackets(source, translation, expected):
    document = read_document("asciidoc", source.encode())
    result = document.join([Translated(translation, [(0, 0), (1, 1)])]).decode()
    assert result == expected
    assert document.notice == ""


@pytest.mark.parametrize("beginning", ["* x", "1. x", ".x", "== x", "// x", "NOTE: x"])
def test_a_paragraph_stays_a_paragraph(beginning):
    document = read_document("asciidoc", b"Text here.\n")
    assert document.join([Translated(beginning)]).decode() == f"{{empty}}{beginning}\n"


@pytest.mark.parametrize(
    ("reference", "anchor"),
    [
        ("<<_quick_start>>", "[[_quick_start]]"),
        ("xref:quick-start[x]", "[[quick-start]]"),
        ("<<Quick start>>", "[[_quick_start,Quick start]]"),
    ],
)
def test_references_to_titles_resolve(reference, anchor):
    result = pseudo("asciidoc", f"== Quick start\n\n{reference}\n")[1]
    assert result.startswith(f"{anchor}\n== QUICK START\n\n")


def test_lines_that_are_sentences_stay_lines():
    assert pseudo("asciidoc", "One is.\nTwo is.\n")[0] == ["One is.", "Two is."]


def test_what_stays_is_counted():
    source = ",===\na,b\n,===\n\nifdef::x[Text]\n"
    assert pseudo("asciidoc", source) == (
        [],
        source,
        "tables left untranslated: 1; texts in conditions left untranslated: 1",
    )


HOSTILE = ["* ", "*a ", "`a ", "<<a", "xref:a[", "ab:[", "{a", "[.a]#", "((a", "|", "^a", "====\n"]


@pytest.mark.slow
@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_files_take_linear_time(piece):
    text = piece * (20_000 // len(piece))
    for form in (text, text.replace(" ", "\n"), f"|===\n{text}\n|===\n"):
        try:
            document = read_document("asciidoc", form.encode())
        except NMTError:
            continue
        assert document.join([Translated(line) for line in document.lines]) == form.encode()
