"""Readings over words (ruby).

A translation has none, because they tell how to pronounce the source.
"""

import io
import zipfile

import pytest

from nmt.translation import read_document
from tests.helpers.pseudo import capitals, same

WORD = "<ruby>base<rp>(</rp><rt>reading</rt><rp>)</rp></ruby>"
PO_HEADER = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
ROWS = [
    ("html", f"<p>{WORD}</p>", "<p>BASE</p>", 1),
    ("html", f"<p>a {WORD}, <b>b</b></p>", "<p>A BASE, <b>B</b></p>", 1),
    ("html", "<p><b><ruby>a<rt>x</ruby></b> b", "<p><b>A</b> B", 1),
    ("html", "<a><ruby><i>a</i><rt><b>x</b></rt></ruby></a>", "<a><i>A</i></a>", 1),
    ("html", "<p><ruby>設<rt>せっ</rt>定<rt>てい</rt></ruby>ab</p>", "<p>設定AB</p>", 2),
    ("html", "<ruby>設<rt>せっ</ruby><ruby>定<rt>てい</ruby>ab", "設定AB", 2),
    ("html", "<ruby><rb>a<rb>b<rt>x<rt>y<rtc><rt>z</ruby> c", "AB C", 3),
    ("html", "<ruby><rb>a</rb><rtc><rt>x</rt></rtc></ruby> c", "A C", 1),
    ("html", "<ruby><ruby>a<rt>x</rt></ruby><rt>y</rt></ruby> b", "A B", 2),
    ("html", "<table><td><ruby>a<rt>x</ruby><td>b</table>", "<table><td>A<td>B</table>", 1),
    ("html", "<RUBY>a<RP>(</RP><RT CLASS=x>x</RT><RP>)</RP></RUBY>", "A", 1),
    ("html", "a <ruby><rt>x</rt></ruby> b", "A B", 1),
    ("html", "<p><ruby>5<rt>five</rt></ruby></p>", "<p><ruby>5<rt>five</rt></ruby></p>", 0),
    ("html", f"<p translate=no>{WORD}</p><p>a", f"<p translate=no>{WORD}</p><p>A", 0),
    (
        "markdown",
        f"# {WORD}\n\na {WORD} *b*\n\n<p>{WORD}</p>\n",
        "# BASE\n\nA BASE *B*\n\n<p>BASE</p>\n",
        3,
    ),
    ("json", f'{{"a": "the {WORD} of it"}}', '{"a": "THE BASE OF IT"}', 1),
    (
        "srt",
        f"1\n00:00:01,000 --> 00:00:02,000\na {WORD}\n",
        "1\n00:00:01,000 --> 00:00:02,000\nA BASE\n",
        1,
    ),
    (
        "vtt",
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<v A>a <ruby>b<rt>x</ruby> <i>c</i>\n",
        "WEBVTT\n\n00:01.000 --> 00:02.000\n<v A>A B <i>C</i>\n",
        1,
    ),
]
"""Format, file, translation, and how many readings it lacks."""


def notice_of(count: int) -> str:
    return f"readings (ruby) left out: {count}" if count else ""


@pytest.mark.parametrize(("format", "file", "translation", "count"), ROWS)
def test_a_translation_has_the_word_without_its_reading(format, file, translation, count):
    document = read_document(format, file.encode(), "en", "ja")
    assert document.join(same(document.lines)).decode() == file
    assert document.notice == ""
    assert document.join(capitals(document.lines)).decode() == translation
    assert document.notice == notice_of(count)


def test_messages_lose_their_readings():
    message = f'msgid "a {WORD}"\n'
    catalog = f'{PO_HEADER}{message}msgstr ""\n'
    document = read_document("po", catalog.encode(), "en", "ja")
    result = document.join(capitals(document.lines)).decode()
    assert f'{PO_HEADER}#, fuzzy\n{message}msgstr "A BASE"\n' in result
    assert document.notice == notice_of(1)


@pytest.mark.parametrize(
    ("format", "name", "paragraph"),
    [
        (
            "docx",
            "word/document.xml",
            "<w:p><w:r><w:ruby>"
            "<w:rt><w:r><w:t>x</w:t></w:r></w:rt>"
            "<w:rubyBase><w:r><w:t>base</w:t></w:r></w:rubyBase>"
            "</w:ruby></w:r></w:p>",
        ),
        (
            "odt",
            "content.xml",
            "<text:p><text:ruby>"
            "<text:ruby-base>base</text:ruby-base>"
            "<text:ruby-text>x</text:ruby-text>"
            "</text:ruby></text:p>",
        ),
    ],
)
def test_office_documents_report_the_readings_that_they_lose(format, name, paragraph):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, f'<x xmlns:w="w" xmlns:text="t">{paragraph}</x>')
    document = read_document(format, file.getvalue(), "en", "ja")
    assert document.lines == ["base"]
    translation = io.BytesIO(document.join(capitals(document.lines)))
    with zipfile.ZipFile(translation) as archive:
        result = archive.read(name).decode()
    assert "BASE" in result
    assert "ruby" not in result
    assert ">x<" not in result
    assert document.notice == notice_of(1)
