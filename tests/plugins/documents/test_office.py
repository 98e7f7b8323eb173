"""Office documents besides paragraphs: alternative texts, properties, languages, and what stays untranslated."""

import io
import sys
import zipfile
from dataclasses import dataclass
from xml.etree import ElementTree

import openpyxl
import pptx
import pytest
from openpyxl.comments import Comment
from pptx.enum.lang import MSO_LANGUAGE_ID
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
    """A ZIP archive of these files."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return written.getvalue()


@dataclass
class Result:
    """A document in capitals."""

    files: dict[str, str]
    lines: list[str]
    """The lines to translate."""
    notice: str


def translated(format: str, content: bytes, source: str = "", target: str = "") -> Result:
    """Translate a document into capitals.

    Also checks that a translation that equals the source does not change a byte.
    """
    unchanged = read_document(format, content)
    assert unchanged.join(same(unchanged.lines)) == content
    document = read_document(format, content, target, source)
    with zipfile.ZipFile(io.BytesIO(document.join(capitals(document.lines)))) as archive:
        files = {name: archive.read(name).decode(errors="replace") for name in archive.namelist()}
    return Result(files, document.lines, document.notice)


PICTURE = """<w:p><w:r><w:t>One</w:t></w:r><w:r><w:drawing><wp:inline><wp:docPr id="1" name="P 1" title="a title"
 descr="red &amp; &quot;blue&quot;&#xA;ball"/><a:graphic><pic:cNvPr id="0" name="x.png" descr='a dog'/></a:graphic>
</wp:inline></w:drawing></w:r><w:r><w:pict><v:shape id="s" alt="a cat"/></w:pict></w:r><w:r><w:t>two</w:t></w:r></w:p>
<w:tbl><w:tblPr><w:tblCaption w:val="a table"/><w:tblDescription w:val="of x"/></w:tblPr></w:tbl>"""


LETTER = f"<w:body {NAMES}>{PICTURE}</w:body>"
TRANSLATED_ATTRIBUTES = ("descr", "title", "alt", f"{{{WORD}}}val")


def test_alternative_texts_of_a_letter_are_translated():
    result = translated("docx", packed({"word/document.xml": LETTER}))
    assert result.lines == [
        "a title",
        'red & "blue" ball',
        "a dog",
        "a cat",
        "a table",
        "of x",
        "One two",
    ]
    assert result.notice == ""
    root = ElementTree.fromstring(result.files["word/document.xml"])
    values = []
    for element in root.iter():
        for name, value in element.attrib.items():
            if name in TRANSLATED_ATTRIBUTES:
                values.append(value)
    assert values == ["A TITLE", 'RED & "BLUE"\nBALL', "A DOG", "A CAT", "A TABLE", "OF X"]
    assert "".join(root.itertext()).split() == ["ONE", "TWO"]


def test_names_of_pictures_in_a_letter_stay():
    result = translated("docx", packed({"word/document.xml": LETTER}))
    before = ElementTree.fromstring(LETTER)
    after = ElementTree.fromstring(result.files["word/document.xml"])
    names = [element.get("name") for element in before.iter()]
    assert [element.get("name") for element in after.iter()] == names


def deck_of_slides() -> bytes:
    """A presentation with a title in English and French, a picture and properties."""
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "One"
    paragraph = slide.shapes.title.text_frame.paragraphs[0]
    paragraph.runs[0].font.language_id = MSO_LANGUAGE_ID.ENGLISH_UK
    french = paragraph.add_run()
    french.text = " deux"
    french.font.language_id = MSO_LANGUAGE_ID.FRENCH
    french.font.bold = True
    picture = slide.shapes.add_picture(io.BytesIO(PNG), 0, 0, Inches(1))
    picture._element.nvPicPr.cNvPr.set("descr", "a picture")
    deck.core_properties.title = "my slides"
    deck.core_properties.keywords = "a, b"
    file = io.BytesIO()
    deck.save(file)
    return file.getvalue()


def test_alternative_texts_languages_and_properties_of_slides():
    document = read_document("pptx", deck_of_slides(), "de", "en")
    result = pptx.Presentation(io.BytesIO(document.join(capitals(document.lines))))
    assert document.notice == "keywords left untranslated: 1"
    shapes = result.slides[0].shapes
    assert shapes[2]._element.nvPicPr.cNvPr.get("descr") == "A PICTURE"
    assert result.core_properties.title == "MY SLIDES"
    assert result.core_properties.keywords == "a, b"
    runs = []
    for run in shapes.title.text_frame.paragraphs[0].runs:
        text = run.text.strip()
        if text:
            runs.append((text, run._r.rPr.get("lang")))
    assert runs == [("ONE", "de-DE"), ("DEUX", "fr-FR")]


def test_untranslated_texts_of_a_workbook_are_counted():
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Data"
    sheet["A1"] = "Yes"
    sheet["A2"] = "one"
    sheet["A3"] = '=IF(A1="Yes",1,2)'
    sheet["A2"].comment = Comment("a comment", "Bob")
    sheet.oddHeader.center.text = "a header"
    book.properties.subject = "a subject"
    file = io.BytesIO()
    book.save(file)
    document = read_document("xlsx", file.getvalue(), "de", "en")
    result = openpyxl.load_workbook(io.BytesIO(document.join(capitals(document.lines))))
    assert result["Data"]["A1"].value == "Yes"
    assert result["Data"]["A2"].value == "ONE"
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
    result = translated("odt", packed(files), "en", "de")
    assert sorted(result.lines) == ["One two", "a & b", "a title", "my text", "x"]
    expected = content
    for word in ("One", "two", "a title", ">x<"):
        expected = expected.replace(word, word.upper())
    expected = expected.replace("a &amp; b", "A &amp; B")
    assert result.files["content.xml"] == expected
    assert result.files["meta.xml"] == META.format(NAMES, "de-DE").replace("my text", "MY TEXT")
    assert sorted(result.notice.split("; ")) == [
        "comments left untranslated: 1",
        "keywords left untranslated: 1",
    ]


@pytest.mark.parametrize(
    ("source", "target", "before", "after"),
    [
        ("en", "de", 'w:val="en-US" w:eastAsia="zh-CN"', 'w:val="de-DE" w:eastAsia="zh-CN"'),
        ("en", "de_AT", "w:val='en'", "w:val='de-AT'"),
        ("en", "de", 'w:val="fr-FR"', 'w:val="fr-FR"'),
        ("en", "de", 'w:val="enm"', 'w:val="enm"'),
        ("en", "", 'w:val="en-US"', 'w:val="en-US"'),
        ("en", "xx-unknown", 'w:val="en-US"', 'w:val="en-US"'),
        ("", "de", 'w:val="en-US"', 'w:val="en-US"'),
        ("eng_Latn", "deu_Latn", 'w:val="en-US"', 'w:val="de-DE"'),
        ("en", "ja", 'w:val="en-US" w:eastAsia="zh-CN"', 'w:val="ja-JP" w:eastAsia="ja-JP"'),
        ("en", "zh_Hant", 'w:val="en-US"', 'w:val="zh-TW" w:eastAsia="zh-TW"'),
        ("en", "ar", 'w:val="en-US" w:bidi="he-IL"', 'w:val="ar-EG" w:bidi="ar-EG"'),
        ("ja", "de", 'w:val="en-US" w:eastAsia="ja-JP"', 'w:val="de-DE" w:eastAsia="ja-JP"'),
        ("ja", "de", 'w:eastAsia="ja-JP"', 'w:eastAsia="ja-JP" w:val="de-DE"'),
    ],
)
def test_a_letter_declares_the_language_of_its_translation(source, target, before, after):
    run = f"<w:r><w:rPr><w:lang {before}/></w:rPr><w:t>one</w:t></w:r>"
    styles = f"<w:styles {NAMES}><w:lang {before}/></w:styles>"
    content = packed({"word/document.xml": f"<w:p {NAMES}>{run}</w:p>", "word/styles.xml": styles})
    files = translated("docx", content, source, target).files
    assert files["word/styles.xml"] == styles.replace(before, after)
    assert f"<w:lang {after}/>" in files["word/document.xml"]
    assert ">ONE<" in files["word/document.xml"]


@pytest.mark.parametrize(
    ("target", "before", "after"),
    [
        (
            "de",
            'fo:language="en" fo:country="US"',
            'fo:language="de" fo:country="DE"',
        ),
        (
            "de",
            'fo:language="fr" fo:country="FR"',
            'fo:language="fr" fo:country="FR"',
        ),
        (
            "de",
            'fo:language="en"',
            'fo:language="de" fo:country="DE"',
        ),
        (
            "eo",
            'fo:language="en" fo:country="GB"',
            'fo:language="eo" fo:country="001"',
        ),
        (
            "ko",
            'fo:language="en" fo:country="US" style:language-asian="zh" style:country-asian="CN"',
            'fo:language="ko" fo:country="KR" style:language-asian="ko" style:country-asian="KR"',
        ),
        (
            "he",
            'fo:language="en" fo:country="US"',
            'fo:language="he" fo:country="IL" style:language-complex="he" style:country-complex="IL"',
        ),
    ],
)
def test_open_document_declares_the_language_of_its_translation(target, before, after):
    styles = f"<x {NAMES}><style:text-properties {before} fo:color='red'/></x>"
    content = packed({"content.xml": f"<x {NAMES}><text:p>one</text:p></x>", "styles.xml": styles})
    files = translated("odt", content, "en", target).files
    result = ElementTree.fromstring(files["styles.xml"])
    expected = ElementTree.fromstring(f"<x {NAMES}><y {after} fo:color='red'/></x>")
    assert result[0].attrib == expected[0].attrib


def book(listings: int = 1, description: str = "a book", more: str = "") -> bytes:
    """An EPUB file whose container lists its only package several times."""
    listing = '<rootfile full-path="a.opf"/>' * listings
    package = (
        f"<package {NAMES}><dc:title>my book</dc:title>"
        f"<dc:description>{description}</dc:description>{more}"
        '<manifest><item id="c" href="c.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="c"/></spine></package>'
    )
    files = {
        "META-INF/container.xml": f"<rootfiles>{listing}</rootfiles>",
        "a.opf": package,
        "c.xhtml": "<html><p>one</p></html>",
    }
    return packed(files)


@pytest.mark.parametrize(
    ("description", "lines", "expected"),
    [
        (
            "Tom &amp; me",
            ["Tom & me"],
            "TOM &amp; ME",
        ),
        (
            "&lt;p&gt;a &lt;b&gt;red&lt;/b&gt;&lt;/p&gt;&lt;p&gt;cat&lt;/p&gt;",
            ["a red", "cat"],
            "&lt;p&gt;A &lt;b&gt;RED&lt;/b&gt;&lt;/p&gt;&lt;p&gt;CAT&lt;/p&gt;",
        ),
        (
            "<![CDATA[<p>x &amp; y</p>]]>",
            ["x & y"],
            "&lt;p&gt;X &amp;amp; Y&lt;/p&gt;",
        ),
    ],
)
def test_the_description_of_a_book_is_translated_and_its_subjects_are_not(
    description, lines, expected
):
    content = book(description=description, more="<dc:subject>Fiction</dc:subject>")
    result = translated("epub", content)
    assert result.lines == ["my book", *lines, "one"]
    package = result.files["a.opf"]
    assert f"<dc:description>{expected}</dc:description><dc:subject>Fiction<" in package


def calls_to_read_book(listings: int) -> int:
    events = list[str]()
    content = book(listings)
    sys.setprofile(lambda frame, event, argument: events.append(event))
    try:
        read_document("epub", content)
    finally:
        sys.setprofile(None)
    return len(events)


def test_a_package_that_is_listed_often_is_read_once():
    # Each listing costs some calls, but reading the package again would cost hundreds.
    assert calls_to_read_book(500) - calls_to_read_book(100) < 400 * 60


SHAPE = "<p:sp><p:nvPr>{0}</p:nvPr><a:p><a:r><a:t>{1}</a:t></a:r></a:p></p:sp>"
PLACEHOLDER = SHAPE.format("<p:ph type='title'/>", "Click here")
MASTER = PLACEHOLDER + SHAPE.format("", "A slogan")
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
UNTRANSLATED = [
    # Format, file, content, and what the notice counts
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


@pytest.mark.parametrize(("format", "name", "text", "what"), UNTRANSLATED)
def test_untranslated_texts_stay_and_are_counted(format, name, text, what):
    namespaces = f"{NAMES} xmlns:p='p'"
    if not name.startswith("ppt/embeddings"):
        text = f"<x {namespaces}>{text}</x>"
    files = {STORY[format]: f"<x {namespaces}/>", name: text}
    result = translated(format, packed(files))
    assert result.lines == []
    assert result.files[name] == text
    number = 2 if name == "xl/worksheets/sheet1.xml" else 1
    assert result.notice == f"{what} left untranslated: {number}"


def test_watermarks_are_translated():
    mark = "<w:r><w:pict><v:shape alt='a'><v:textpath string='Not final'/></v:shape></w:pict></w:r>"
    header = f"<x {NAMES}><w:p>{mark}</w:p></x>"
    content = packed({"word/document.xml": "<x/>", "word/header1.xml": header})
    files = translated("docx", content).files
    expected = header.replace("Not final", "NOT FINAL").replace("'a'", "'A'")
    assert files["word/header1.xml"] == expected


CHART = """<c:x xmlns:c="c" xmlns:a="a"><c:ser><c:tx><c:strRef><c:f>A!B1</c:f><c:strCache>
<c:pt idx="0"><c:v>Cats &amp; dogs</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat>
<c:multiLvlStrCache><c:lvl><c:pt><c:v>red</c:v></c:pt></c:lvl></c:multiLvlStrCache></c:cat><c:val>
<c:numCache><c:pt><c:v>1E-5</c:v></c:pt></c:numCache></c:val></c:ser>
<c:ser><c:tx><c:v>birds</c:v></c:tx></c:ser></c:x>"""


@pytest.mark.parametrize(("format", "folder"), [("pptx", "ppt"), ("docx", "word"), ("xlsx", "xl")])
def test_names_in_charts_are_translated(format, folder):
    name = f"{folder}/charts/chart1.xml"
    result = translated(format, packed({STORY[format]: "<x/>", name: CHART}))
    assert result.lines == ["Cats & dogs", "red", "birds"]
    expected = CHART.replace("Cats &amp; dogs", "CATS &amp; DOGS")
    assert result.files[name] == expected.replace("red", "RED").replace("birds", "BIRDS")


RUN = "<{0}r>{1}<{0}t>{2}</{0}t></{0}r>"
SUPERSCRIPTS = [
    # Format, prefix of its elements, element of a paragraph, properties of a superscript
    ("docx", "w:", "w:p", "<w:rPr><w:vertAlign w:val='superscript'/></w:rPr>"),
    ("docx", "w:", "w:p", "<w:rPr><w:rStyle w:val='My Superscript'/></w:rPr>"),
    ("pptx", "a:", "a:p", "<a:rPr baseline='30000'/>"),
    ("xlsx", "", "si", "<rPr><vertAlign val='superscript'/></rPr>"),
]


@pytest.mark.parametrize("quote", ['"', "'"])
@pytest.mark.parametrize(("format", "prefix", "paragraph", "properties"), SUPERSCRIPTS)
def test_powers_are_items_with_either_quote(format, prefix, paragraph, properties, quote):
    runs = RUN.format(prefix, "", "Ten 10")
    runs += RUN.format(prefix, properties.replace("'", quote), "6")
    runs += RUN.format(prefix, "", " cats")
    story = f"<x {NAMES}><{paragraph}>{runs}</{paragraph}></x>"
    document = read_document(format, packed({STORY[format]: story}))
    assert [COPY.sub("_", line) for line in document.lines] == ["Ten _ cats"]


def test_open_document_slides_have_footers_and_readings_above_words():
    base = "<text:ruby-base>two</text:ruby-base>"
    ruby = f"<text:ruby>{base}<text:ruby-text>tu</text:ruby-text></text:ruby>"
    tag = "presentation:footer-decl"
    footer = f"<{tag} xmlns:presentation='presentation'>My footer</{tag}>"
    content = f"<x {NAMES}>{footer}<text:p>one {ruby} three</text:p></x>"
    result = translated("odp", packed({"content.xml": content}))
    assert result.lines == ["My footer", "one two three"]
    assert result.notice == "readings (ruby) left out: 1"
    expected = content.replace(f"one {ruby} three", "ONE TWO THREE")
    assert result.files["content.xml"] == expected.replace("My footer", "MY FOOTER")


def test_attributes_of_cells_in_single_quotes():
    cell = "<table:table-cell office:value-type='string' office:string-value='red'>"
    cells = f"<x {NAMES}>{cell}<text:p>red</text:p></table:table-cell></x>"
    files = translated("ods", packed({"content.xml": cells})).files
    assert files["content.xml"] == cells.replace("'red'", "'RED'").replace(">red<", ">RED<")


def test_names_of_columns_in_single_quotes():
    table = "<table><tableColumn name='Head'/></table>"
    book = packed({"xl/sharedStrings.xml": "<x><si><t>Head</t></si></x>", "xl/tables/t.xml": table})
    assert translated("xlsx", book).lines == []
