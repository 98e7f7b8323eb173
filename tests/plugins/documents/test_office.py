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

from nmt.items import COPY
from nmt.translation import read_document
from tests.helpers.pseudo import capitals, same

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
    values = [
        value for element in root.iter() for name, value in element.attrib.items() if name in read
    ]
    assert values == ["A TITLE", 'RED & "BLUE"\nBALL', "A DOG", "A CAT", "A TABLE", "OF X"]
    assert "".join(root.itertext()).split() == ["ONE", "TWO"]
    assert [element.get("name") for element in root.iter()] == [
        element.get("name") for element in before.iter()
    ]
    assert notice == ""


def test_alternative_texts_of_slides_and_their_language():
    deck, file = pptx.Presentation(), io.BytesIO()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "One"
    run = slide.shapes.title.text_frame.paragraphs[0].runs[0]
    run.font.language_id = pptx.enum.lang.MSO_LANGUAGE_ID.ENGLISH_UK
    other = slide.shapes.title.text_frame.paragraphs[0].add_run()
    other.text, other.font.language_id, other.font.bold = (
        " deux",
        pptx.enum.lang.MSO_LANGUAGE_ID.FRENCH,
        True,
    )
    picture = slide.shapes.add_picture(io.BytesIO(PNG), 0, 0, Inches(1))
    picture._element.nvPicPr.cNvPr.set("descr", "a picture")
    deck.core_properties.title, deck.core_properties.keywords = "my slides", "a, b"
    deck.save(file)
    document = read_document("pptx", file.getvalue(), "de", "en")
    result = pptx.Presentation(io.BytesIO(document.join(capitals(document.lines))))
    shapes = result.slides[0].shapes
    assert shapes[2]._element.nvPicPr.cNvPr.get("descr") == "A PICTURE"
    runs = [
        (run.text.strip(), run._r.rPr.get("lang"))
        for run in shapes.title.text_frame.paragraphs[0].runs
    ]
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
    assert sorted(notice.split("; ")) == [
        "comments left untranslated: 1",
        "keywords left untranslated: 1",
    ]


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
def test_the_description_of_a_book_is_translated_and_its_subjects_are_not(
    description, lines, expected
):
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


SHAPE = "<p:sp><p:nvPr>{0}</p:nvPr><a:p><a:r><a:t>{1}</a:t></a:r></a:p></p:sp>"
MASTER = SHAPE.format("<p:ph type='title'/>", "Click here") + SHAPE.format("", "A slogan")
BOOK = """<workbook><sheets/><definedName name='_xlnm.Print_Area'>A!$A$1</definedName>
<definedName name='Tax'>A!$A$1</definedName></workbook>"""
VALIDATION = """<worksheet><dataValidation prompt='Pick it' error="1"/><dataValidation sqref="A1">
<formula1>"Red,Green"</formula1></dataValidation><dataValidation><formula1>$A$1</formula1>
</dataValidation></worksheet>"""
DELETED = "<w:p><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>"
INDEX = "<w:p><w:r><w:instrText> XE &quot;word&quot; </w:instrText></w:r></w:p>"
LIST = "<w:sdtPr><w:dropDownList><w:listItem w:displayText='Red'/></w:dropDownList></w:sdtPr>"
CUSTOM = """<x xmlns:vt="vt"><property name="Client"><vt:lpwstr>Big Co</vt:lpwstr></property>
<property name="Size"><vt:lpwstr>12</vt:lpwstr></property>
<property name="ContentTypeId"><vt:lpwstr>0x0AF</vt:lpwstr></property></x>"""
LEFT = [
    ("pptx", "ppt/slideMasters/slideMaster1.xml", MASTER, "texts of slide masters and layouts"),
    ("pptx", "ppt/slideLayouts/slideLayout2.xml", MASTER, "texts of slide masters and layouts"),
    ("pptx", "ppt/presentation.xml", "<p:section name='One'/>", "names of slide sections"),
    ("pptx", "ppt/embeddings/book.xlsx", "PK", "embedded files"),
    ("xlsx", "xl/workbook.xml", BOOK, "defined names"),
    ("xlsx", "xl/worksheets/sheet1.xml", VALIDATION, "texts of data validation"),
    ("xlsx", "xl/pivotCache/pivotCacheDefinition1.xml", "<s v='a'/>", "texts of pivot tables"),
    ("docx", "word/footnotes.xml", DELETED, "deleted texts"),
    ("docx", "word/header1.xml", INDEX, "index entries"),
    ("docx", "word/header1.xml", "<w:altChunk w:id='x'/>", "embedded files"),
    ("docx", "word/footer1.xml", LIST, "entries of forms"),
    ("docx", "docProps/custom.xml", CUSTOM, "custom properties"),
    ("docx", "docProps/core.xml", "<cp:category>Letters</cp:category>", "categories"),
    ("odt", "styles.xml", "<text:deletion><text:p/></text:deletion>", "deleted texts"),
    ("odt", "meta.xml", "<meta:user-defined>Big</meta:user-defined>", "custom properties"),
]
STORY = {
    "docx": "word/document.xml",
    "pptx": "ppt/slides/slide1.xml",
    "xlsx": "xl/sharedStrings.xml",
    "odt": "content.xml",
}


@pytest.mark.parametrize(("format", "name", "text", "what"), LEFT)
def test_texts_that_stay_are_counted(format, name, text, what):
    namespaces = f"{NAMES} xmlns:p='p'"
    if not name.startswith("ppt/embeddings"):
        text = f"<x {namespaces}>{text}</x>"
    files = {STORY[format]: f"<x {namespaces}/>", name: text}
    result, lines, notice = translated(format, packed(files))
    assert (lines, result[name]) == ([], text)
    number = 2 if name == "xl/worksheets/sheet1.xml" else 1
    assert notice == f"{what} left untranslated: {number}"


def test_watermarks_are_translated():
    mark = "<w:r><w:pict><v:shape alt='a'><v:textpath string='Not final'/></v:shape></w:pict></w:r>"
    header = f"<x {NAMES}><w:p>{mark}</w:p></x>"
    content = packed({"word/document.xml": "<x/>", "word/header1.xml": header})
    result, _, _ = translated("docx", content)
    expected = header.replace("Not final", "NOT FINAL").replace("'a'", "'A'")
    assert result["word/header1.xml"] == expected


CHART = """<c:x xmlns:c="c" xmlns:a="a"><c:ser><c:tx><c:strRef><c:f>A!B1</c:f><c:strCache>
<c:pt idx="0"><c:v>Cats &amp; dogs</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat>
<c:multiLvlStrCache><c:lvl><c:pt><c:v>red</c:v></c:pt></c:lvl></c:multiLvlStrCache></c:cat><c:val>
<c:numCache><c:pt><c:v>1E-5</c:v></c:pt></c:numCache></c:val></c:ser>
<c:ser><c:tx><c:v>birds</c:v></c:tx></c:ser></c:x>"""


@pytest.mark.parametrize(("format", "folder"), [("pptx", "ppt"), ("docx", "word"), ("xlsx", "xl")])
def test_names_in_charts_are_translated(format, folder):
    name = f"{folder}/charts/chart1.xml"
    result, lines, _ = translated(format, packed({STORY[format]: "<x/>", name: CHART}))
    assert lines == ["Cats & dogs", "red", "birds"]
    expected = CHART.replace("Cats &amp; dogs", "CATS &amp; DOGS")
    assert result[name] == expected.replace("red", "RED").replace("birds", "BIRDS")


@pytest.mark.parametrize("quote", ['"', "'"])
def test_powers_are_items_however_they_are_written(quote):
    run = "<{0}r>{1}<{0}t>{2}</{0}t></{0}r>"
    word_run = "<w:rPr><{} w:val='{}'/></w:rPr>"
    looks = [
        ("docx", "w:", word_run.format("w:vertAlign", "superscript")),
        ("docx", "w:", word_run.format("w:rStyle", "My Superscript")),
        ("pptx", "a:", "<a:rPr baseline='30000'/>"),
        ("xlsx", "", "<rPr><vertAlign val='superscript'/></rPr>"),
    ]
    for format, prefix, look in looks:
        tag = "si" if format == "xlsx" else f"{prefix}p"
        pieces = [("", "Ten 10"), (look.replace("'", quote), "6"), ("", " cats")]
        content = "".join(run.format(prefix, *piece) for piece in pieces)
        story = f"<x {NAMES}><{tag}>{content}</{tag}></x>"
        document = read_document(format, packed({STORY[format]: story}))
        assert [COPY.sub("_", line) for line in document.lines] == ["Ten _ cats"]


def test_footers_of_slides_and_words_with_readings_in_open_document():
    base, reading = "<text:ruby-base>two</text:ruby-base>", "<text:ruby-text>tu</text:ruby-text>"
    tag = "presentation:footer-decl"
    footer = f"<{tag} xmlns:presentation='presentation'>My footer</{tag}>"
    text = f"<text:p>one <text:ruby>{base}{reading}</text:ruby> three</text:p>"
    content = f"<x {NAMES}>{footer}{text}</x>"
    result, lines, notice = translated("odp", packed({"content.xml": content}))
    assert (lines, notice) == (["My footer", "one two three"], "readings (ruby) left out: 1")
    content = content.replace(f"<text:ruby>{base}{reading}</text:ruby>", "two")
    for words in ("My footer", "one two three"):
        content = content.replace(words, words.upper())
    assert result["content.xml"] == content


def test_attributes_of_cells_in_single_quotes():
    cell = "<table:table-cell office:value-type='string' office:string-value='red'>"
    cells = f"<x {NAMES}>{cell}<text:p>red</text:p></table:table-cell></x>"
    result, _, _ = translated("ods", packed({"content.xml": cells}))
    assert result["content.xml"] == cells.replace("'red'", "'RED'").replace(">red<", ">RED<")
    table = "<table><tableColumn name='Head'/></table>"
    book = packed({"xl/sharedStrings.xml": "<x><si><t>Head</t></si></x>", "xl/tables/t.xml": table})
    assert translated("xlsx", book)[1] == []
