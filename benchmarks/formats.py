"""Translate real files of many formats with a pseudo translator, and check what comes back.

    python benchmarks/formats.py FOLDER [--target de]

FOLDER has a folder for each format, such as FOLDER/android and FOLDER/rst, with files of that format. For each format, the
script prints the number of files, how many nmt reads, how many keep all bytes if the translation of each line is the line
itself, how many have the same structure after a translation that reverses the words of each line, and how many of these
results nmt can read again. An independent parser compares the structures; "-" marks formats without one here. The last column has CPU seconds
per MB for reading and writing a file.
"""

import argparse
import json
import plistlib
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nmt import NMTError
from nmt.translation import Translated, read_document

COLUMNS = ("files", "read", "same bytes", "same structure", "read again")


def same(lines: list[str]) -> list[Translated]:
    return [Translated(line) for line in lines]


def reversed_words(lines: list[str]) -> list[Translated]:
    """Each line with its words in reverse order and in capitals, as far as they are only letters."""
    translations = []
    for line in lines:
        words = line.split()
        result = [word.upper() if word.isalpha() else word for word in reversed(words)]
        last = len(words) - 1
        alignment = [(number, last - number) for number in range(len(words))]
        translations.append(Translated(" ".join(result), alignment))
    return translations


def structure_of_tree(tree: Any) -> Any:
    """Keys, lists and values that are no text."""
    if isinstance(tree, dict):
        return {key: structure_of_tree(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [structure_of_tree(item) for item in tree]
    return type(tree).__name__ if isinstance(tree, str) else tree


def of_json(content: bytes) -> Any:
    return structure_of_tree(json.loads(content.decode("utf-8-sig")))


def of_notebook(content: bytes) -> Any:
    """Everything but the sources of Markdown cells."""
    tree = json.loads(content.decode("utf-8-sig"))
    for cell in tree["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = ""
    return tree


def of_plist(content: bytes) -> Any:
    return structure_of_tree(plistlib.loads(content))


def of_yaml(content: bytes) -> Any:
    import yaml

    return structure_of_tree(yaml.safe_load(content))


def of_xml(content: bytes) -> Any:
    """Elements and their attributes, in any order, because inline elements move with their words."""
    from lxml import etree

    # Manuals refer to entities that other files declare; such references are skipped.
    parser = etree.XMLParser(resolve_entities=False, no_network=True, recover=True)
    elements = Counter[Any]()
    for element in etree.fromstring(content, parser).iter():
        if isinstance(element.tag, str):
            names = sorted(name for name in element.attrib if not name.endswith("lang"))
            elements[element.tag, *names] += 1
    return elements


def of_po(content: bytes) -> Any:
    import polib

    catalog = polib.pofile(content.decode("utf-8-sig"))
    return [(entry.msgctxt, entry.msgid, entry.msgid_plural) for entry in catalog]


def of_times(content: bytes) -> Any:
    """The times of subtitles in order, and the number of lines, which may only decrease."""
    return re.findall(rb"\d+:\d\d(?::\d\d)?[.,:]\d+|\{\d+\}\{\d+\}|\[\d\d:\d\d[.:]\d\d\]", content)


def of_usfm(content: bytes) -> Any:
    """Markers of chapters and verses in order, and all markers in any order."""
    text = content.decode("utf-8-sig")
    markers = Counter(re.findall(r"\\[+a-z]+\d*\*?", text))
    return re.findall(r"\\[cv] +\S+", text), markers


PARSERS: dict[str, Callable[[bytes], Any]] = {
    "arb": of_json,
    "chrome": of_json,
    "i18next": of_json,
    "json": of_json,
    "ipynb": of_notebook,
    "stringsdict": of_plist,
    "rails": of_yaml,
    "yaml": of_yaml,
    "android": of_xml,
    "resx": of_xml,
    "ttml": of_xml,
    "docbook": of_xml,
    "dita": of_xml,
    "usx": of_xml,
    "po": of_po,
    "srt": of_times,
    "vtt": of_times,
    "ass": of_times,
    "sub": of_times,
    "sbv": of_times,
    "lrc": of_times,
    "usfm": of_usfm,
}
"""Parsers that nmt does not use for the format. Without a target language, no plural form or language changes."""


BILINGUAL = ("po", "qt", "tmx", "xliff")
"""Formats with a place for a translation beside each text, which an unchanged line fills, too."""


@dataclass
class Counts:
    """What became of the files of a format."""

    passed: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)
    bytes: int = 0
    seconds: float = 0.0


def check_file(path: Path, format: str, target: str, counts: Counts) -> None:
    """Count what holds for a file."""
    content = path.read_bytes()
    counts.passed["files"] += 1
    begun = time.process_time()
    try:
        document = read_document(format, content)
    except NMTError as error:
        counts.refused[str(error)[:90]] += 1
        return
    counts.passed["read"] += 1
    unchanged = document.join(same(document.lines))
    counts.seconds += time.process_time() - begun
    counts.bytes += len(content)
    if unchanged == content:
        counts.passed["same bytes"] += 1
    elif format not in BILINGUAL:
        counts.broken.append(f"{path}: bytes")
    document = read_document(format, content)
    result = document.join(reversed_words(document.lines))
    parse = PARSERS.get(format)
    if parse:
        try:
            held = parse(content) == parse(result)
        except Exception as error:
            held = False
            counts.broken.append(f"{path}: {type(error).__name__} {error}"[:200])
        counts.passed["same structure"] += held
        if not held:
            counts.broken.append(f"{path}: structure")
    # With a target language, too: plural forms and languages change.
    try:
        document = read_document(format, content, target, "en")
    except NMTError:  # a file that orders a translation into another language
        document = read_document(format, content)
    result = document.join(reversed_words(document.lines))
    try:
        read_document(format, result, "", "")
        counts.passed["read again"] += 1
    except NMTError as error:
        counts.broken.append(f"{path}: {error}"[:200])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--target", default="de")
    options = parser.parse_args()
    print("| format |", " | ".join(COLUMNS), "| s/MB |")
    print("|---|" + "---|" * (len(COLUMNS) + 1))
    for folder in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        counts = Counts()
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        # The first document of a format imports its parsers, which the time should not include.
        check_file(paths[0], folder.name, options.target, Counts())
        for path in paths:
            check_file(path, folder.name, options.target, counts)
        cells = [f"{counts.passed[name]:,}" for name in COLUMNS]
        if folder.name in BILINGUAL:
            cells[COLUMNS.index("same bytes")] = "-"
        if folder.name not in PARSERS:
            cells[COLUMNS.index("same structure")] = "-"
        speed = counts.seconds / max(counts.bytes, 1) * 1e6
        print(f"| {folder.name} |", " | ".join(cells), f"| {speed:.1f} |", flush=True)
        for problem in [*counts.broken, *(f"refused: {text}" for text in counts.refused)]:
            print(f"  {problem}", file=sys.stderr)


if __name__ == "__main__":
    main()
