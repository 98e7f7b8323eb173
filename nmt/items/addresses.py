"""Find the borders of addresses and file names in text whose words adjoin them.

Addresses and file names may have letters of any script. In scripts without blanks and in Korean,
words may follow them directly; then, only the rest of the line shows whether such letters are part
of them.
"""

import re
from collections.abc import Mapping
from functools import cached_property

from nmt.items.patterns import LATIN_NAME, OPENING_MARKS, URL, compiled
from nmt.text import ARABIC_PREFIX, HEBREW_PREFIX, HIRAGANA, WITHOUT_BLANKS, script

QUOTES = {
    '"': '"',
    "'": "'",
    "`": "`",
    "\u201c": "\u201d",
    "\u00ab": "\u00bb",
    "\u300c": "\u300d",
    "\u300e": "\u300f",
    "\u3010": "\u3011",
    "\u300a": "\u300b",
}
"""Opening quotation mark -> closing quotation mark."""
BRACKETS = {
    "(": ")",
    "[": "]",
    "<": ">",
    "\uff08": "\uff09",
}
JAPANESE = ("HIRAGANA", "KATAKANA", "CJK")
LATIN_CHARACTER = compiled(r"[\L]")
ADJOINING = compiled(r"[\N]")
LATIN_FILE = compiled(LATIN_NAME)
LETTERS = compiled(r"(?![\L\d])[\A]+")
"""Letters that are not Latin."""
HIRAGANA_LETTER = re.compile(HIRAGANA)
NAME_ENDING = re.compile(r"\.[A-Za-z\d]{1,8}$")
JOINED_PREFIX = re.compile(rf"(?:{ARABIC_PREFIX.pattern}|{HEBREW_PREFIX.pattern})[-\u0640]?")
"""A prefix that Hebrew or Arabic joins to a word with a hyphen or with tatweel."""
IN_HOST = re.compile(r"//[^/]*\.[^/]*$")
LEFT_BORDER = re.compile(rf"[\s{OPENING_MARKS}]")
RIGHT_BORDER = re.compile(r"[\s.,;:!?)\"'\u201d\u00bb\u300d\u300f\u3011\u300b\uff09\u3001\u3002]")
CONTINUED = compiled(r"[&=#%+]|[/.][\A]")
"""Characters that continue an address after letters that are part of it."""


def group(letter: str) -> str:
    """A letter's script; the scripts of Japanese and Chinese are the same."""
    name = script(letter)
    return JAPANESE[0] if name in JAPANESE else name


class Surroundings:
    """A line around its addresses and file names."""

    def __init__(self, line: str) -> None:
        self.line = line

    @cached_property
    def scripts(self) -> set[str]:
        """The scripts of the line, apart from its URLs."""
        characters = {*URL.sub(" ", self.line)}
        return {group(character) for character in characters} - {""}

    def has_script(self, letters: str) -> bool:
        """Whether the line is written in the script of some letters."""
        return not self.scripts.isdisjoint(map(group, letters))

    def is_enclosed(self, start: int, end: int, pairs: Mapping[str, str]) -> bool:
        """Whether a pair of marks encloses a span.

        The end of the span may include the closing mark and punctuation.
        """
        closing = pairs.get(self.line[start - 1 : start])
        if closing is None:
            return False
        last_characters = self.line[max(start, end - 3) : end + 1]
        return closing in last_characters

    def without_words(self, start: int, end: int) -> tuple[int, int]:
        """The span of an address or file name, given with all letters that adjoin it.

        It is empty if nothing shows where a file name begins.
        """
        if self.is_enclosed(start, end, QUOTES):
            return start, end
        if end < len(self.line) and LETTERS.match(self.line, end):
            # A hyphen joins a particle: a@b.org-ზე.
            without_hyphens = self.line[start:end].rstrip("-")
            end = start + len(without_hyphens)
        is_url = URL.match(self.line, start)
        if not is_url and NAME_ENDING.search(self.line[start:end]):
            return self.without_words_before(start, end)
        if self.is_enclosed(start, end, BRACKETS):
            return start, end
        return start, self.without_words_after(start, end)

    def without_words_after(self, start: int, end: int) -> int:
        """The end of an address, before the words that merely follow it."""
        in_host = False
        for letters in LETTERS.finditer(self.line, start, end):
            before = self.line[start : letters.start()]
            if before.endswith("//"):
                in_host = True
            elif in_host:
                in_host = "/" not in before.rpartition("//")[2]
            # A host in letters of other scripts is part of the address: https://пример.рф.
            if not in_host and self.begins_text(before, letters, end):
                return start + len(before.rstrip("-"))
        return end

    def begins_text(self, before: str, letters: re.Match[str], end: int) -> bool:
        """Whether letters in an address, after its beginning `before`, are text that follows it.

        `letters` is a match of LETTERS, `end` the index at which the address and its letters end.
        """
        # A host does not end with a hyphen, so the hyphen joins a particle.
        if before.endswith("-") and IN_HOST.search(before):
            return True
        is_after_latin = LATIN_CHARACTER.match(before[-1:]) is not None
        is_script_of_line = self.has_script(letters[0])
        if not ADJOINING.match(letters[0]):
            # Languages with blanks join only particles to the end, some with a hyphen.
            is_joined = is_after_latin or before.endswith("-")
            return is_script_of_line and is_joined and letters.end() == end
        if is_after_latin:
            # In a line without other text, too, such as an address with a particle.
            return is_script_of_line or not self.scripts
        # Particles and verbs follow an address. A path is rather a noun in other characters.
        is_particle = before.endswith("/") and HIRAGANA_LETTER.match(letters[0]) is not None
        may_be_text = is_script_of_line or is_particle
        return may_be_text and not CONTINUED.match(self.line, letters.end(), end)

    def without_words_before(self, start: int, end: int) -> tuple[int, int]:
        """The span of a file name, after the words before it in a script without blanks.

        Prefixes that Arabic and Hebrew join to a Latin file name are not part of it.
        """
        prefix = JOINED_PREFIX.match(self.line, start, end)
        if prefix and LATIN_FILE.fullmatch(self.line, prefix.end(), end):
            return prefix.end(), end
        name = self.line[start:end]
        if not WITHOUT_BLANKS.search(name) or not self.has_script(name):
            return start, end
        latin = LATIN_FILE.search(self.line, start, end)
        if latin:
            return latin.span()
        before = self.line[max(start - 1, 0) : start]
        after = self.line[end : end + 1]
        begins = not before or LEFT_BORDER.match(before)
        ends = not after or RIGHT_BORDER.match(after)
        if begins and ends:
            return start, end
        return start, start
