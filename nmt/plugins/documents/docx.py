"""DOCX (ECMA-376, part 1, section 17): paragraphs are sentences, and runs that look unlike most are elements in them.

Paragraphs that are translated are written anew; all else in their parts, and all other files in the archive, stay.
"""

import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from html import escape, unescape
from itertools import groupby, islice
from zipfile import BadZipFile, ZipFile

from nmt.errors import NMTError, one_line
from nmt.files import LARGE
from nmt.plugins.documents.document import Document, Spliced, Translated
from nmt.plugins.documents.markup import Sentence, Token
from nmt.plugins.documents.xliff import TAG, check_xml

PART = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
MOST_TAGS, DEEPEST = 2**19, 200
"""What bounds memory and time for a document, to about half a gigabyte."""
TEXT, END, END_RUN = '<w:t xml:space="preserve">', "</w:t>", "</w:t></w:r>"
LAST = "</w:rPr>(?!</w:rPrChange>)"
EMPTY_RUN = re.compile(rf"<w:r>(?:<w:rPr/>|<w:rPr>(?:(?!<w:r[ >]|{LAST}).)*+{LAST})?</w:r>", re.DOTALL)
SHOWN = re.compile(r"<w:t(?:\s[^>]*)?>([^<]*)</w:t>")
UNSEEN = re.compile(r"<w:(?:lang|noProof)\b[^>]*/>|</?w:rPr/?>")
"""Properties of a run that do not show."""
AROUND = frozenset(f"w:{name}" for name in ("hyperlink", "ins", "moveTo", "smartTag", "customXml", "sdt", "dir", "bdo"))
DROPPED = frozenset(("w:rPr", "w:proofErr", "w:lastRenderedPageBreak", "w:softHyphen"))
"""What is said before a run, and what was noted of the old text."""
BREAKS = frozenset(("w:br", "w:cr", "w:tab", "w:ptab", "w:drawing", "w:pict", "w:object", "m:oMath", "m:oMathPara"))
RANGE = re.compile(r"""<(w:\w+?)(Start|End)\b[^>]*?\bw:id\s*=\s*["']([^"']*)""")
FIELD = re.compile(r"""<w:fldChar\b[^>]*w:fldCharType\s*=\s*["'](begin|separate|end)""")
UNREADABLE = (BadZipFile, EOFError, LookupError, OSError, RuntimeError, ValueError, lzma.LZMAError, zlib.error)


class Paragraph:
    """Runs in a row, which `begin` in the text; of each token the properties of its run, or None outside of runs."""

    def __init__(self, begin: int, raw: str, pieces: Sequence[tuple[str | None, Token]]) -> None:
        self.begin, self.end, self.raw = begin, begin + len(raw), raw
        looks = [None if properties is None else UNSEEN.sub("", properties) for properties, _ in pieces]
        sizes, formats = Counter[str](), dict[str, str]()
        for look, (properties, token) in zip(looks, pieces, strict=True):
            if look is not None:
                sizes[look] += len(token.text)
                formats.setdefault(look, properties or "")
        [(usual, _)] = sizes.most_common(1)
        run = {key: f"<w:r>{properties}{TEXT}" for key, properties in formats.items()}
        tokens = [Token("point", run[usual])]
        for key, own in groupby(zip(looks, pieces, strict=True), lambda pair: pair[0]):
            inside = [token for _, (_, token) in own]
            if key is None:
                inside = [replace(token, raw=END_RUN + token.raw + run[usual]) for token in inside]
            elif key != usual:
                begun = Token("open", END_RUN + run[key], name="w:r", optional=True)
                inside = [begun, *inside, Token("close", END_RUN + run[usual], name="w:r", optional=True)]
            tokens += inside
        tokens.append(Token("point", END_RUN))
        sentence = Sentence(0, tokens, partial(escape, quote=False))
        self.content, self.lines = Spliced("".join(token.raw for token in tokens), [sentence]), sentence.lines

    def render(self, translations: Sequence[Translated]) -> str:
        written = self.content.render(translations)
        if written == self.content.text:
            return self.raw
        return EMPTY_RUN.sub("", written.replace(TEXT + END, ""))


class Reader:
    """Collects the paragraphs of a part, which is well-formed; elements are the numbers of their first tags."""

    def __init__(self, text: str) -> None:
        self.text, self.parts, self.tags = text, list[Paragraph](), [tag for tag in TAG.finditer(text) if tag["name"]]
        self.last, begun = list(range(len(self.tags))), list[int]()
        for number, tag in enumerate(self.tags):
            if tag["end"]:
                self.last[begun.pop()] = number
            elif not tag[0].endswith("/>"):
                begun.append(number)
            if len(begun) > DEEPEST:
                raise NMTError(f"elements in more than {DEEPEST} levels")
        self.begin, self.end, self.pieces = 0, 0, list[tuple[str | None, Token]]()
        """Of the next paragraph so far: its tokens, with the properties of their runs."""
        for number, tag in enumerate(self.tags):
            if tag["full"] == "w:p" and not tag["end"]:
                self.add_all(self.children(number))
                self.end_paragraph()
        self.parts.sort(key=lambda part: part.begin)

    def children(self, of: int) -> list[int]:
        found, each = list[int](), of + 1
        while each < self.last[of]:
            found.append(each)
            each = self.last[each] + 1
        return found

    def span(self, first: int, last: int) -> tuple[int, int]:
        return self.tags[first].start(), self.tags[self.last[last]].end()

    def raw(self, element: int) -> str:
        return self.text[slice(*self.span(element, element))]

    def end_paragraph(self) -> None:
        """Make a paragraph of the pieces so far."""
        if any(token.kind == "text" and token.text.strip() for _, token in self.pieces):
            found = Paragraph(self.begin, self.text[self.begin : self.end], self.pieces)
            self.parts += [found] if found.lines else []
        self.pieces = []

    def note(self, token: Token, begin: int, end: int, properties: str | None = None) -> None:
        """Add a token, written as the text is there if it has no other way."""
        self.begin, self.end = self.begin if self.pieces else begin, end
        self.pieces.append((properties, token if token.raw else replace(token, raw=self.text[begin:end])))

    def note_around(self, name: str, begin: int, inside: Sequence[int], end: int) -> None:
        """Add an element around others, with what is before and after them."""
        begun, ended = (self.span(inside[0], inside[-1])) if inside else (end, end)
        self.note(Token("open", "", name=name), begin, begun)
        self.add_all(inside)
        self.note(Token("close", "", name=name), ended, end)

    def add_all(self, elements: Sequence[int]) -> None:
        """Add elements of a paragraph, or of one around runs in it."""
        kinds = [FIELD.findall(self.raw(each)) for each in elements]
        ends, begun, at = dict[int, int](), list[int](), 0
        for index, kind in ((index, kind) for index, own in enumerate(kinds) for kind in own):
            if kind == "begin":
                begun.append(index)
            elif kind == "end" and begun:
                ends[begun.pop()] = index
        while at < len(elements):
            is_run, last = self.tags[elements[at]]["full"] == "w:r", ends.get(at, at)
            if at in ends and (is_run or last > at):
                self.add_field(elements[at : last + 1], kinds[at : last + 1])
            else:  # a field that goes on in other paragraphs is between sentences
                broken = bool(kinds[at]) if is_run else kinds[at].count("begin") != kinds[at].count("end")
                self.add(elements[at], broken)
            at = last + 1

    def add_field(self, runs: Sequence[int], kinds: Sequence[list[str]]) -> None:
        """Add what is from the beginning of a field to its end: an element around what it shows, or a copy."""
        begin, end = self.span(runs[0], runs[-1])
        middle = next((index for index, own in enumerate(kinds) if own == ["separate"]), 0)
        if 0 < middle < len(runs) - 2 and sum(map(len, kinds)) == 3:
            self.note_around("field", begin, runs[middle + 1 : -1], end)
        else:
            shown = "".join(map(unescape, SHOWN.findall(self.text[begin:end])))
            self.note(Token("copy", "", shown, breaks=not shown), begin, end)

    def add(self, element: int, broken: bool) -> None:
        """Add an element of a paragraph; a broken one is between sentences, but not what is in it."""
        name, span, inside = self.tags[element]["full"], self.span(element, element), self.children(element)
        if broken or name == "w:pPr" or re.search(r"<w:p[\s>]", self.raw(element)):
            self.end_paragraph()
            if name in AROUND:
                self.add_all(inside)
                self.end_paragraph()
        elif name == "w:r":
            self.add_run(inside, *span)
        elif name in AROUND:
            content = (self.children(each) for each in inside if self.tags[each]["full"] == "w:sdtContent")
            inside = next(content, inside)
            inside = [each for each in inside if not self.tags[each]["full"].endswith("Pr")]
            self.note_around(name, span[0], inside, span[1])
        elif name not in DROPPED:
            token, ranged = Token("point", "", breaks=name in BREAKS), RANGE.match(self.raw(element))
            if ranged:  # as of a bookmark, or of a comment
                token = Token("open" if ranged[2] == "Start" else "close", "", name=ranged[1] + ranged[3])
            self.note(token, *span)

    def add_run(self, inside: Sequence[int], begin: int, end: int) -> None:
        """Add what is in a run."""
        properties = "".join(self.raw(each) for each in inside if self.tags[each]["full"] == "w:rPr")
        for each in inside:
            name, raw = self.tags[each]["full"], self.raw(each)
            if shown := SHOWN.fullmatch(raw):
                self.note(Token("text", shown[1] or END + TEXT, unescape(shown[1])), begin, end, properties)
            elif name not in DROPPED:
                self.note(Token("point", END + raw + TEXT, breaks=name in BREAKS), begin, end, properties)


class Docx(Document):
    """An archive with parts that are translated."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        self.content, self.parts = content, dict[int, Spliced]()
        try:
            with ZipFile(io.BytesIO(content)) as archive:
                self.files, self.comment = archive.infolist(), archive.comment
                if (size := sum(file.file_size for file in self.files)) > LARGE:
                    raise NMTError(f"{size:,} bytes when unpacked, of {LARGE:,} that a document may have")
                self.contents = list(map(archive.read, self.files))
            texts = {n: self.contents[n].decode() for n, file in enumerate(self.files) if PART.fullmatch(file.filename)}
            if sum(text.count("<") for text in texts.values()) > MOST_TAGS:
                raise NMTError(f"more than {MOST_TAGS:,} tags: split it")
            for number, text in texts.items():
                check_xml(text)
                self.parts[number] = Spliced(text, Reader(text).parts)
        except UNREADABLE as error:  # zipfile raises all of these
            raise NMTError(f"no DOCX, or damaged or encrypted ({one_line(error)})") from error
        if not any("<w:body" in part.text for part in self.parts.values()):
            raise NMTError("no word/document.xml with text in it: save it as DOCX")
        self.lines = [line for part in self.parts.values() for line in part.lines]

    def join(self, translations: Sequence[Translated]) -> bytes:
        found, contents = iter(translations), self.contents.copy()
        for number, part in self.parts.items():
            contents[number] = part.render(list(islice(found, len(part.lines)))).encode()
        if contents == self.contents:
            return self.content
        written = io.BytesIO()
        with ZipFile(written, "w") as archive:
            archive.comment = self.comment
            for file, content in zip(self.files, contents, strict=True):
                archive.writestr(copy(file), content)
        return written.getvalue()
