"""Compare a document before and after translation, with libraries that know its format.

    python benchmarks/documents.py BEFORE AFTER

The script prints a line of counts, or the first difference and exit code 1. It needs lxml, polib, python-docx and, for
catalogs, gettext.
"""

import re
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

Skeleton = dict[str, Any]
TEXTS = ("text", "text_special", "softbreak", "hardbreak")
LANGUAGE = ("lang", "xml:lang", "{http://www.w3.org/XML/1998/namespace}lang", "dir")
TRANSLATED = ("title", "alt", "placeholder", "aria-label", "value", "label", "content")
"""Attributes that people read; the last ones are those of buttons, options and descriptions."""
HOLDERS = re.compile(r"%\(\w+\)[sd]|%[sd]|\{\w*\}")


def of_html(path: Path) -> Skeleton:
    """Elements with their parents and attributes, in any order, as words take them along; code and scripts."""
    from lxml import html

    root = html.parse(path).getroot()
    # The language of the page becomes that of the translation.
    for name in LANGUAGE:
        root.attrib.pop(name, None)
    elements = [each for each in root.iter() if isinstance(each.tag, str)]
    shown = Counter[Any]()
    for each in elements:
        attributes = sorted(item for item in each.attrib.items() if item[0] not in TRANSLATED)
        shown[each.tag, getattr(each.getparent(), "tag", ""), *attributes] += 1
    return {
        "elements": shown,
        "code": Counter(
            each.text_content() for each in elements if each.tag in ("pre", "code", "script")
        ),
    }


def of_markdown(path: Path) -> Skeleton:
    """Blocks in order, each with its links, pictures, code and emphasis."""
    from markdown_it import MarkdownIt

    found = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(path.read_text())
    blocks = [
        (each.type, each.markup, each.content if each.type in ("fence", "code_block") else "")
        for each in found
    ]
    marks = [
        Counter((x.type, str(x.attrs)) for x in each.children or [] if x.type not in TEXTS)
        for each in found
    ]
    return {"blocks": blocks, "markup": marks}


def of_po(path: Path) -> Skeleton:
    """Messages, and the lines of their comments.

    msgfmt accepts the catalog, also when nothing is fuzzy, and translations have the same placeholders.
    """
    import polib

    catalog = polib.pofile(str(path))
    for entry in catalog:
        entry.flags = [flag for flag in entry.flags if flag != "fuzzy"]
        both = [HOLDERS.findall(text) for text in (entry.msgid, entry.msgstr)]
        assert not entry.msgstr or sorted(both[0]) == sorted(both[1]), (
            f"{entry.msgid!r}: {entry.msgstr!r}"
        )
    for content in (path.read_bytes(), str(catalog).encode()):
        subprocess.run(["msgfmt", "-c", "-o", "/dev/null", "-"], input=content, check=True)
    messages = [(entry.msgctxt, entry.msgid, entry.msgid_plural, entry.flags) for entry in catalog]
    lines = path.read_bytes().splitlines(keepends=True)
    comments = [line for line in lines if line.startswith(b"#") and not line.startswith(b"#,")]
    return {"messages": messages, "lines of comments": comments}


def of_docx(path: Path) -> Skeleton:
    """Paragraphs with their styles, and all other files in the archive."""
    from docx import Document

    with zipfile.ZipFile(path) as archive:
        translated = re.compile(r"word/(document|header|footer|footnotes|endnotes)\d*\.xml")
        others = {
            name: archive.read(name)
            for name in archive.namelist()
            if not translated.fullmatch(name)
        }
    document = Document(str(path))
    return {
        "paragraphs": [each.style.name for each in document.paragraphs],
        "tables": [(len(each.rows), len(each.columns)) for each in document.tables],
        "files": others,
    }


def main() -> None:
    paths = [Path(word) for word in sys.argv[1:3]]
    read = {".html": of_html, ".md": of_markdown, ".po": of_po, ".docx": of_docx}[paths[0].suffix]
    before, after = map(read, paths)
    for key in before:
        if before[key] != after[key]:
            sys.exit(f"{paths[1]}: other {key}")
    print(
        f"{paths[1].name}: the same", ", ".join(f"{total(before[key]):,} {key}" for key in before)
    )


def total(found: Any) -> int:
    return found.total() if isinstance(found, Counter) else len(found)


if __name__ == "__main__":
    main()
