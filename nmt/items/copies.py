"""Marks for the elements that a document copies, such as a tag or a footnote."""

import re

FIRST_MARK = 0x10E000
MARK_COUNT = 2047
"""All characters from FIRST_MARK to the one before BLANK."""
COPIES = "".join(chr(FIRST_MARK + number) for number in range(MARK_COUNT))
"""Private-use characters that mark copies. A mark may enclose a text; see `copy_of`."""
BLANK = "\U0010e7ff"
"""The blanks in the text of a copy, because an item has no blanks."""
COPY = re.compile(rf"([{COPIES[0]}-{COPIES[-1]}])(?:([^\s{COPIES[0]}-{COPIES[-1]}]*)\1)?")
"""A mark alone, or two equal marks with the text of the copy between them."""
MARKS_AND_BLANKS = re.compile(f"[{COPIES[0]}-{BLANK}]")
LONGEST_COPY = 60
"""The maximum number of characters of a copy that a model is shown as text."""


def copy_of(mark: str, text: str) -> str:
    """An item, without blanks, for something that a document copies.

    `text` is what a model may see in its place.
    """
    text = " ".join(text.split())
    text = MARKS_AND_BLANKS.sub("", text)
    has_word = any(map(str.isalnum, text))
    if len(text) > LONGEST_COPY or not has_word:
        return mark
    return f"{mark}{text.replace(' ', BLANK)}{mark}"


def readable(text: str, otherwise: str = "\u2026") -> str:
    """The text with what its copies show; `otherwise` stands for copies that show nothing."""

    def shown(copy: re.Match[str]) -> str:
        copied_text = copy[2] or otherwise
        return copied_text.replace(BLANK, " ")

    return COPY.sub(shown, text)
