"""The declared languages and directions of documents, for readers from right to left and back."""

import io
import zipfile
from xml.etree import ElementTree

import openpyxl
import pptx
import pytest
from odfdo import Document, Paragraph
from pptx.enum.text import PP_ALIGN
from pptx.util import Inches
from pseudo import capitals, same

from nmt.config import NMTError
from nmt.plugins.documents import Translated, read_document
from nmt.plugins.documents.subtitles import with_marks

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def translated(format: str, content: bytes, source: str, target: str) -> bytes:
    unchanged = read_document(format, content, "", source)
    assert unchanged.join(same(unchanged.lines)) == content
    document = read_document(format, content, target, source)
    return document.join(capitals(document.lines))


def files_of(content: bytes) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name).decode(errors="replace") for name in archive.namelist()}


def packed(**files: str) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return written.getvalue()


PAGES = [
    # Source and target language, page, and translation.
    ("en", "ar", '<html lang="en"><p>a</p></html>', '<html dir="rtl" lang="ar"><p>A</p></html>'),
    ("en", "fa", "<html dir=ltr><p>a", '<html lang="fa" dir="rtl"><p>A'),
    ("en", "he", "<html dir=LTR><p dir='ltr'>a", '<html lang="he" dir="rtl"><p dir="rtl">A'),
    (
        "en",
        "ur",
        "<html><p dir=auto>a<p dir=rtl>b",
        '<html lang="ur" dir="rtl"><p dir=auto>A<p dir=rtl>B',
    ),
    # Text that stays as it is keeps its direction.
    (
        "en",
        "ar",
        "<html><p>a <code>-x</code></p><pre>f(x);</pre><pre dir=ltr>y</pre>",
        '<html lang="ar" dir="rtl"><p>A <code dir="ltr">-x</code></p><pre dir="ltr">f(x);</pre><pre dir=ltr>y</pre>',
    ),
    (
        "en",
        "ar",
        "<html><p translate=no>Acme.</p><p>a <b class=notranslate>B.</b></p><pre></pre><p>b</p>",
        '<html lang="ar" dir="rtl"><p dir="ltr" translate=no>Acme.</p><p>A <b dir="ltr" class=notranslate>B.</b></p>'
        "<pre></pre><p>B</p>",
    ),
    (
        "en",
        "ar",
        "<html><p translate=no>نص</p><p>a</p><svg><text>one</text></svg><math><mi>x</mi></math>",
        '<html lang="ar" dir="rtl"><p translate=no>نص</p><p>A</p><svg direction="ltr"><text>one</text></svg>'
        "<math><mi>x</mi></math>",
    ),
    (
        "en",
        "ar",
        "<html><p>a <span dir=ltr>5551234</span> and <span dir=ltr>b</span>",
        '<html lang="ar" dir="rtl"><p>A <span dir=ltr>5551234</span> AND <span dir="rtl">B</span>',
    ),
    # Sides of the page
    (
        "en",
        "ar",
        "<html><p align=left style='x-direction:ltr; Direction: LTR;text-align:RIGHT'>a<td align='Right'>b",
        '<html lang="ar" dir="rtl"><p align="right" style=\'x-direction:ltr; Direction: rtl;text-align:left\'>A'
        '<td align="left">B',
    ),
    (
        "en",
        "ar",
        '<html><p>a<img align=left alt=b><p dir=rtl align=right>c<pre align="left">d</pre>',
        '<html lang="ar" dir="rtl"><p>A<img align=left alt="B"><p dir=rtl align=right>C'
        '<pre dir="ltr" align="left">d</pre>',
    ),
    # The direction of a field is that of what users enter.
    (
        "en",
        "ar",
        "<html><input dir=ltr title=a>",
        '<html lang="ar" dir="rtl"><input dir=ltr title="A">',
    ),
    ("en", "ar", "<html translate=no><p>a</p></html>", "<html translate=no><p>a</p></html>"),
    # Fragments
    (
        "en",
        "ar",
        "<h1>a</h1><ul><li>b</li></ul><hr>",
        '<h1 dir="rtl">A</h1><ul dir="rtl"><li>B</li></ul><hr>',
    ),
    ("en", "ar", "a <b>b</b>", "A <b>B</b>"),
    ("en", "ar", "<title>t</title><body><p>a", '<title>T</title><body dir="rtl"><p>A'),
    ("en", "ar", "<div dir='ltr'><p>a</p></div>", '<div dir="rtl"><p>A</p></div>'),
    # Back to the left
    (
        "ar",
        "en",
        "<html dir=rtl lang=ar-EG><p dir=rtl>a <code>x</code></p><p translate=no>نص</p>",
        '<html dir="ltr" lang="en"><p dir="ltr">A <code>x</code></p><p dir="rtl" translate=no>نص</p>',
    ),
    # Without a turn, only languages change.
    ("he", "ar", "<html dir=rtl lang=he><p lang=he>a", '<html dir=rtl lang="ar"><p lang="ar">A'),
    (
        "en",
        "zh_CN",
        "<html><p lang=en-GB>a<p dir=ltr>b",
        '<html lang="zh-CN"><p lang="zh-CN">A<p dir=ltr>B',
    ),
    (
        "en",
        "ja",
        '<?xml version="1.0"?><html xmlns="x"><p>a</p></html>',
        '<?xml version="1.0"?><html xml:lang="ja" xmlns="x"><p>A</p></html>',
    ),
    # The order of signs and digits stays.
    (
        "en",
        "ar",
        '<table dir=ltr><td dir="ltr">+1 (555) 123-4567</td><td>a</td></table>',
        '<table dir="rtl"><td dir="ltr">+1 (555) 123-4567</td><td>A</td></table>',
    ),
    (
        "en",
        "he",
        '<div><p style="direction:ltr">+1 <b>55</b></p><p style="text-align:left">a</p><p dir=ltr>5',
        '<div dir="rtl"><p style="direction:ltr">+1 <b>55</b></p><p dir="rtl" style="text-align:right">A</p>'
        "<p dir=ltr>5",
    ),
    (
        "en",
        "ar",
        "<p>a<p dir=ltr>/usr/local/bin/</p>",
        '<p dir="rtl">A<p dir=ltr>/USR/LOCAL/BIN/</p>',
    ),
    # The template of a page may declare any language.
    ("en", "ja", "<html lang=de><body lang=de><p>a", '<html lang="ja"><body lang="ja"><p>A'),
    # Passages in other languages stay, whether their closing tags are there or not.
    (
        "en",
        "ar",
        "<blockquote lang=fr>oui</blockquote><p lang=en-US>a</p><p lang=ar>نص</p>",
        '<blockquote dir="ltr" lang=fr>oui</blockquote><p dir="rtl" lang="ar">A</p><p lang=ar>نص</p>',
    ),
    (
        "en",
        "zh_CN",
        "<p>a <a lang=fr title=b>oui</a> b<p lang='fr-CA' title=oui>oui<p>c<ul><li xml:lang=ja>はい<li>d</ul>e",
        "<p>A <a lang=fr title=b>oui</a> B<p lang='fr-CA' title=oui>oui<p>C<ul><li xml:lang=ja>はい<li>D</ul>E",
    ),
    (
        "en",
        "zh_CN",
        "<table><tr lang=fr><td>oui<td>non<tr><td>a<td lang=fr>oui</table><select><option lang=fr>non<option>b",
        "<table><tr lang=fr><td>oui<td>non<tr><td>A<td lang=fr>oui</table><select><option lang=fr>non<option>B",
    ),
    ("zh_CN", "en", "<p lang=zh>a</p><p lang=zh-TW>b</p>", '<p lang="en">A</p><p lang=zh-TW>b</p>'),
    ("en", "ja", '<p lang="">a</p><p lang=x-y>b</p>', '<p lang="">A</p><p lang=x-y>B</p>'),
    ("", "ja", "<p lang=fr>a</p>", "<p lang=fr>A</p>"),
    ("", "ja", "<html lang=en><p lang=en>a", '<html lang="ja"><p lang=en>A'),
    ("en", "sr@latin", "<html lang=en><p>a", '<html lang="sr-Latn"><p>A'),
]


@pytest.mark.parametrize(("source", "target", "page", "translation"), PAGES)
def test_pages_declare_the_language_and_direction_of_their_translation(
    source, target, page, translation
):
    assert translated("html", page.encode(), source, target).decode() == translation


def test_pages_without_text_stay_as_they_are():
    page = b"<html lang=en dir=ltr><pre>x</pre></html>"
    assert translated("html", page, "en", "ar") == page


MARKDOWN = """<div dir="rtl" align="right">

# a

</div>

> <p dir=rtl>b</p>

<pre>نص</pre>
"""


def test_passages_in_other_languages_are_counted():
    page = "<p>a <i lang=fr>oui</i></p><p lang=fr>non</p><p lang=ar>نص</p><p lang=fr>12</p>"
    for source, notice in (
        ("en", "passages declared in other languages left untranslated: 2"),
        ("", ""),
    ):
        document = read_document("html", page.encode(), "ar", source)
        document.join(capitals(document.lines))
        assert document.notice == notice


def test_blocks_of_html_in_markdown_turn():
    result = translated("markdown", MARKDOWN.encode(), "ar", "en").decode()
    expected = MARKDOWN.replace('dir="rtl" align="right"', 'dir="ltr" align="left"')
    expected = expected.replace("dir=rtl", 'dir="ltr"').replace("<pre", '<pre dir="rtl"')
    assert result == expected.replace("# a", "# A").replace("b<", "B<")


@pytest.mark.parametrize(
    ("target", "tag"),
    [
        ("ja", "ja-JP"),
        ("jpn", "ja-JP"),
        ("zt", "zh-TW"),
        ("sr@latin", "sr-Latn-RS"),
        ("uz_Cyrl", "uz-Cyrl-UZ"),
    ],
)
def test_letters_name_their_language_as_word_does(target, tag):
    body = '<w:p><w:r><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t>a</w:t></w:r></w:p>'
    assert (
        f'w:val="{tag}"'
        in files_of(translated("docx", letter(body), "eng_Latn", target))["word/document.xml"]
    )


UNIT = "<body><trans-unit><source>a</source></trans-unit></body>"


@pytest.mark.parametrize(
    ("file", "target", "declared"),
    [
        ('<file source-language="en" original="x">', "zh_CN", ' target-language="zh-CN"'),
        (
            '<file source-language="en" target-language="zh-Hans">',
            "zh_CN",
            ' target-language="zh-Hans"',
        ),
        ('<file source-language="en-us" target-language="">', "zh_CN", ' target-language="zh-CN"'),
        ('<file original="x">', "zh_CN", ""),
        ('<file source-language="en">', "", ""),
    ],
)
def test_exchanged_files_declare_their_target_language(file, target, declared):
    content = f'<xliff version="1.2">{file}{UNIT}</file></xliff>'
    document = read_document("xliff", content.encode(), target, "en")
    result = document.join(capitals(document.lines)).decode()
    assert "<target" in result
    assert result.count(" target-language=") == bool(declared)
    assert declared in result


@pytest.mark.parametrize(
    ("declared", "problem"),
    [
        ('source-language="de"', r'source-language="de", but the model has English \(en\)'),
        ('source-language="en" target-language="fr"', r"use a model for French \(fr\), or change"),
        ('source-language="en" target-language="zh-TW"', 'target-language="zh-TW", but'),
    ],
)
def test_files_for_other_languages_than_the_model_are_refused(declared, problem):
    files = f'<file source-language="en">{UNIT}</file>\n<file {declared}>{UNIT}</file>'
    content = f'<xliff version="1.2">{files}</xliff>'.encode()
    with pytest.raises(NMTError, match=f"line 2: declares .*{problem}"):
        read_document("xliff", content, "zh_CN", "en")
    assert read_document("xliff", content).lines


CATALOG = """msgid ""
msgstr ""
"Language: {}\\n"
"Content-Type: text/plain; charset=UTF-8\\n"

msgid "a"
msgstr ""
"""


@pytest.mark.parametrize(
    ("declared", "source", "target", "language", "has_notice"),
    [
        ("", "en", "ar", "ar", False),
        ("en_US", "en", "zh_Hant", "zh_TW", False),
        ("English", "en", "pt-BR", "pt_BR", False),
        ("ar_EG", "en", "ar", "ar_EG", False),
        ("fr", "en", "sr-Latn", "sr@latin", True),
        ("sr", "en", "sr@latin", "sr", False),
        ("fr", "", "uz_Cyrl", "uz@cyrillic", True),
        ("fr", "en", "eng_Latn", "en", True),
        ("fr", "en", "", "fr", False),
        ("", "en", "Arabic", "ar", False),
        ("", "en", "xx", "xx", False),
    ],
)
def test_catalogs_declare_the_language_of_their_translation(
    declared, source, target, language, has_notice
):
    document = read_document("po", CATALOG.format(declared).encode(), target, source)
    result = document.join(capitals(document.lines)).decode()
    assert f'"Language: {language}\\n"' in result
    assert document.notice == has_notice * (
        f"the header declared Language: {declared}, and now declares {language}: "
        "check the translations that the file had before"
    )


def letter(body: str) -> bytes:
    return packed(
        **{
            "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
        }
    )


LETTER = """<w:p><w:pPr><w:pStyle w:val="Title"/><w:jc w:val="left"/></w:pPr><w:r><w:t>one</w:t></w:r></w:p>
<w:p><w:r><w:rPr><w:b/><w:sz w:val="40"/><w:lang w:val="en-US"/></w:rPr><w:t>two</w:t></w:r></w:p>
<w:p><w:pPr><w:bidi w:val="0"/></w:pPr><w:r><w:rPr><w:i/><w:iCs/></w:rPr><w:t>six</w:t></w:r></w:p><w:p/>
<w:tbl><w:tblPr><w:tblStyle w:val="x"/><w:tblW w:w="0"/></w:tblPr><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>
<w:sectPr><w:cols/><w:docGrid/></w:sectPr>"""


def names_in(tree: ElementTree.Element, path: str) -> list[list[str]]:
    """The names of the children of all elements at a path."""
    found = tree.iterfind(path, {"w": WORD})
    return [[child.tag.rpartition("}")[2] for child in element] for element in found]


def test_letters_turn_to_the_right_in_the_order_that_word_requires():
    result = files_of(translated("docx", letter(LETTER), "en", "ar"))["word/document.xml"]
    tree = ElementTree.fromstring(result)
    assert names_in(tree, ".//w:pPr") == [["pStyle", "bidi", "jc"], ["bidi"], ["bidi"]]
    assert names_in(tree, ".//w:rPr") == [
        ["rtl"],
        ["b", "bCs", "sz", "szCs", "rtl", "lang"],
        ["i", "iCs", "rtl"],
    ]
    assert names_in(tree, ".//w:tblPr") == [["tblStyle", "bidiVisual", "tblW"]]
    assert names_in(tree, ".//w:sectPr") == [["cols", "bidi", "docGrid"]]
    assert [element.get(f"{{{WORD}}}val") for element in tree.iter(f"{{{WORD}}}bidi")] == [
        None,
        None,
        "1",
        None,
    ]
    assert tree.find(".//w:szCs", {"w": WORD}).get(f"{{{WORD}}}val") == "40"
    assert tree.find(".//w:lang", {"w": WORD}).attrib == {
        f"{{{WORD}}}val": "ar-EG",
        f"{{{WORD}}}bidi": "ar-EG",
    }


def test_letters_turn_back_to_the_left():
    body = '<w:p><w:pPr><w:bidi/></w:pPr><w:r><w:rPr><w:b/><w:rtl w:val="1"/></w:rPr><w:t>a</w:t></w:r></w:p>'
    result = files_of(translated("docx", letter(body), "he", "en"))["word/document.xml"]
    tree = ElementTree.fromstring(result)
    values = {
        name: tree.find(f".//w:{name}", {"w": WORD}).get(f"{{{WORD}}}val")
        for name in ("bidi", "rtl")
    }
    assert values == {"bidi": "0", "rtl": "0"}
    assert names_in(tree, ".//w:rPr") == [["b", "rtl"]]
    properties = '<w:bCs/><w:sz w:val="20"/><w:szCs w:val="36"/><w:rtl/>'
    body = f"<w:p><w:r><w:rPr>{properties}</w:rPr><w:t>a</w:t></w:r></w:p>"
    result = files_of(translated("docx", letter(body), "ar", "en"))["word/document.xml"]
    assert names_in(ElementTree.fromstring(result), ".//w:rPr") == [
        ["b", "bCs", "sz", "szCs", "rtl"]
    ]


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("he", "ar")])
def test_letters_in_the_same_direction_keep_it(source, target):
    before = files_of(letter(LETTER.replace('<w:lang w:val="en-US"/>', "")))["word/document.xml"]
    after = files_of(translated("docx", letter(before), source, target))["word/document.xml"]
    for switch in ("bidi", "rtl", "bidiVisual", "bCs"):
        assert after.count(f"<w:{switch}") == before.count(f"<w:{switch}")


def test_slides_turn_to_the_right():
    deck, file = pptx.Presentation(), io.BytesIO()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "one"
    frame = slide.placeholders[1].text_frame
    for text, side in (("two", PP_ALIGN.LEFT), ("six", PP_ALIGN.CENTER), ("ten", PP_ALIGN.RIGHT)):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.alignment = text, side
    slide.shapes.add_table(1, 2, 0, 0, Inches(1), Inches(1)).table.cell(0, 0).text = "red"
    slide.notes_slide.notes_text_frame.text = "note"
    deck.save(file)
    result = translated("pptx", file.getvalue(), "en", "ar")
    slide = pptx.Presentation(io.BytesIO(result)).slides[0]
    sides = [paragraph.alignment for paragraph in slide.placeholders[1].text_frame.paragraphs]
    assert sides == [None, PP_ALIGN.RIGHT, PP_ALIGN.CENTER, PP_ALIGN.LEFT]
    files = files_of(result)
    assert '<a:tblPr rtl="1"' in files["ppt/slides/slide1.xml"]
    master = ElementTree.fromstring(files["ppt/slideMasters/slideMaster1.xml"])
    inherited = [*master.iterfind(f".//{{*}}txStyles//{{{DRAWING}}}lvl1pPr")]
    assert [(style.get("rtl"), style.get("algn")) for style in inherited] == [
        ("1", "ctr"),
        ("1", "r"),
        ("1", "r"),
    ]
    usual = ElementTree.fromstring(files["ppt/presentation.xml"]).find(f".//{{{DRAWING}}}lvl1pPr")
    assert (usual.get("rtl"), usual.get("algn")) == ("1", "r")
    notes = ElementTree.fromstring(files["ppt/notesMasters/notesMaster1.xml"])
    levels = notes.iterfind(f".//{{*}}notesStyle/{{{DRAWING}}}lvl1pPr")
    assert [(level.get("rtl"), level.get("algn")) for level in levels] == [("1", "r")]
    back = files_of(translated("pptx", result, "ar", "en"))
    usual = ElementTree.fromstring(back["ppt/presentation.xml"]).find(f".//{{{DRAWING}}}lvl1pPr")
    assert (usual.get("rtl"), usual.get("algn")) == ("0", "l")


def test_tables_begin_at_the_right():
    book, file = openpyxl.Workbook(), io.BytesIO()
    book.active["A1"] = "one"
    book.create_sheet("numbers")["A1"] = 1
    book.save(file)
    result = translated("xlsx", file.getvalue(), "en", "fa")
    assert [
        sheet.sheet_view.rightToLeft for sheet in openpyxl.load_workbook(io.BytesIO(result))
    ] == [True, True]
    back = translated("xlsx", result, "fa", "en")
    assert [sheet.sheet_view.rightToLeft for sheet in openpyxl.load_workbook(io.BytesIO(back))] == [
        False,
        False,
    ]
    cell = '<sheetData><row><c t="inlineStr"><is><t>a</t></is></c></row></sheetData>'
    without_view = packed(
        **{"xl/worksheets/sheet1.xml": f'<worksheet xmlns="{SHEETS}"><cols/>{cell}</worksheet>'}
    )
    sheet = files_of(translated("xlsx", without_view, "en", "ar"))["xl/worksheets/sheet1.xml"]
    assert (
        '<sheetViews><sheetView rightToLeft="1" workbookViewId="0"/></sheetViews><cols/>' in sheet
    )


STYLES = """<x xmlns:style="s" xmlns:fo="f"><style:default-style style:family="paragraph">
<style:paragraph-properties style:writing-mode="page"/></style:default-style>
<style:default-style style:family="graphic"><style:graphic-properties/></style:default-style>
<style:style><style:paragraph-properties fo:text-align="start" style:writing-mode="lr-tb"/></style:style>
<style:style><style:paragraph-properties fo:text-align="center"/></style:style>
<style:style><style:paragraph-properties fo:text-align="end"/></style:style>
<style:page-layout><style:page-layout-properties style:writing-mode="lr-tb"/></style:page-layout></x>"""


def test_open_documents_turn_to_the_right_and_back():
    content = packed(
        **{"content.xml": '<x xmlns:text="t"><text:p>a</text:p></x>', "styles.xml": STYLES}
    )

    def properties(content: bytes) -> list[tuple[str | None, str | None]]:
        elements = ElementTree.fromstring(files_of(content)["styles.xml"]).iter()
        found = [
            element
            for element in elements
            if element.tag.endswith(("paragraph-properties", "t-properties"))
        ]
        return [(element.get("{s}writing-mode"), element.get("{f}text-align")) for element in found]

    result = translated("odt", content, "en", "he")
    assert properties(result) == [
        ("rl-tb", "right"),
        ("rl-tb", "right"),
        ("rl-tb", "right"),
        (None, "center"),
        (None, "left"),
        ("rl-tb", None),
    ]
    modes = [mode for mode, _ in properties(translated("odt", result, "he", "en"))]
    assert modes == ["lr-tb", "lr-tb", "lr-tb", None, None, "lr-tb"]


def test_a_new_open_document_turns_to_the_right():
    document, file = Document("odt"), io.BytesIO()
    document.body.append(Paragraph("one"))
    document.save(file)
    styles = files_of(translated("odt", file.getvalue(), "en", "ar"))["styles.xml"]
    assert 'style:writing-mode="lr-tb"' not in styles
    assert 'style:writing-mode="rl-tb"' in styles
    assert read_document("odt", file.getvalue()).lines


BOOK = {
    "META-INF/container.xml": '<x><rootfile full-path="a.opf"/></x>',
    "a.opf": '<package xmlns:dc="d" xml:lang="en" dir="ltr"><dc:title xml:lang="fr">T</dc:title>'
    "<dc:language>en</dc:language>"
    '<item id="c" href="c.xhtml" media-type="text/html"/><item id="n" href="n.ncx" '
    'media-type="application/x-dtbncx+xml"/><spine page-progression-direction="ltr"><itemref idref="c"/></spine>'
    "</package>",
    "c.xhtml": '<html lang="en" xml:lang="en"><p>one</p></html>',
    "n.ncx": '<ncx xml:lang="en"><navLabel><text>one</text></navLabel></ncx>',
}


def test_books_turn_their_pages_from_the_other_side():
    files = files_of(translated("epub", packed(**BOOK), "en", "ar"))
    assert files["c.xhtml"] == '<html dir="rtl" lang="ar" xml:lang="ar"><p>ONE</p></html>'
    assert files["n.ncx"] == '<ncx xml:lang="ar"><navLabel><text>ONE</text></navLabel></ncx>'
    assert (
        '<package xmlns:dc="d" xml:lang="ar" dir="rtl"><dc:title xml:lang="fr">' in files["a.opf"]
    )
    assert '<spine page-progression-direction="rtl">' in files["a.opf"]
    same_side = files_of(translated("epub", packed(**BOOK), "en", "ja"))
    assert '<package xmlns:dc="d" xml:lang="ja" dir="ltr">' in same_side["a.opf"]
    assert '<spine page-progression-direction="ltr">' in same_side["a.opf"]


@pytest.mark.parametrize("format", ["srt", "vtt"])
def test_lines_of_subtitles_begin_at_the_right_in_every_player(format):
    head = "WEBVTT\n\n" if format == "vtt" else ""
    override = "" if format == "vtt" else "{\\an8}"
    times = "00:00:01.000 --> 00:00:02.000\n"
    file = "".join(
        f"{times}{text}\n\n"
        for text in (f"{override}one", "<i>two</i>", "<b>Linux</b> six", "ten مر")
    )
    lines = ["Linux هو", "Linux مر", "Linux", "ten مر"]
    document = read_document(format, f"{head}{file}".encode(), "ar", "en")
    translations = [Translated(line, [(0, 0)]) for line in lines]
    result = document.join(translations).decode()
    texts = result.removeprefix(head).replace(times, "").split("\n\n")
    assert texts[:2] == [f"{override}\u200fLinux هو", "\u200f<i>Linux مر</i>"]
    assert texts[3] == "ten مر"
    assert "\u200f" not in texts[2]
    assert (
        "\u200f"
        not in read_document(format, f"{head}{file}".encode(), "de", "en")
        .join(translations)
        .decode()
    )


@pytest.mark.parametrize(
    ("line", "is_marked"),
    [
        ("<v Ann>مر", False),
        ("<v Ann>Linux مر", True),
        ("<c.yellow>مر</c> Linux", False),
        ("<lang en>مر", False),
        ("<00:00:01.000>مر", False),
        ("&amp; مر", False),
        ("<i>مر</i>", False),
        ('<font color="red">مر</font>', False),
        ("{\\an8}<i>مر", False),
        ("{\\an8}<i>Linux مر", True),
        ("a <b مر", True),
    ],
)
def test_markup_does_not_count_for_the_direction_of_a_subtitle(line, is_marked):
    file = f"WEBVTT\n\n00:01.000 --> 00:02.000\n{line}\n"
    assert ("\u200f" in with_marks(file, "")) == is_marked
