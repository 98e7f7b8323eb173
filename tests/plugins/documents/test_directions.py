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

from nmt.config import NMTError
from nmt.plugins.documents.subtitles import with_marks
from nmt.translation import Translated, read_document
from tests.helpers.pseudo import capitals, same

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
SHEETS = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"


def translated(format: str, content: bytes, source: str, target: str) -> bytes:
    """A document in capitals, with what it declares for the target language."""
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
        '<html lang="ar" dir="rtl"><p>A <code dir="ltr">-x</code></p>'
        '<pre dir="ltr">f(x);</pre><pre dir=ltr>y</pre>',
    ),
    (
        "en",
        "ar",
        "<html><p translate=no>Acme.</p><p>a <b class=notranslate>B.</b></p><pre></pre><p>b</p>",
        '<html lang="ar" dir="rtl"><p dir="ltr" translate=no>Acme.</p>'
        '<p>A <b dir="ltr" class=notranslate>B.</b></p>'
        "<pre></pre><p>B</p>",
    ),
    (
        "en",
        "ar",
        "<html><p translate=no>نص</p><p>a</p><svg><text>one</text></svg><math><mi>x</mi></math>",
        '<html lang="ar" dir="rtl"><p translate=no>نص</p>'
        '<p>A</p><svg direction="ltr"><text>one</text></svg>'
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
        "<html><p align=left style='x-direction:ltr; Direction: LTR;text-align:RIGHT'>a"
        "<td align='Right'>b",
        '<html lang="ar" dir="rtl">'
        "<p align=\"right\" style='x-direction:ltr; Direction: rtl;text-align:left'>A"
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
        '<html dir="ltr" lang="en"><p dir="ltr">A '
        '<code>x</code></p><p dir="rtl" translate=no>نص</p>',
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
        '<div><p style="direction:ltr">+1 <b>55</b></p>'
        '<p style="text-align:left">a</p><p dir=ltr>5',
        '<div dir="rtl"><p style="direction:ltr">+1 <b>55</b></p>'
        '<p dir="rtl" style="text-align:right">A</p>'
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
        '<blockquote dir="ltr" lang=fr>oui</blockquote>'
        '<p dir="rtl" lang="ar">A</p><p lang=ar>نص</p>',
    ),
    (
        "en",
        "zh_CN",
        "<p>a <a lang=fr title=b>oui</a> b<p lang='fr-CA' title=oui>oui"
        "<p>c<ul><li xml:lang=ja>はい<li>d</ul>e",
        "<p>A <a lang=fr title=b>oui</a> B<p lang='fr-CA' title=oui>oui"
        "<p>C<ul><li xml:lang=ja>はい<li>D</ul>E",
    ),
    (
        "en",
        "zh_CN",
        "<table><tr lang=fr><td>oui<td>non<tr><td>a<td lang=fr>oui</table>"
        "<select><option lang=fr>non<option>b",
        "<table><tr lang=fr><td>oui<td>non<tr><td>A<td lang=fr>oui</table>"
        "<select><option lang=fr>non<option>B",
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


@pytest.mark.parametrize(
    ("source", "notice"),
    [
        ("en", "passages declared in other languages left untranslated: 2"),
        ("", ""),
    ],
)
def test_passages_in_other_languages_are_counted(source, notice):
    page = "<p>a <i lang=fr>oui</i></p><p lang=fr>non</p><p lang=ar>نص</p><p lang=fr>12</p>"
    document = read_document("html", page.encode(), "ar", source)
    document.join(capitals(document.lines))
    assert document.notice == notice


def test_html_blocks_in_markdown_change_their_direction():
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
def test_docx_names_its_language_as_word_does(target, tag):
    body = '<w:p><w:r><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t>a</w:t></w:r></w:p>'
    assert f'w:val="{tag}"' in translated_body(body, "eng_Latn", target)


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
        ('<file original="x">', "zh_CN", ' target-language="zh-CN"'),
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
    notice = (
        f"the header declared Language: {declared}, and now declares {language}: "
        "check the translations that the file had before"
    )
    assert document.notice == (notice if has_notice else "")


STORY = "word/document.xml"


def docx_of(body: str) -> bytes:
    """A DOCX file with this body."""
    document = f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    return packed(**{STORY: document})


def translated_body(body: str, source: str, target: str) -> str:
    """The main file of a translated DOCX file with this body."""
    return files_of(translated("docx", docx_of(body), source, target))[STORY]


LETTER = """
<w:p>
  <w:pPr><w:pStyle w:val="Title"/><w:jc w:val="left"/></w:pPr>
  <w:r><w:t>one</w:t></w:r>
</w:p>
<w:p>
  <w:r><w:rPr><w:b/><w:sz w:val="40"/><w:lang w:val="en-US"/></w:rPr><w:t>two</w:t></w:r>
</w:p>
<w:p>
  <w:pPr><w:bidi w:val="0"/></w:pPr>
  <w:r><w:rPr><w:i/><w:iCs/></w:rPr><w:t>six</w:t></w:r>
</w:p>
<w:p/>
<w:tbl>
  <w:tblPr><w:tblStyle w:val="x"/><w:tblW w:w="0"/></w:tblPr>
  <w:tr><w:tc><w:p/></w:tc></w:tr>
</w:tbl>
<w:sectPr><w:cols/><w:docGrid/></w:sectPr>
"""


def names_in(tree: ElementTree.Element, path: str) -> list[list[str]]:
    """The names of the children of all elements at a path."""
    names = list[list[str]]()
    for element in tree.iterfind(path, {"w": WORD}):
        names.append([child.tag.rpartition("}")[2] for child in element])
    return names


def values_in(tree: ElementTree.Element, name: str) -> list[str | None]:
    """The values of all elements of Word with this name, None for those without one."""
    return [element.get(f"{{{WORD}}}val") for element in tree.iter(f"{{{WORD}}}{name}")]


def test_docx_turns_from_right_to_left_in_the_order_that_word_requires():
    tree = ElementTree.fromstring(translated_body(LETTER, "en", "ar"))
    assert names_in(tree, ".//w:pPr") == [
        ["pStyle", "bidi", "jc"],
        ["bidi"],
        ["bidi"],
    ]
    assert names_in(tree, ".//w:rPr") == [
        ["rtl"],
        ["b", "bCs", "sz", "szCs", "rtl", "lang"],
        ["i", "iCs", "rtl"],
    ]
    assert names_in(tree, ".//w:tblPr") == [["tblStyle", "bidiVisual", "tblW"]]
    assert names_in(tree, ".//w:sectPr") == [["cols", "bidi", "docGrid"]]


def test_docx_from_right_to_left_has_the_values_of_the_source():
    tree = ElementTree.fromstring(translated_body(LETTER, "en", "ar"))
    assert values_in(tree, "bidi") == [None, None, "1", None]
    assert values_in(tree, "szCs") == ["40"]
    language = tree.find(".//w:lang", {"w": WORD})
    assert language is not None
    assert language.attrib == {f"{{{WORD}}}val": "ar-EG", f"{{{WORD}}}bidi": "ar-EG"}


def test_docx_turns_off_its_switches_from_left_to_right():
    properties = '<w:b/><w:rtl w:val="1"/>'
    run = f"<w:r><w:rPr>{properties}</w:rPr><w:t>a</w:t></w:r>"
    body = f"<w:p><w:pPr><w:bidi/></w:pPr>{run}</w:p>"
    tree = ElementTree.fromstring(translated_body(body, "he", "en"))
    assert values_in(tree, "bidi") == ["0"]
    assert values_in(tree, "rtl") == ["0"]
    assert names_in(tree, ".//w:rPr") == [["b", "rtl"]]


def test_docx_gets_formatting_for_text_from_left_to_right():
    properties = '<w:bCs/><w:sz w:val="20"/><w:szCs w:val="36"/><w:rtl/>'
    body = f"<w:p><w:r><w:rPr>{properties}</w:rPr><w:t>a</w:t></w:r></w:p>"
    tree = ElementTree.fromstring(translated_body(body, "ar", "en"))
    assert names_in(tree, ".//w:rPr") == [["b", "bCs", "sz", "szCs", "rtl"]]


@pytest.mark.parametrize(("source", "target"), [("en", "de"), ("he", "ar")])
def test_docx_keeps_its_switches_in_the_same_direction(source, target):
    before = LETTER.replace('<w:lang w:val="en-US"/>', "")
    after = translated_body(before, source, target)
    for switch in ("bidi", "rtl", "bidiVisual", "bCs"):
        assert after.count(f"<w:{switch}") == before.count(f"<w:{switch}")


@pytest.fixture(scope="module")
def slides() -> bytes:
    """A presentation with text on several sides, a table and notes."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "one"
    frame = slide.placeholders[1].text_frame
    sides = {"two": PP_ALIGN.LEFT, "six": PP_ALIGN.CENTER, "ten": PP_ALIGN.RIGHT}
    for text, side in sides.items():
        paragraph = frame.add_paragraph()
        paragraph.text = text
        paragraph.alignment = side
    table = slide.shapes.add_table(1, 2, 0, 0, Inches(1), Inches(1)).table
    table.cell(0, 0).text = "red"
    slide.notes_slide.notes_text_frame.text = "note"
    file = io.BytesIO()
    deck.save(file)
    return file.getvalue()


def levels_in(xml: str, path: str) -> list[tuple[str | None, str | None]]:
    """The direction and the side of the styles of the first level at a path."""
    levels = ElementTree.fromstring(xml).iterfind(f"{path}{{{DRAWING}}}lvl1pPr")
    return [(level.get("rtl"), level.get("algn")) for level in levels]


def test_text_and_tables_on_slides_turn_from_right_to_left(slides):
    result = translated("pptx", slides, "en", "ar")
    slide = pptx.Presentation(io.BytesIO(result)).slides[0]
    sides = [paragraph.alignment for paragraph in slide.placeholders[1].text_frame.paragraphs]
    assert sides == [None, PP_ALIGN.RIGHT, PP_ALIGN.CENTER, PP_ALIGN.LEFT]
    assert '<a:tblPr rtl="1"' in files_of(result)["ppt/slides/slide1.xml"]


def test_styles_that_slides_inherit_turn_from_right_to_left(slides):
    files = files_of(translated("pptx", slides, "en", "ar"))
    master = levels_in(files["ppt/slideMasters/slideMaster1.xml"], ".//{*}txStyles//")
    assert master == [("1", "ctr"), ("1", "r"), ("1", "r")]
    assert levels_in(files["ppt/presentation.xml"], ".//")[0] == ("1", "r")
    notes = files["ppt/notesMasters/notesMaster1.xml"]
    assert levels_in(notes, ".//{*}notesStyle/") == [("1", "r")]


def test_styles_that_slides_inherit_turn_from_left_to_right(slides):
    arabic = translated("pptx", slides, "en", "ar")
    files = files_of(translated("pptx", arabic, "ar", "en"))
    assert levels_in(files["ppt/presentation.xml"], ".//")[0] == ("0", "l")


def test_sheets_begin_on_the_other_side():
    book = openpyxl.Workbook()
    book.active["A1"] = "one"
    book.create_sheet("numbers")["A1"] = 1
    file = io.BytesIO()
    book.save(file)

    def sides(content: bytes) -> list[bool | None]:
        sheets = openpyxl.load_workbook(io.BytesIO(content))
        return [sheet.sheet_view.rightToLeft for sheet in sheets]

    persian = translated("xlsx", file.getvalue(), "en", "fa")
    assert sides(persian) == [True, True]
    assert sides(translated("xlsx", persian, "fa", "en")) == [False, False]


def test_a_sheet_without_views_gets_one():
    name = "xl/worksheets/sheet1.xml"
    cell = '<sheetData><row><c t="inlineStr"><is><t>a</t></is></c></row></sheetData>'
    content = packed(**{name: f'<worksheet xmlns="{SHEETS}"><cols/>{cell}</worksheet>'})
    sheet = files_of(translated("xlsx", content, "en", "ar"))[name]
    view = '<sheetView rightToLeft="1" workbookViewId="0"/>'
    assert f"<sheetViews>{view}</sheetViews><cols/>" in sheet


STYLES = """
<x xmlns:style="s" xmlns:fo="f">
  <style:default-style style:family="paragraph">
    <style:paragraph-properties style:writing-mode="page"/>
  </style:default-style>
  <style:default-style style:family="graphic"><style:graphic-properties/></style:default-style>
  <style:style>
    <style:paragraph-properties fo:text-align="start" style:writing-mode="lr-tb"/>
  </style:style>
  <style:style><style:paragraph-properties fo:text-align="center"/></style:style>
  <style:style><style:paragraph-properties fo:text-align="end"/></style:style>
  <style:page-layout>
    <style:page-layout-properties style:writing-mode="lr-tb"/>
  </style:page-layout>
</x>
"""


def styles_in(content: bytes) -> list[tuple[str | None, str | None]]:
    """The direction and the side of all styles of paragraphs and pages."""
    styles = list[tuple[str | None, str | None]]()
    for element in ElementTree.fromstring(files_of(content)["styles.xml"]).iter():
        if element.tag.endswith(("paragraph-properties", "t-properties")):
            styles.append((element.get("{s}writing-mode"), element.get("{f}text-align")))
    return styles


def test_styles_of_open_document_turn_from_right_to_left_and_back():
    text = '<x xmlns:text="t"><text:p>a</text:p></x>'
    content = packed(**{"content.xml": text, "styles.xml": STYLES})
    hebrew = translated("odt", content, "en", "he")
    assert styles_in(hebrew) == [
        ("rl-tb", "right"),
        ("rl-tb", "right"),
        ("rl-tb", "right"),
        (None, "center"),
        (None, "left"),
        ("rl-tb", None),
    ]
    english = translated("odt", hebrew, "he", "en")
    modes = [mode for mode, _ in styles_in(english)]
    assert modes == ["lr-tb", "lr-tb", "lr-tb", None, None, "lr-tb"]


def test_default_styles_of_open_document_turn_from_right_to_left():
    document = Document("odt")
    document.body.append(Paragraph("one"))
    file = io.BytesIO()
    document.save(file)
    styles = files_of(translated("odt", file.getvalue(), "en", "ar"))["styles.xml"]
    assert 'style:writing-mode="lr-tb"' not in styles
    assert 'style:writing-mode="rl-tb"' in styles
    assert read_document("odt", file.getvalue()).lines


PACKAGE = (
    '<package xmlns:dc="d" xml:lang="en" dir="ltr"><dc:title xml:lang="fr">T</dc:title>'
    "<dc:language>en</dc:language>"
    '<item id="c" href="c.xhtml" media-type="text/html"/>'
    '<item id="n" href="n.ncx" media-type="application/x-dtbncx+xml"/>'
    '<spine page-progression-direction="ltr"><itemref idref="c"/></spine>'
    "</package>"
)
BOOK = {
    "META-INF/container.xml": '<x><rootfile full-path="a.opf"/></x>',
    "a.opf": PACKAGE,
    "c.xhtml": '<html lang="en" xml:lang="en"><p>one</p></html>',
    "n.ncx": '<ncx xml:lang="en"><navLabel><text>one</text></navLabel></ncx>',
}


def test_books_turn_their_pages_from_the_other_side():
    files = files_of(translated("epub", packed(**BOOK), "en", "ar"))
    assert files["c.xhtml"] == '<html dir="rtl" lang="ar" xml:lang="ar"><p>ONE</p></html>'
    assert files["n.ncx"] == '<ncx xml:lang="ar"><navLabel><text>ONE</text></navLabel></ncx>'
    package = files["a.opf"]
    opening = '<package xmlns:dc="d" xml:lang="ar" dir="rtl">'
    assert f'{opening}<dc:title xml:lang="fr">' in package
    assert '<spine page-progression-direction="rtl">' in package


def test_books_in_the_same_direction_turn_their_pages_from_the_same_side():
    package = files_of(translated("epub", packed(**BOOK), "en", "ja"))["a.opf"]
    assert '<package xmlns:dc="d" xml:lang="ja" dir="ltr">' in package
    assert '<spine page-progression-direction="ltr">' in package


@pytest.mark.parametrize("format", ["srt", "vtt"])
def test_lines_of_subtitles_begin_at_the_right_in_every_player(format):
    is_vtt = format == "vtt"
    head = "WEBVTT\n\n" if is_vtt else ""
    override = "" if is_vtt else "{\\an8}"
    times = "00:00:01.000 --> 00:00:02.000\n"
    file = head
    for text in (f"{override}one", "<i>two</i>", "<b>Linux</b> six", "ten مر"):
        file += f"{times}{text}\n\n"
    lines = ["Linux هو", "Linux مر", "Linux", "ten مر"]
    translations = [Translated(line, [(0, 0)]) for line in lines]

    arabic = read_document(format, file.encode(), "ar", "en").join(translations).decode()
    texts = arabic.removeprefix(head).replace(times, "").split("\n\n")
    assert texts[:2] == [f"{override}\u200fLinux هو", "\u200f<i>Linux مر</i>"]
    assert "\u200f" not in texts[2]
    assert texts[3] == "ten مر"

    german = read_document(format, file.encode(), "de", "en").join(translations).decode()
    assert "\u200f" not in german


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
