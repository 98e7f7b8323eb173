"""The lines of a message catalog. Only translations, flags and the language header change."""

import re
from collections.abc import Iterable
from itertools import takewhile

import polib

from nmt.config import NMTError
from nmt.plugins.documents.headers import LANGUAGE

HEADER = re.compile(r'^[ \t]*msgid[ \t]+""\s+msgstr[ \t]+".*(?:\s+".*)*', re.MULTILINE)
DECLARED = re.compile(rf'((?:"|\\n){LANGUAGE}:)[^"\\]*')
FLAGS = re.compile(r"#,[ \t]*")
FUZZY = "fuzzy"
"""Gettext ignores fuzzy translations until someone has reviewed them."""
KEYWORD = r"msg\w+(?:\[\d+\])?"
STRING = r'"(?>(?:[^"\\]|\\.)*)"'
LINE = re.compile(rf"\s*(?:{KEYWORD})?\s*(?:{STRING}\s*)?")
"""A line of a message: a keyword, a string, or both."""
CROWDED_LINE = re.compile(rf"(?>(?:\s*(?:{KEYWORD}|{STRING}))+)\s*")
"""A line with any number of keywords and strings."""
KIND = re.compile(r'msgstr|msg\w+|"|#~\||#[~,|]?|')


class CatalogLines:
    """The text of a catalog, in which messages are replaced in place.

    polib would rewrite the whole catalog and thereby wrap comments and references at another
    width, drop empty comments, and sort comments by their kind.
    """

    def __init__(self, text: str, catalog: Iterable[polib.POEntry]) -> None:
        """`catalog` contains the messages as polib read them from this text."""
        # polib counts lines in the same way.
        self.lines = text.splitlines(keepends=True)
        self.line_end = "\r\n" if "\r\n" in text else "\n"
        starts = sorted(start_of(entry) for entry in catalog)
        # A message ends where the next one begins.
        ends = [*starts[1:], len(self.lines)]
        self.ends = dict(zip(starts, ends, strict=False))

    def replace(self, entry: polib.POEntry, translation: str, is_fuzzy: bool = True) -> None:
        """Write the `msgstr` lines of a message, and mark the message as fuzzy if it is."""
        start = start_of(entry)
        end = self.ends[start]
        block = self.lines[start:end]
        kinds = [kind_of(line) for line in block]
        first = kinds.index("msgstr")
        after = first + len(list(takewhile(is_translation, kinds[first:])))
        replaced = "".join(block[first:after])
        # A file may end without a line break, and blank lines follow most messages.
        following_space = replaced[len(replaced.rstrip()) :]
        block[first:after] = [translation.replace("\n", self.line_end) + following_space]
        if is_fuzzy and FUZZY not in entry.flags:
            self.add_flag(block, kinds[:first])
        # Empty lines keep the numbers of the lines that follow.
        self.lines[start:end] = ["".join(block)] + [""] * (end - start - 1)

    def add_flag(self, block: list[str], kinds: list[str]) -> None:
        """Add the flag to a message; `kinds` are those of its lines before the translation."""
        # A message has one line of flags, behind its comments and before its previous text (#|).
        if "#," in kinds:
            number = kinds.index("#,")
            has_others = bool(FLAGS.sub("", block[number]).strip())
            flag = f"#, {FUZZY}, " if has_others else f"#, {FUZZY}"
            block[number] = FLAGS.sub(flag, block[number], count=1)
        else:
            number = len(list(takewhile(is_before_flags, kinds)))
            block.insert(number, f"#, {FUZZY}{self.line_end}")

    def text(self, language: str | None) -> str:
        """The whole catalog; `language` replaces the one that the header declares."""
        text = "".join(self.lines)
        header = HEADER.search(text)
        if language is None or not header:
            return text
        declared = DECLARED.sub(lambda key: f"{key[1]} {language}", header[0], count=1)
        return text[: header.start()] + declared + text[header.end() :]


def start_of(entry: polib.POEntry) -> int:
    """The index of the first line of a message."""
    number: int = entry.linenum
    # polib counts lines from 1, but gives the first message of a file line 0.
    return max(number - 1, 0)


def damaged_line(text: str) -> int:
    """The number of the first line that msgfmt rejects, but polib does not; 0 if there is none.

    No comment may stand within a message, and every message needs a translation, even an empty one.
    """
    # As after a translation, comments may come before the first message.
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


def check_lines(text: str) -> None:
    """Raise NMTError for a line that polib would not read as msgfmt does."""
    # Strings may contain the characters besides \\n at which `splitlines` breaks.
    for number, line in enumerate(text.split("\n"), start=1):
        if kind_of(line)[:1] not in ("m", '"') or LINE.fullmatch(line):
            continue
        if CROWDED_LINE.fullmatch(line):
            raise NMTError(
                f"line {number}: more than one keyword or string on a line, which nmt does not "
                "read; run `msgcat FILE -o FILE`"
            )
        # polib would drop the last character of such a string.
        raise NMTError(f"line {number}: a string without a closing quotation mark")


def kind_of(line: str) -> str:
    """The keyword with which a line begins, such as `msgstr`, `"` or `#,`.

    It is empty for a blank line.
    """
    keyword = KIND.match(line.strip())
    return keyword[0] if keyword else ""


def is_translation(kind: str) -> bool:
    """True for the lines of a translation, and blank lines within or after them."""
    return kind in ("msgstr", '"', "")


def is_before_flags(kind: str) -> bool:
    """True for lines that belong before the flags of a message: blank lines and comments."""
    return kind in ("", "#")
