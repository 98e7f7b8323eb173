"""The lines of a message catalog. Only translations, flags and the language header change."""

import re
from collections.abc import Iterable
from itertools import takewhile

import polib

from nmt.plugins.documents.headers import LANGUAGE

HEADER = re.compile(r'^[ \t]*msgid[ \t]+""\s+msgstr[ \t]+".*(?:\s+".*)*', re.MULTILINE)
DECLARED = re.compile(rf'((?:"|\\n){LANGUAGE}:)[^"\\]*')
FLAGS = re.compile(r"#,[ \t]*")
# Gettext ignores fuzzy translations until someone has reviewed them.
FUZZY = "fuzzy"


class CatalogLines:
    """The text of a catalog, in which messages are replaced in place.

    polib would write the whole catalog anew and thereby wrap comments and references at another
    width, drop empty comments, and sort comments by their kind.
    """

    def __init__(self, text: str, catalog: Iterable[polib.POEntry]) -> None:
        """`catalog` contains the messages as polib read them from this text."""
        # polib counts lines in the same way.
        self.lines = text.splitlines(keepends=True)
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        # polib gives the first message of a file line 0.
        starts = sorted(max(entry.linenum - 1, 0) for entry in catalog)
        self.ends = dict(zip(starts, [*starts[1:], len(self.lines)], strict=False))

    def replace(self, entry: polib.POEntry, translation: str) -> None:
        """Write the `msgstr` lines of a message, and mark the message as fuzzy."""
        start = max(entry.linenum - 1, 0)
        block = self.lines[start : self.ends[start]]
        kinds = [kind_of(line) for line in block]
        first = kinds.index("msgstr")
        length = len(list(takewhile(is_translation, kinds[first:])))
        replaced = "".join(block[first : first + length])
        # A file may end without a line break, and blank lines follow most messages.
        end = replaced[len(replaced.rstrip()) :]
        block[first : first + length] = [translation.replace("\n", self.line_end) + end]
        if FUZZY not in entry.flags:
            self.add_flag(block, kinds[:first])
        # Keep the numbers of the lines that follow.
        self.lines[start : self.ends[start]] = ["".join(block)] + [""] * (
            self.ends[start] - start - 1
        )

    def add_flag(self, block: list[str], kinds: list[str]) -> None:
        """Add the flag to a message; `kinds` are those of its lines before the translation."""
        if "#," in kinds:
            number = kinds.index("#,")
            has_others = bool(FLAGS.sub("", block[number]).strip())
            flag = f"#, {FUZZY}, " if has_others else f"#, {FUZZY}"
            block[number] = FLAGS.sub(flag, block[number], count=1)
        else:
            number = len(list(takewhile(is_comment, kinds)))
            block.insert(number, f"#, {FUZZY}{self.line_end}")

    def text(self, language: str | None) -> str:
        """The whole catalog; `language` replaces the one that the header declares."""
        text = "".join(self.lines)
        header = HEADER.search(text)
        if language is None or not header:
            return text
        declared = DECLARED.sub(lambda key: f"{key[1]} {language}", header[0], count=1)
        return text[: header.start()] + declared + text[header.end() :]


def damaged_line(text: str) -> int:
    """The number of the first line that msgfmt rejects, but polib does not; 0 if there is none.

    No comment may stand within a message, and every message needs a translation, even an empty one.
    """
    keyword = "msgstr"
    after_comment = False
    number = 0
    for number, line in enumerate(text.splitlines(), start=1):
        kind = kind_of(line)
        is_note = kind.startswith("#")
        if is_note and keyword != "msgstr":
            return number
        if after_comment and kind in ("msgstr", '"'):
            return number
        if kind:
            after_comment = is_note
        if kind.startswith("msg"):
            keyword = kind
    return 0 if keyword == "msgstr" else number


def kind_of(line: str) -> str:
    """The keyword with which a line begins, such as `msgstr`, `"` or `#,`; empty for a blank line."""
    keyword = re.match(r'msgstr|msg\w+|"|#~\||#[~,|]?|', line.strip())
    return keyword[0] if keyword else ""


def is_translation(kind: str) -> bool:
    """True for the lines of a translation, and blank lines within or after them."""
    return kind in ("msgstr", '"', "")


def is_comment(kind: str) -> bool:
    """True for lines that belong before the flags of a message."""
    return kind in ("", "#")
