"""Messages of Java's MessageFormat (java.text.MessageFormat), such as `Can''t open {0}`.

An apostrophe begins a quotation, and two stand for one. Without arguments, most programs do not
parse a message, so apostrophes are doubled only where the source doubles them.
"""

import re
from collections.abc import Sequence

from nmt.plugins.catalogs.templates import STRING, Template
from nmt.plugins.documents import Kind, Part, is_message

ARGUMENT = re.compile(r"\{\s{0,9}\d{1,3}\s{0,9}(?:,[^{}]{0,200})?\}")
QUOTED_BRACES = r"(?<!')'(?:[{}]|\{[^{}']{0,200}\})'"
PLACEHOLDER = re.compile(rf"{ARGUMENT.pattern}|{QUOTED_BRACES}")
APOSTROPHE = re.compile(rf"''|{QUOTED_BRACES}|'")


class JavaMessage(Template):
    """A message, whose arguments are copied; with `is_doubled`, two apostrophes stand for one."""

    def __init__(self, text: str, is_doubled: bool) -> None:
        has_argument = ARGUMENT.search(text) is not None
        doubles = "''" in text or (has_argument and is_doubled and not has_lone_apostrophe(text))
        super().__init__(text, PLACEHOLDER, DOUBLED if doubles else STRING)

    def find_parts(self, text: str) -> list[Part]:
        # Programs with ICU's MessageFormat use the same files.
        if is_message(text):
            # Without their own kind, as in files of other formats.
            self.kind = STRING
            self.placeholder = NOTHING
        return super().find_parts(text)


NOTHING = re.compile(r"(?!)")


def doubles_apostrophes(texts: Sequence[str]) -> bool:
    """Whether the messages of a file follow the rules of MessageFormat."""
    if any("''" in text for text in texts):
        return True
    # Other programs that replace {0}, such as those in JavaScript, know no quotations.
    return not any(ARGUMENT.search(text) and has_lone_apostrophe(text) for text in texts)


def has_lone_apostrophe(text: str) -> bool:
    return "'" in APOSTROPHE.findall(text)


def read_text(raw: str) -> str:
    return raw.replace("''", "'")


def write_text(text: str) -> str:
    return re.sub(r"[{}]", r"'\g<0>'", text.replace("'", "''"))


DOUBLED = Kind(read=read_text, write=write_text)
