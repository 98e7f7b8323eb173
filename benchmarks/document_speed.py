"""Measure how long documents take to read and to write, compared with a parser of their format.

    python benchmarks/document_speed.py [KILOBYTES [ROUNDS [FORMAT...]]]

The files are generated. The script prints the processor seconds per megabyte for reading a file, for
writing its translation, and for the reference: json.loads for JSON, markdown-it for Markdown, lxml
for HTML and XML, and a regular expression over all words for formats of lines. The last column is
the ratio of the first two to the reference. Words are translated as capitals in reverse order, with
the right alignment. Each round measures all formats, and the script prints medians of all rounds.
"""

import json
import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from nmt.translation import Translated, read_document

WORDS = [
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "lazy",
    "dogs",
    "while",
    "seven",
    "old",
    "wizards",
    "make",
    "toxic",
    "brew",
]
MILLISECONDS = {"srt": ",", "vtt": "."}
Reference = Callable[[str], Any]


def sentence(number: int) -> str:
    """A sentence that depends only on its number."""
    choice = random.Random(number)
    words = choice.choices(WORDS, k=choice.randint(5, 14))
    return " ".join(words).capitalize() + "."


def file_of(before: str, piece: Callable[[int], str], after: str, size: int) -> str:
    """A file of at least this many characters."""
    pieces = [before]
    length = 0
    while length < size:
        pieces.append(piece(len(pieces)))
        length += len(pieces[-1])
    return "".join([*pieces, after])


def clock(seconds: int, mark: str) -> str:
    minutes = seconds // 60
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds % 60:02}{mark}000"


def strings(size: int) -> str:
    """JSON with short strings."""
    return json.dumps({f"k{number}": f"Open {number} a" for number in range(size // 24)}, indent=1)


def android(size: int) -> str:
    def piece(number: int) -> str:
        return f'<string name="k{number}">Open {number} a</string>\n'

    return file_of("<resources>\n", piece, "</resources>\n", size)


def properties(size: int) -> str:
    return file_of("", lambda number: f"k{number}=Open {number} a\n", "", size)


def subtitles(format: str, size: int) -> str:
    mark = MILLISECONDS[format]

    def piece(number: int) -> str:
        times = f"{clock(number * 2, mark)} --> {clock(number * 2 + 2, mark)}"
        return f"{number}\n{times}\n{sentence(number)}\n<i>{sentence(-number)}</i>\n\n"

    return file_of("WEBVTT\n\n" if format == "vtt" else "", piece, "", size)


def markdown(size: int) -> str:
    def piece(number: int) -> str:
        marked = f"**{sentence(-number)}** See [this](http://example.org/{number}) and `code`."
        return (
            f"# {sentence(number)}\n\n{sentence(number + 1)} {marked}\n\n- {sentence(number)}\n\n"
        )

    return file_of("", piece, "", size)


def restructured(size: int) -> str:
    def piece(number: int) -> str:
        return f"{sentence(number)} **Bold** and ``code``.\n\n- {sentence(-number)}\n\n"

    return file_of("", piece, "", size)


def asciidoc(size: int) -> str:
    def piece(number: int) -> str:
        return f"== {sentence(number)}\n\n{sentence(-number)} *Bold* and `code`.\n\n"

    return file_of("", piece, "", size)


def html(size: int) -> str:
    def piece(number: int) -> str:
        return f"<p>{sentence(number)} <b>{sentence(-number)}</b> and <code>code</code></p>\n"

    return file_of("<html><body>\n", piece, "</body></html>\n", size)


def docbook(size: int) -> str:
    def piece(number: int) -> str:
        return f"<para>{sentence(number)} <emphasis>{sentence(-number)}</emphasis></para>\n"

    before = '<article xmlns="http://docbook.org/ns/docbook">\n'
    return file_of(before, piece, "</article>\n", size)


def usfm(size: int) -> str:
    def piece(number: int) -> str:
        return f"\\v {number} {sentence(number)} \\wj {sentence(-number)}\\wj*\n"

    return file_of("\\id GEN\n\\c 1\n\\p\n", piece, "", size)


FILES: dict[str, Callable[[int], str]] = {
    "json": strings,
    "android": android,
    "properties": properties,
    "srt": lambda size: subtitles("srt", size),
    "vtt": lambda size: subtitles("vtt", size),
    "markdown": markdown,
    "rst": restructured,
    "asciidoc": asciidoc,
    "html": html,
    "docbook": docbook,
    "usfm": usfm,
}


def reference_of(format: str) -> Reference:
    if format == "json":
        return json.loads
    if format == "markdown":
        from markdown_it import MarkdownIt

        return MarkdownIt("commonmark").parse
    if format in ("html", "android", "docbook"):
        from lxml import etree, html as of_html

        return of_html.fromstring if format == "html" else etree.fromstring
    return re.compile(r"\w+").findall


def turned(line: str) -> Translated:
    """The words of a line in capitals and in reverse order; placeholders stay as they are."""
    words = line.split()
    capitals = [word.upper() if word.isascii() else word for word in reversed(words)]
    last = len(words) - 1
    return Translated(" ".join(capitals), [(index, last - index) for index in range(len(words))])


def seconds(format: str, text: str, reference: Reference) -> tuple[float, float, float]:
    """The processor seconds for reading, writing and the reference."""
    start = time.process_time()
    document = read_document(format, text.encode())
    read = time.process_time() - start
    translations = [turned(line) for line in document.lines]
    start = time.process_time()
    document.join(translations)
    written = time.process_time() - start
    start = time.process_time()
    reference(text)
    return read, written, time.process_time() - start


def main() -> None:
    size = 1000 * int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    formats = sys.argv[3:] or list(FILES)
    texts = {format: FILES[format](size) for format in formats}
    references = {format: reference_of(format) for format in formats}
    times: dict[str, list[tuple[float, float, float]]] = {format: [] for format in formats}
    # The first round also imports the readers, so it does not count.
    for index in range(rounds + 1):
        for format in formats:
            measured = seconds(format, texts[format], references[format])
            if index:
                times[format].append(measured)
    print(f"{'format':12}{'read':>8}{'write':>8}{'reference':>11}{'ratio':>8}")
    for format in formats:
        megabytes = len(texts[format].encode()) / 1e6
        medians = [
            statistics.median(column) / megabytes for column in zip(*times[format], strict=True)
        ]
        read, written, reference = medians
        ratio = (read + written) / reference
        print(f"{format:12}{read:8.2f}{written:8.2f}{reference:11.4f}{ratio:8.0f}", flush=True)


if __name__ == "__main__":
    main()
