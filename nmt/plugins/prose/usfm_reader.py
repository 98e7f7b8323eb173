"""Finds the sentences in USFM, with their markers."""

import re
from collections import Counter
from collections.abc import Sequence

from nmt.config import NMTError
from nmt.plugins.documents import MarkupToken, Part, Sentence, Spliced, marked
from nmt.plugins.prose.usfm_markers import (
    BEFORE_TEXT,
    CHARACTERS,
    COMMENTS,
    CONTINUING,
    COPIED,
    COUNTED,
    KEPT,
    KEPT_IN_NOTES,
    NOTES,
    PARTS_OF_NOTES,
    REFERENCES,
    base_of,
)
from nmt.plugins.prose.verses import Verse, without_markers

NAME = r"[A-Za-z]++[0-9]*+(?:-[0-9]++)?+"
PIECE = re.compile(
    # A milestone; in old files, its end is that of the line.
    r"\\(?P<milestone>[a-z]+[0-9]*)(?P<side>-[se])?+[ \t]*+"
    r"(?:(?:\|[^\\]*+)?\\\*|(?(side)(?:\|[^\\\n]*+)?(?=\r?\n|\\|\Z)|(?!)))"
    # The attributes of a word belong to the marker that ends it.
    rf"|(?:\|[^\\|]*+)?\\\+?(?P<closing>{NAME})\*"
    r"|\\(?P<number>[cv])[ \t]++[^\s\\]++\s?"
    rf"|\\\+?(?P<opening>{NAME})(?:[ \t]|\r?\n|(?=\\|\Z))"
    # A backslash that begins no marker.
    r"|(?P<odd>\\[^\s\\]*+)"
    # A blank that does not break a line, and a place where a line may break.
    r"|~|//"
)
MARKER = re.compile(r"\\\+?[A-Za-z]")
CLOSING = re.compile(rf"\\\+?({NAME})\*")
SIGNS = r".!?:;\u2026\u3002\uff01\uff1f\u061f\u06d4\u0964"
QUOTES = r"\"'\u2019\u201d\u00bb\u300d\u300f)\]"
END_OF_SENTENCE = re.compile(rf"[{SIGNS}][{QUOTES}]*+\s*+\Z")
CALLER = re.compile(r"\s*+[^\s\\]++\s?")
LEFT_REFERENCES = "cross references left untranslated"
LEFT_ALTERNATIVES = "descriptions of figures left untranslated"
CAPTION = 5
"""The index of the caption in a figure of USFM 2."""


class Reader:
    """Reads a file or a note in it; counts what stays untranslated in `left`."""

    def __init__(self, text: str, left: Counter[str], closed: frozenset[str] | None = None) -> None:
        self.text = text
        self.left = left
        # Unknown markers are styles of characters if they have a closing marker anywhere.
        self.closed = frozenset(CLOSING.findall(text)) if closed is None else closed
        self.is_note = closed is not None
        self.is_kept = False  # whether the text stays up to the next paragraph
        self.may_continue = False  # whether a sentence may end in the next paragraph
        self.parts = list[Part]()
        self.tokens = list[MarkupToken]()  # of the sentence so far
        self.notes = list[Spliced]()  # in the sentence so far
        self.first = 0  # where the sentence begins

    def read(self, begin: int, end: int) -> list[Part]:
        """The parts of the text between two offsets."""
        at = begin
        self.first = begin
        while piece := PIECE.search(self.text, at, end):
            self.add_text(at, piece.start())
            at = self.add(piece, end)
        self.add_text(at, end)
        self.end_sentence(end)
        return self.parts

    def add_text(self, begin: int, end: int) -> None:
        if begin < end and not self.is_kept:
            raw = self.text[begin:end]
            self.tokens.append(MarkupToken("text", raw, raw))

    def add_tag(self, token: MarkupToken) -> None:
        if not self.is_kept:
            self.tokens.append(token)

    def end_sentence(self, at: int) -> None:
        """End the sentence; the next one begins at this offset or behind it."""
        if self.tokens:
            verse = Verse(self.first, self.tokens, self.notes, without_markers)
            if verse.lines:
                self.parts.append(verse)
            for note in self.notes:
                if note.begin not in verse.notes:
                    self.parts += note.parts
        self.tokens = []
        self.notes = []
        self.first = at

    def add(self, piece: re.Match[str], end: int) -> int:
        """Add a marker, and return the offset behind it and what belongs to it."""
        raw = piece[0]
        if piece["number"]:
            self.is_kept = False
            self.may_continue = True
            self.end_sentence(piece.end())
        elif piece["milestone"]:
            self.add_milestone(raw, piece["milestone"], piece["side"])
        elif piece["closing"]:
            self.add_tag(MarkupToken("close", raw, name=piece["closing"]))
        elif piece["opening"]:
            return self.add_opening(piece, end)
        elif piece["odd"]:
            self.end_sentence(piece.end())
        else:
            self.add_tag(MarkupToken("point", raw, breaks=True))
        return piece.end()

    def add_milestone(self, raw: str, name: str, side: str | None) -> None:
        """Two milestones around some words are like the tags of an element."""
        if side == "-s":
            self.add_tag(MarkupToken("open", raw, name=f"{name}-"))
        elif side == "-e":
            self.add_tag(MarkupToken("close", raw, name=f"{name}-"))
        else:
            self.add_tag(MarkupToken("point", raw))

    def add_opening(self, piece: re.Match[str], end: int) -> int:
        name = piece["opening"]
        base = base_of(name)
        if name in NOTES or name in REFERENCES or name == "fig":
            return self.add_note(piece, name, end)
        if base in COPIED or base in BEFORE_TEXT:
            return self.add_copied(piece, base, end)
        if self.is_note and self.add_part_of_note(piece, base):
            return piece.end()
        is_known = base in CHARACTERS or piece[0].startswith("\\+")
        is_unknown_style = name in self.closed and not is_paragraph(base)
        if is_known or is_unknown_style:
            self.add_tag(MarkupToken("open", piece[0], name=name))
        else:
            self.add_paragraph(piece, base)
        return piece.end()

    def add_part_of_note(self, piece: re.Match[str], base: str) -> bool:
        """Add a marker that divides a note; False if it is another one."""
        if base in KEPT_IN_NOTES:
            self.end_sentence(piece.start())
            self.is_kept = True
        elif base in PARTS_OF_NOTES:
            is_first = self.is_kept or not self.tokens
            self.is_kept = False
            if is_first:
                self.end_sentence(piece.end())
            else:
                self.tokens.append(MarkupToken("point", piece[0], name=piece["opening"]))
        else:
            return False
        return True

    def add_paragraph(self, piece: re.Match[str], base: str) -> None:
        is_continuing = base in CONTINUING
        if is_continuing and self.may_continue and self.is_in_sentence():
            self.add_line(piece[0])
            return
        # A heading is a sentence even without a period.
        self.may_continue = is_continuing
        self.end_sentence(piece.end())
        self.is_kept = base in KEPT or base in COMMENTS or base in COUNTED
        self.left[LEFT_REFERENCES] += base in COUNTED

    def is_in_sentence(self) -> bool:
        """Whether the text so far is the beginning of a sentence that goes on."""
        for token in reversed(self.tokens):
            if token.kind == "text" and token.text.strip():
                return not END_OF_SENTENCE.search(token.text)
        return False

    def add_line(self, raw: str) -> None:
        """Add the marker of a line; markers without text between them stay together."""
        blank = ""
        if (
            len(self.tokens) > 1
            and not self.tokens[-1].raw.strip()
            and self.tokens[-2].name == "line"
        ):
            blank = self.tokens.pop().raw
        if self.tokens[-1].name == "line":
            raw = self.tokens.pop().raw + blank + raw
        self.tokens.append(MarkupToken("point", raw, name="line", breaks=True))

    def add_copied(self, piece: re.Match[str], base: str, end: int) -> int:
        """Add a reference or number, with its closing marker if it has one."""
        content = re.compile(rf"[^\\]*+\\\+?{re.escape(piece['opening'])}\*\s?")
        whole = content.match(self.text, piece.end(), end)
        if not whole:
            # Its text stays up to the next marker.
            if self.is_note:
                self.add_part_of_note(piece, base)
                return piece.end()
            self.end_sentence(piece.start())
            marker = MARKER.search(self.text, piece.end(), end)
            self.first = marker.start() if marker else end
            return self.first
        if base in BEFORE_TEXT:
            self.end_sentence(whole.end())
            return whole.end()
        closing = whole.end() - len(whole[0]) + len(whole[0].rstrip())
        raw = self.text[piece.start() : closing]
        shown = raw[len(piece[0]) : raw.rindex("\\")].partition("|")[0].strip()
        self.add_tag(MarkupToken("copy" if shown else "point", raw, shown))
        return closing

    def add_note(self, piece: re.Match[str], name: str, end: int) -> int:
        """Add a note, which has sentences of its own, or a figure."""
        closing = self.text.find(f"\\{name}*", piece.end(), end)
        if closing < 0:
            line = self.text.count("\n", 0, piece.start()) + 1
            raise NMTError(f"line {line}: \\{name} is not closed: add \\{name}* where it ends")
        behind = closing + len(name) + 2
        if self.is_kept:
            return behind
        if name in REFERENCES:
            self.left[LEFT_REFERENCES] += 1
            parts: Sequence[Part] = ()
        elif name == "fig":
            parts = self.caption(piece.end(), closing)
        else:
            caller = CALLER.match(self.text, piece.end(), closing)
            begin = caller.end() if caller else piece.end()
            parts = Reader(self.text, self.left, self.closed).read(begin, closing)
        note = Spliced(self.text[piece.start() : behind], parts, piece.start())
        if note.lines:
            self.notes.append(note)
            self.add_tag(MarkupToken("point", marked(note)))
        else:
            self.add_tag(MarkupToken("point", note.text))
        return behind

    def caption(self, begin: int, end: int) -> list[Part]:
        """The caption of a figure: the text before its attributes, or a field of USFM 2."""
        fields = self.text[begin:end].split("|")
        is_old = len(fields) > CAPTION
        index = CAPTION if is_old else 0
        at = begin + sum(len(field) + 1 for field in fields[:index])
        raw = fields[index]
        description = fields[0] if is_old else "".join(re.findall(r'\balt="([^"]*)"', fields[-1]))
        self.left[LEFT_ALTERNATIVES] += any(map(str.isalpha, description))
        sentence = Sentence(at, [MarkupToken("text", raw, raw)], without_markers)
        return [sentence] if sentence.lines else []


def is_paragraph(base: str) -> bool:
    """Whether a marker is known to begin a paragraph."""
    return base in CONTINUING or base in KEPT or base in COMMENTS or base in COUNTED
