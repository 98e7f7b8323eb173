"""DOCX (ECMA-376, part 1, section 17): paragraphs are sentences, and runs that look unlike most are elements in them.

Paragraphs that are translated are written anew; all else in their parts, and all other files in the archive, stay.
"""

import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape, unescape
from itertools import groupby
from zipfile import BadZipFile, ZipFile

from nmt.documents.document import Spliced, Translated
from nmt.documents.markup import Sentence, Token
from nmt.documents.xliff import TAG, check_xml
from nmt.errors import NMTError, one_line
from nmt.storage.foreign import LARGE

PART = re.compile(r"word/(?:document|header|footer|footnotes|endnotes)\d*\.xml")
MOST_TAGS, DEEPEST = 2**20, 250
"""In a part, which bounds its memory; long books have half a million, in a dozen levels."""
TEXT, END, END_RUN = '<w:t xml:space="preserve">', "</w:t>", "</w:t></w:r>"
UNSEEN = re.compile(r"<w:(?:lang|noProof)\b[^>]*/>|<w:rPr>(?=</)|(?<=<w:rPr>)</w:rPr>|<w:rPr/>")
"""Properties of a run that do not show."""
AROUND = frozenset(f"w:{name}" for name in ("hyperlink", "ins", "moveTo", "smartTag", "customXml", "sdt", "dir", "bdo"))
"""Elements around runs."""
DROPPED = frozenset(("w:proofErr", "w:lastRenderedPageBreak"))
"""What a word processor noted of the old text."""
BREAKS = frozenset(("w:br", "w:cr", "w:tab", "w:ptab", "w:drawing", "w:pict", "w:object", "m:oMath", "m:oMathPara"))
RANGE = re.compile(r"""<(w:\w+?)(Start|End)\b[^>]*?\bw:id\s*=\s*["']([^"']*)""")
"""Where a bookmark, a comment or the like begins and ends."""
UNREADABLE = (BadZipFile, EOFError, LookupError, OSError, RuntimeError, ValueError, lzma.LZMAError, zlib.error)
"""What zipfile raises for archives that are damaged, encrypted or of another kind."""
FIELD = re.compile(r"""<w:fldChar\b[^>]*w:fldCharType\s*=\s*["'](begin|separate|end)""")


@dataclass(slots=True)
class Element:
    """An element, from its tag to that which closes it; its content is between `inside` and `after`."""

    name: str
    begin: int
    inside: int
    after: int
    end: int
    children: list["Element"] = field(default_factory=list)
    paragraphs: bool = False
    """True if it holds any."""
    fields: int = 0
    """How many fields begin in it, without those that end in it."""

    def all(self, name: str) -> Iterator["Element"]:
        """The elements of that name in it, in order."""
        for child in self.children:
            if child.name == name:
                yield child
            yield from child.all(name)


def tree_of(text: str) -> Element:
    """The elements of a part, which is well-formed; NMTError where it is too large."""
    if text.count("<") > MOST_TAGS:
        raise NMTError(f"more than {MOST_TAGS:,} tags in a part: split the document")
    stack = [Element("", 0, 0, 0, 0)]
    for tag in TAG.finditer(text):
        if not tag["name"]:
            continue
        if not tag["end"]:
            name, kind = re.split(r"[\s/>]", tag[0][1:], maxsplit=1)[0], FIELD.match(tag[0])
            found = Element(name, tag.start(), tag.end(), tag.end(), tag.end())
            found.fields = {"begin": 1, "end": -1}.get(kind[1], 0) if kind else 0
            stack[-1].children.append(found)
            stack.append(found)
        if tag["end"] or tag[0].endswith("/>"):
            done = stack.pop()
            done.after, done.end = tag.start() if tag["end"] else tag.end(), tag.end()
            stack[-1].fields += done.fields
            stack[-1].paragraphs |= done.paragraphs or done.name == "w:p"
        if len(stack) > DEEPEST:
            raise NMTError(f"elements in more than {DEEPEST} levels")
    return stack[0]


def fields_in(children: Sequence[Element]) -> dict[int, int]:
    """The index of the element that a field begins in, and of that which it ends in."""
    found, begun = dict[int, int](), list[int]()
    for index, child in enumerate(children):
        begun += [index] * child.fields
        for _ in range(min(-child.fields, len(begun))):
            found[begun.pop()] = index
    return found


class Paragraph:
    """Runs in a row, which `begin` in the text; of each token the properties of its run, or None outside of runs."""

    def __init__(self, begin: int, raw: str, pieces: Sequence[tuple[str | None, Token]]) -> None:
        self.begin, self.end, self.raw = begin, begin + len(raw), raw
        sizes, self.formats = Counter[str](), dict[str, str]()
        for properties, token in pieces:
            if properties is not None:
                sizes[UNSEEN.sub("", properties)] += len(token.text)
                self.formats.setdefault(UNSEEN.sub("", properties), properties)
        usual = max(sizes, key=lambda key: sizes[key])
        run = {key: f"<w:r>{properties}{TEXT}" for key, properties in self.formats.items()}
        tokens = [Token("point", run[usual])]
        for key, own in groupby(pieces, lambda piece: piece[0] if piece[0] is None else UNSEEN.sub("", piece[0])):
            inside = [token for _, token in own]
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
        written = written.replace(TEXT + END, "")
        for properties in self.formats.values():
            written = written.replace(f"<w:r>{properties}</w:r>", "")
        return written


class Reader:
    """Collects the paragraphs of a part."""

    def __init__(self, text: str) -> None:
        self.text, self.parts, self.pieces = text, list[Paragraph](), list[tuple[str | None, Token]]()
        self.begin = self.end = 0
        """Of the pieces, which are the tokens of the next paragraph so far, and their formatting."""
        for paragraph in tree_of(text).all("w:p"):
            self.add_all(paragraph.children)
            self.end_paragraph()
        self.parts.sort(key=lambda part: part.begin)

    def raw(self, element: Element) -> str:
        return self.text[element.begin : element.end]

    def end_paragraph(self) -> None:
        """Make a paragraph of the pieces so far."""
        if any(token.kind == "text" and token.text.strip() for _, token in self.pieces):
            found = Paragraph(self.begin, self.text[self.begin : self.end], self.pieces)
            self.parts += [found] if found.lines else []
        self.pieces = []

    def note(self, begin: int, end: int, token: Token, properties: str | None = None) -> None:
        """Add a token, written as the text from `begin` to `end` if it has no other way."""
        self.begin = self.begin if self.pieces else begin
        self.end = end
        self.pieces.append((properties, token if token.raw else replace(token, raw=self.text[begin:end])))

    def add_all(self, children: Sequence[Element]) -> None:
        """Add elements of a paragraph, or of one around runs in it."""
        at, fields = 0, fields_in(children)
        while at < len(children):
            last = fields.get(at, at)
            if last > at:
                self.add_field(children[at : last + 1])
            else:
                self.add(children[at])
            at = last + 1

    def add_field(self, runs: Sequence[Element]) -> None:
        """Add what is from the beginning of a field to its end: an element if it is a link, else it is copied."""
        raw = self.text[runs[0].begin : runs[-1].end]
        middle = next((n for n, run in enumerate(runs) if 'separate"' in self.raw(run)), 0)
        is_link = re.search(r"<w:instrText[^>]*>\s*HYPERLINK\b", raw) and len(FIELD.findall(raw)) == 3
        if is_link and 0 < middle < len(runs) - 1 and not any(run.paragraphs for run in runs):
            self.note(runs[0].begin, runs[middle].end, Token("open", "", name="field"))
            self.add_all(runs[middle + 1 : -1])
            self.note(runs[-1].begin, runs[-1].end, Token("close", "", name="field"))
        else:
            shown = "".join(map(unescape, re.findall(r"<w:t(?:\s[^>]*)?>([^<]*)", raw)))
            self.note(runs[0].begin, runs[-1].end, Token("copy", "", shown, breaks=not shown))

    def add(self, child: Element) -> None:
        """Add an element of a paragraph."""
        if child.name == "w:pPr" or child.paragraphs or child.fields:
            self.end_paragraph()
            if child.name in AROUND:
                self.add_all(child.children)
                self.end_paragraph()
        elif child.name == "w:r" and FIELD.search(self.raw(child)):
            self.add_field([child])
        elif child.name == "w:r":
            self.add_run(child)
        elif child.name in AROUND:
            body = next((each for each in child.children if each.name == "w:sdtContent"), child)
            inside = max([body.inside, *(each.end for each in body.children if each.name.endswith("Pr"))])
            self.note(child.begin, inside, Token("open", "", name=child.name))
            self.add_all([each for each in body.children if each.begin >= inside])
            self.note(body.after, child.end, Token("close", "", name=child.name))
        elif child.name not in DROPPED:
            ranged = RANGE.match(self.raw(child))
            token = Token("point", "", breaks=child.name in BREAKS)
            if ranged:
                token = Token("open" if ranged[2] == "Start" else "close", "", name=ranged[1] + ranged[3])
            self.note(child.begin, child.end, token)

    def add_run(self, run: Element) -> None:
        """Add what is in a run."""
        properties = "".join(self.raw(each) for each in run.children if each.name == "w:rPr")
        for child in run.children:
            raw = self.text[child.inside : child.after]
            if child.name == "w:t" and "<" not in raw:
                self.note(run.begin, run.end, Token("text", raw, unescape(raw)), properties)
            elif child.name not in DROPPED | {"w:rPr"}:
                raw = f"{END}{self.raw(child)}{TEXT}"
                hyphen = {"w:noBreakHyphen": "-", "w:softHyphen": ""}.get(child.name)
                token = Token("point", raw, breaks=child.name in BREAKS)
                self.note(run.begin, run.end, token if hyphen is None else Token("text", raw, hyphen), properties)


class Docx:
    """An archive with parts that are translated."""

    def __init__(self, content: bytes) -> None:
        self.content, self.parts = content, dict[int, Spliced]()
        try:
            self.archive = ZipFile(io.BytesIO(content))
            self.files = self.archive.infolist()
            size = sum(file.file_size for file in self.files)
            if size > LARGE:
                raise NMTError(f"{size:,} bytes when unpacked, of {LARGE:,} that a document may have")
            for number, file in enumerate(self.files):
                if PART.fullmatch(file.filename):
                    text = self.archive.read(file).decode()
                    check_xml(text)
                    self.parts[number] = Spliced(text, Reader(text).parts)
            if not any("<w:body" in part.text for part in self.parts.values()):
                raise NMTError("no word/document.xml with text in it: save it as DOCX")
            self.others = {n: self.archive.read(file) for n, file in enumerate(self.files) if n not in self.parts}
        except UNREADABLE as error:
            raise NMTError(f"no DOCX, or damaged or encrypted ({one_line(error)})") from error
        self.lines = [line for part in self.parts.values() for line in part.lines]

    def join(self, translations: Sequence[Translated]) -> bytes:
        written, at = io.BytesIO(), 0
        with ZipFile(written, "w") as archive:
            archive.comment = self.archive.comment
            for number, file in enumerate(self.files):
                content = self.others.get(number, b"")
                if part := self.parts.get(number):
                    content = part.join(translations[at : at + len(part.lines)])
                    at += len(part.lines)
                archive.writestr(copy(file), content)
        same = all(new.text.split() == old.split() for new, old in zip(translations, self.lines, strict=False))
        return self.content if same else written.getvalue()
