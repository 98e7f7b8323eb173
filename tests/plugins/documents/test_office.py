"""Office documents besides their paragraphs: alternative texts, properties, languages, and what is left."""

import io
import sys
import zipfile
from xml.etree import ElementTree

import openpyxl
import pptx
import pytest
from openpyxl.comments import Comment
from pptx.util import Inches
from pseudo import capitals, same

from nmt.plugins.documents import read_document

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
NAMES = f"""xmlns:w="{WORD}" xmlns:a="a" xmlns:wp="wp" xmlns:pic="pic" xmlns:v="v" xmlns:dc="dc" xmlns:cp="cp"
 xmlns:text="text" xmlns:draw="draw" xmlns:svg="svg" xmlns:style="style" xmlns:fo="fo" xmlns:office="office"
 xmlns:table="table" xmlns:meta="meta" """
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
    "a5f645400000000049454e44ae426082"
)


def packed(files: dict[str, str]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return written.getvalue()


def translated(
    format: str, content: bytes, source: str = "", target: str = ""
) -> tuple[dict[str, str], list[str], str]:
    """The files of the translation, the lines, and the notice."""
    unchanged = read_document(format, content)
    assert unchanged.join(same(unchanged.lines)) == content
    document = read_document(format, content, target, source)
    with zipfile.ZipFile(io.BytesIO(document.join(capitals(document.lines)))) as archive:
        files = {name: archive.read(name).decode(errors="replace") for name in archive.namelist()}
    return files, document.lines, document.notice


PICTURE = """<w:p><w:r><w:t>One</w:t></w:r><w:r><w:drawing><wp:inline><wp:docPr id="1" name="P 1" title="a title"
 descr="red &amp; &quot;blue&quot;&#xA;ball"/><a:graphic><pic:cNvPr id="0" name="x.png" descr='a dog'/></a:graphic>
</wp:inline></w:drawing></w:r><w:r><w:pict><v:shape id="s" alt="a cat"/></w:pict></w:r><w:r><w:t>two</w:t></w:r></w:p>
<w:tbl><w:tblPr><w:tblCaption w:val="a table"/><w:tblDescription w:val="of x"/></w:tblPr></w:tbl>"""


def test_alternative_texts_of_a_letter_are_translated():
    content = f"<w:body {NAMES}>{PICTURE}</w:body>"
    files, lines, notice = translated("docx", packed({"word/document.xml": content}))
    assert lines == ["a title", 'red & "blue" ball', "a dog", "a cat", "a table", "of x", "One two"]
    root, before = map(ElementTree.fromstring, (files["word/document.xml"], content))
    read = ("descr", "title", "alt", f"{{{WORD}}}val")
    values = [value for element in root.iter() for name, value in element.attrib.items() if name in read]
    assert values == ["A TITLE", 'RED & "BLUE"\nBALL', "A DOG", "A CAT", "A TABLE", "OF X"]
    assert "".join(root.itertext()).split() == ["ONE", "TWO"]
    assert [element.get("name") for element in root.iter()] == [element.get("name") for element in before.iter()]
    assert notice == ""


def test_alternative_texts_of_slides_and_their_language():
    deck, file = pptx.Presentation(), io.BytesIO()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "One"
    run = slide.shapes.title.text_frame.paragraphs[0].runs[0]
    run.font.language_id = pptx.enum.lang.MSO_LANGUAGE_ID.ENGLISH_UK
    other = slide.shapes.title.text_frame.paragraphs[0].add_run()
    other.text, other.font.language_id, other.font.bold = " deux", pptx.enum.lang.MSO_LANGUAGE_ID.FRENCH, True
    picture = slide.shapes.add_picture(io.BytesIO(PNG), 0, 0, Inches(1))
    picture._element.nvPicPr.cNvPr.set("descr", "a picture")
    deck.core_properties.title, deck.core_properties.keywords = "my slides", "a, b"
    deck.save(file)
    document = read_document("pptx", file.getvalue(), "de", "en")
    result = pptx.Presentation(io.BytesIO(document.join(capitals(document.lines))))
    shapes = result.slides[0].shapes
    assert shapes[2]._element.nvPicPr.cNvPr.get("descr") == "A PICTURE"
    runs = [(run.text.strip(), run._r.rPr.get("lang")) for run in shapes.title.text_frame.paragraphs[0].runs]
    assert [run for run in runs if run[0]] == [("ONE", "de-DE"), ("DEUX", "fr-FR")]
    assert (result.core_properties.title, result.core_properties.keywords) == ("MY SLIDES", "a, b")
    assert document.notice == "keywords left untranslated: 1"


def test_what_a_table_leaves_is_counted():
    book, file = openpyxl.Workbook(), io.BytesIO()
    sheet = book.active
    sheet.title = "Data"
    sheet["A1"], sheet["A2"], sheet["A3"] = "Yes", "one", '=IF(A1="Yes",1,2)'
    sheet["A2"].comment = Comment("a comment", "Bob")
    sheet.oddHeader.center.text = "a header"
    book.properties.subject = "a subject"
    book.save(file)
    document = read_document("xlsx", file.getvalue(), "de", "en")
    result = openpyxl.load_workbook(io.BytesIO(document.join(capitals(document.lines))))
    assert [result["Data"][cell].value for cell in ("A1", "A2")] == ["Yes", "ONE"]
    assert result.properties.subject == "A SUBJECT"
    assert sorted(document.notice.split("; ")) == [
        "cell texts that formulas, filters or table headers contain left untranslated: 1",
        "comments left untranslated: 1",
        "headers and footers of sheets left untranslated: 1",
        "sheet names left untranslated: 1",
    ]


FRAME = """<text:p>One <draw:frame draw:name="F"><draw:image/><svg:title>a title</svg:title>
<svg:desc>a &amp; b</svg:desc></draw:frame>two</text:p>"""
META = """<x {0}><dc:title>my text</dc:title><meta:keyword>a key</meta:keyword>
<dc:language>{1}</dc:language></x>"""


def test_alternative_texts_and_properties_of_open_document():
    note = "<text:p>x<office:annotation><text:p>why</text:p></office:annotation></text:p>"
    content = f"<x {NAMES}>{FRAME}{note}</x>"
    files = {"content.xml": content, "meta.xml": META.format(NAMES, "en-GB")}
    result, lines, notice = translated("odt", packed(files), "en", "de")
    assert sorted(lines) == ["One two", "a & b", "a title", "my text", "x"]
    expected = content
    for word in ("One", "two", "a title", "a &amp; b", ">x<"):
        expected = expected.replace(word, word.upper().replace("AMP", "amp"))
    assert result["content.xml"] == expected
    assert result["meta.xml"] == META.format(NAMES, "de-DE").replace("my text", "MY TEXT")
    assert sorted(notice.split("; ")) == ["comments left untranslated: 1", "keywords left untranslated: 1"]


@pytest.mark.parametrize(("codes", "before", "after"), [
    (("en", "de"), 'w:val="en-US" w:eastAsia="zh-CN"', 'w:val="de-DE" w:eastAsia="zh-CN"'),
    (("en", "de_AT"), "w:val='en'", "w:val='de-AT'"),
    (("en", "de"), 'w:val="fr-FR"', 'w:val="fr-FR"'),
    (("en", "de"), 'w:val="enm"', 'w:val="enm"'),
    (("en", ""), 'w:val="en-US"', 'w:val="en-US"'),
    (("en", "xx-unknown"), 'w:val="en-US"', 'w:val="en-US"'),
    (("", "de"), 'w:val="en-US"', 'w:val="en-US"'),
    (("eng_Latn", "deu_Latn"), 'w:val="en-US"', 'w:val="de-DE"'),
    (("en", "ja"), 'w:val="en-US" w:eastAsia="zh-CN"', 'w:val="ja-JP" w:eastAsia="ja-JP"'),
    (("en", "zh_Hant"), 'w:val="en-US"', 'w:val="zh-TW" w:eastAsia="zh-TW"'),
    (("en", "ar"), 'w:val="en-US" w:bidi="he-IL"', 'w:val="ar-EG" w:bidi="ar-EG"'),
    (("ja", "de"), 'w:val="en-US" w:eastAsia="ja-JP"', 'w:val="de-DE" w:eastAsia="ja-JP"'),
    (("ja", "de"), 'w:eastAsia="ja-JP"', 'w:eastAsia="ja-JP" w:val="de-DE"'),
])  # fmt: skip
def test_a_letter_declares_the_language_of_its_translation(codes, before, after):
    run = f"<w:r><w:rPr><w:lang {before}/></w:rPr><w:t>one</w:t></w:r>"
    styles = f"<w:styles {NAMES}><w:lang {before}/></w:styles>"
    content = packed({"word/document.xml": f"<w:p {NAMES}>{run}</w:p>", "word/styles.xml": styles})
    files, _, _ = translated("docx", content, *codes)
    assert files["word/styles.xml"] == styles.replace(before, after)
    assert f"<w:lang {after}/>" in files["word/document.xml"]
    assert ">ONE<" in files["word/document.xml"]


@pytest.mark.parametrize(("target", "before", "after"), [
    ("de", 'fo:language="en" fo:country="US"', 'fo:language="de" fo:country="DE"'),
    ("de", 'fo:language="fr" fo:country="FR"', 'fo:language="fr" fo:country="FR"'),
    ("de", 'fo:language="en"', 'fo:language="de" fo:country="DE"'),
    ("eo", 'fo:language="en" fo:country="GB"', 'fo:language="eo" fo:country="001"'),
    ("ko", 'fo:language="en" fo:country="US" style:language-asian="zh" style:country-asian="CN"',
     'fo:language="ko" fo:country="KR" style:language-asian="ko" style:country-asian="KR"'),
    ("he", 'fo:language="en" fo:country="US"',
     'fo:language="he" fo:country="IL" style:language-complex="he" style:country-complex="IL"'),
])  # fmt: skip
def test_open_document_declares_the_language_of_its_translation(target, before, after):
    styles = f"<x {NAMES}><style:text-properties {before} fo:color='red'/></x>"
    content = packed({"content.xml": f"<x {NAMES}><text:p>one</text:p></x>", "styles.xml": styles})
    result = ElementTree.fromstring(translated("odt", content, "en", target)[0]["styles.xml"])
    expected = ElementTree.fromstring(f"<x {NAMES}><y {after} fo:color='red'/></x>")
    assert result[0].attrib == expected[0].attrib


def book(roots: int = 1, description: str = "a book", more: str = "") -> bytes:
    chapter = '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
    package = f"<package {NAMES}><dc:title>my book</dc:title><dc:description>{description}</dc:description>{more}"
    return packed({
        "META-INF/container.xml": "<rootfiles>" + '<rootfile full-path="a.opf"/>' * roots + "</rootfiles>",
        "a.opf": f'{package}<manifest>{chapter}</manifest><spine><itemref idref="c"/></spine></package>',
        "c.xhtml": "<html><p>one</p></html>",
    })  # fmt: skip


@pytest.mark.parametrize(("description", "lines", "expected"), [
    ("Tom &amp; me", ["Tom & me"], "TOM &amp; ME"),
    ("&lt;p&gt;a &lt;b&gt;red&lt;/b&gt;&lt;/p&gt;&lt;p&gt;cat&lt;/p&gt;", ["a red", "cat"],
     "&lt;p&gt;A &lt;b&gt;RED&lt;/b&gt;&lt;/p&gt;&lt;p&gt;CAT&lt;/p&gt;"),
    ("<![CDATA[<p>x &amp; y</p>]]>", ["x & y"], "&lt;p&gt;X &amp;amp; Y&lt;/p&gt;"),
])  # fmt: skip
def test_the_description_of_a_book_is_translated_and_its_subjects_are_not(description, lines, expected):
    content = book(description=description, more="<dc:subject>Fiction</dc:subject>")
    files, found, _ = translated("epub", content)
    assert found == ["my book", *lines, "one"]
    assert f"<dc:description>{expected}</dc:description><dc:subject>Fiction<" in files["a.opf"]


def test_a_package_that_is_listed_often_is_read_once():
    def calls(roots: int) -> int:
        events = list[str]()
        content = book(roots)
        sys.setprofile(lambda frame, event, argument: events.append(event))
        try:
            read_document("epub", content)
        finally:
            sys.setprofile(None)
        return len(events)

    # Each `rootfile` costs some calls, but reading the package again would cost hundreds.
    assert calls(500) - calls(100) < 400 * 60
