"""Office documents and books.

Other libraries write them, and read their translation into capitals.
"""

import io
import re
import tracemalloc
import zipfile

import openpyxl
import pptx
import pytest
import xlsxwriter
from ebooklib import epub
from odfdo import Annotation, Cell, Document, Header, Paragraph, Table

from nmt.errors import NMTError
from nmt.translation import read_document
from tests.plugins.documents.test_documents import archive_of, same, upper

# Each case is a generator: it writes a file, receives the translated file, and yields whether the
# translation is right.


def slides(file):
    deck = pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "One line\vand another\tcolumn"
    for text in ("A man is ", "ri", "ding a", " horse."):
        run = slide.placeholders[1].text_frame.paragraphs[0].add_run()
        run.text = text
        is_linked = not text.endswith((" ", "."))
        run.font.bold = True if is_linked else None
    run.hyperlink.address = "https://example.org/a"
    slide.notes_slide.notes_text_frame.text = "my notes"
    deck.save(file)
    (slide,) = pptx.Presentation((yield)).slides
    assert slide.shapes.title.text == "ONE LINE\vAND ANOTHER\tCOLUMN"
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    runs = [(run.text, run.font.bold) for run in paragraph.runs]
    assert runs == [("A MAN IS ", None), ("RIDING A", True), (" ", None), ("HORSE.", None)]
    yield slide.notes_slide.notes_text_frame.text == "MY NOTES"


def sheet(file):
    with xlsxwriter.Workbook(file) as book:
        page = book.add_worksheet("Data")
        page.write_column("A1", ["once", "once", "Yes", "a line\nand another", " blank ", 1.5])
        page.write_rich_string("A7", "A ", book.add_format({"bold": True}), "red", " ball")
        page.write_formula("A8", '=IF(A3="Yes",1,2)')
        page.write_comment("A1", "a comment")
        page.data_validation("B1", {"validate": "list", "source": ["Red", "Dark green"]})
        page.write("B1", "Dark green")
        page.add_table("D1:D2", {"data": [["a boy"]], "columns": [{"header": "Name"}]})
    page = openpyxl.load_workbook((yield), rich_text=True)["Data"]
    runs = [part for part in page["A7"].value if not isinstance(part, str)]
    assert [run.text for run in runs if run.font.b] == ["RED"]
    texts = [page["A1"].comment.text, page["D1"].value, *page.tables["Table1"].column_names]
    assert texts == ["a comment", "Name", "Name"]
    texts = [str(cell.value) for cell in (*page["A"], page["D2"])]
    assert page["B1"].value == "Dark green"
    values = [
        "ONCE",
        "ONCE",
        "Yes",
        "A LINE\nAND ANOTHER",
        " BLANK ",
        "1.5",
        "A RED BALL",
        '=IF(A3="Yes",1,2)',
    ]
    yield texts == [*values, "A BOY"]


def text(file):
    document = Document("text")
    paragraph = Paragraph("A man rides a horse today.")
    table = Table("T", 3, 1)
    paragraph.set_span("Bold", regex="rides a horse")
    paragraph.insert_note(after="horse", note_id="n", citation="1", body="a big one")
    paragraph.append(Annotation("my comment", creator="Bob"))
    table.set_cell((0, 0), Cell("a cell"))
    table.set_cell((1, 0), Cell(12.5, text="12 euros"))
    table.set_cell((2, 0), Cell("c", formula='of:=IF("A cat")'))
    document.body.clear()
    document.body.extend(
        [Header(1, "a title"), paragraph, table, Paragraph("a cat"), Paragraph("A cat")]
    )
    document.save(file)
    body = Document((yield)).body
    assert [span.text for span in body.get_spans()] == ["RIDES A HORSE"]
    texts = [part.text for part in [*body.get_headers(), *body.get_paragraphs()]]
    assert texts == [
        "A TITLE",
        "A MAN ",
        "A BIG ONE",
        "my comment",
        "A CELL",
        "12 euros",
        "c",
        "A CAT",
        "A cat",
    ]
    yield [*body.get_table(name="T").get_values()] == [["A CELL", 12.5, "c"]]


def book(file):
    book = epub.EpubBook()
    chapter = epub.EpubHtml(title="day one", file_name="text/1 é.xhtml", lang="en")
    book.set_title("a book")
    book.set_language("en")
    book.add_author("Jane Doe")
    chapter.content = "<script src='x.js'/><p>A <b>red</b> ball<br/>is here.</p><pre>code</pre>"
    for item in (chapter, epub.EpubNcx(), epub.EpubNav()):
        book.add_item(item)
    book.toc = [chapter]
    book.spine = ["nav", chapter]
    epub.write_epub(file, book)
    translation = yield
    book = epub.read_epub(translation)
    texts = [book.title, book.toc[0].title, *book.get_metadata("DC", "creator")[0]]
    assert texts[:3] == ["A BOOK", "DAY ONE", "Jane Doe"]
    assert b"DAY ONE" in book.get_item_with_id("nav").content
    chapter = book.get_item_with_href("text/1 é.xhtml").content.decode()
    assert 'lang="de" xml:lang="de"' in chapter
    assert [*re.findall("<p.*", chapter)] == [
        "<p>A <b>RED</b> BALL<br/>IS HERE.</p>",
        "<pre>code</pre>",
    ]
    yield b"language>de</" in zipfile.ZipFile(translation).read("EPUB/content.opf")


@pytest.mark.parametrize(
    ("format", "case"), [("pptx", slides), ("xlsx", sheet), ("odt", text), ("epub", book)]
)
def test_other_libraries_read_the_translation(format, case):
    file = io.BytesIO()
    steps = case(file)
    next(steps)  # writes the file
    unchanged = read_document(format, file.getvalue())
    assert unchanged.join(same(unchanged.lines)) == file.getvalue()
    document = read_document(format, file.getvalue(), "de")
    result = io.BytesIO(document.join(upper(document.lines)))
    assert steps.send(result)
    changed = set()
    with zipfile.ZipFile(file) as before, zipfile.ZipFile(result) as after:
        for old, new in zip(before.infolist(), after.infolist(), strict=True):
            assert old.filename == new.filename
            assert old.compress_type == new.compress_type
            if before.read(old) != after.read(new):
                changed.add(old.filename)
    assert changed == {name for name, member in document.members.items() if member.lines}


def test_texts_in_images_of_chapters_are_reported():
    item = '<item id="c" href="c.xhtml" media-type="text/html"/>'
    files = {
        "META-INF/container.xml": '<x><rootfile full-path="a.opf"/></x>',
        "a.opf": f'<x>{item}<itemref idref="c"/></x>',
    }
    chapter = "<html><p>one</p><svg><text>two</text></svg></html>"
    content = archive_of(chapter, "c.xhtml", **files)
    document = read_document("epub", content)
    document.join(upper(document.lines))
    assert document.notice == "texts in SVG images left untranslated: 1"


@pytest.mark.slow
def test_a_member_larger_than_it_says_is_not_unpacked():
    content = archive_of(" " * 2**28, "word/document.xml")
    size = (2**28).to_bytes(4, "little")
    declared_size = (9).to_bytes(4, "little")
    tracemalloc.start()
    with pytest.raises(NMTError, match="damaged"):
        read_document("docx", content.replace(size, declared_size))
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()
