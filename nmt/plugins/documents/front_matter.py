"""Front matter of Markdown: the values of chosen keys are translated, and the rest is kept."""

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from nmt.plugins.documents.document import Part, Spliced
from nmt.plugins.documents.front_values import Unreadable, Value, Values
from nmt.plugins.documents.json_values import end_of_object, json_values
from nmt.plugins.documents.strings import String
from nmt.plugins.documents.toml_values import toml_values
from nmt.plugins.documents.yaml_values import yaml_values
from nmt.translation import Translated

EMPTY_LINE = r"[ \t]*\r?\n"
COMMENT_LINE = r"[ \t]*(?:#[^\n]*)?\r?\n"
DASHES = r"---[ \t]*\r?\n"
KEY = r"[\w\"'-]+[ \t]*:(?:\s|\Z)"
# After empty lines, --- is front matter only if a key follows; otherwise, it is a line across the
# page.
YAML = (
    rf"(?:{DASHES}|(?:{EMPTY_LINE})+{DASHES}(?=(?:{COMMENT_LINE})*{KEY}))"
    r"(?P<yaml>.*?\n)(?:---|\.\.\.)"
)
TOML = rf"(?:{EMPTY_LINE})*\+\+\+[ \t]*\r?\n(?P<toml>.*?\n)\+\+\+"
FRONT_MATTER = re.compile(rf"(?:{YAML}|{TOML})[ \t]*(?:\r?\n|\Z)", re.DOTALL)
JSON_BEGINS = re.compile(r'\{\s*"')
LONGEST = 100_000
"""Characters of front matter that nmt reads, because its parsers are slow."""
SHOWN_KEY = re.compile(
    r"\w*(?:title|label|caption|alt|description|summary|excerpt|abstract|tagline|details)"
)
"""A key whose text readers of the page see, as `plain_name` returns it."""
OF_PROGRAMS = frozenset(["author", "authors", "date", "lastmod", "license", "name", "permalink"])
"""Keys with names and dates, which are the same in every language."""
SHOWN_LINE = re.compile(r"^[\"']?([\w-]+)[\"']?[ \t]*[:=][ \t]*[^\s#]", re.MULTILINE)
SEVERAL_WORDS = re.compile(r"[^\W\d_][^\s/]*\s+(?:\S+\s+)?\S*[^\W\d_]")
MOST_CHANGES = 20
"""The changes to check one by one if the front matter with all of them is damaged."""
MOST_KEYS = 8
"""The keys that a notice names."""


def plain_name(name: str) -> str:
    """A dotted name without differences of spelling: linkTitle and link_title are the same key."""
    return re.sub(r"[_-]", "", name).lower()


class Change(NamedTuple):
    """Another text for a value, and how it is written."""

    value: Value
    text: str
    written: str


class FrontMatter(Part):
    """The front matter at the beginning of a file, with the values of the `chosen` keys as lines.

    `end` is 0 if there is none.
    """

    def __init__(self, text: str, chosen: Iterable[str]) -> None:
        self.values = Values([], lambda text: [])
        self.is_readable = True
        self.refused = list[str]()
        super().__init__(0, 0)
        self.raw = ""
        self.find(text)
        names = {plain_name(name) for name in chosen}
        self.chosen = [value for value in self.values.values if plain_name(value.name) in names]
        self.strings = [String(value.text) for value in self.chosen]
        for string in self.strings:
            self.lines += string.lines
        self.left = list(dict.fromkeys(self.names_left(names)))

    def find(self, text: str) -> None:
        """Find the end of the front matter, and its values."""
        block = FRONT_MATTER.match(text)
        if block:
            self.end = block.end()
        elif JSON_BEGINS.match(text):
            self.end = end_of_object(text)
        self.raw = text[: self.end]
        if not self.end or not self.raw.strip("-+. \t\r\n"):
            return
        self.is_readable = self.end <= LONGEST
        if not self.is_readable:
            return
        try:
            if not block:
                self.values = json_values(self.raw)
            elif block["yaml"] is not None:
                self.values = yaml_values(self.raw, *block.span("yaml"))
            else:
                self.values = toml_values(self.raw, *block.span("toml"))
        except Unreadable:
            self.is_readable = False

    def names_left(self, chosen: Iterable[str]) -> Iterable[str]:
        """The names of other values that readers may see, in order."""
        if not self.is_readable:
            for line in SHOWN_LINE.finditer(self.raw):
                if SHOWN_KEY.fullmatch(plain_name(line[1])):
                    yield line[1]
        for value in self.values.values:
            name = plain_name(value.name)
            if name in chosen:
                continue
            last = name.rpartition(".")[2]
            is_shown = SHOWN_KEY.fullmatch(last) and any(map(str.isalpha, value.text))
            if is_shown or (last not in OF_PROGRAMS and SEVERAL_WORDS.match(value.text)):
                yield value.name
        # Keys of which nmt cannot write the values, such as those of YAML aliases.
        yield from self.values.left

    def render(self, translations: Sequence[Translated]) -> str:
        self.refused = []
        changes = list[Change]()
        left = iter(translations)
        for value, string in zip(self.chosen, self.strings, strict=True):
            lines = list(islice(left, len(string.lines)))
            text = string.render(lines)
            if text == value.text:
                continue
            written = value.write(text) if string.keeps(lines, text) else None
            if written is None:
                self.refused.append(value.name)
            else:
                changes.append(Change(value, text, written))
        if self.is_read(changes):
            return self.changed(changes)
        # Leave out the changes that the parser reads in another way.
        kept = list[Change]()
        for change in changes:
            if len(changes) <= MOST_CHANGES and self.is_read([*kept, change]):
                kept.append(change)
            else:
                self.refused.append(change.value.name)
        return self.changed(kept)

    def changed(self, changes: Iterable[Change]) -> str:
        """The front matter with these changes."""
        parts = [Part(value.begin, value.end, otherwise=written) for value, _, written in changes]
        return Spliced(self.raw, parts).render(())

    def is_read(self, changes: Sequence[Change]) -> bool:
        """Whether a parser reads exactly these changes."""
        if not changes:
            return True
        expected = {value.begin: value.text for value in self.values.values}
        expected |= {value.begin: text for value, text, _ in changes}
        return self.values.read(self.changed(changes)) == list(expected.values())

    def notice(self) -> str:
        names = [*self.left, *self.refused]
        if names:
            more = len(names) - MOST_KEYS
            shown = ", ".join(names[:MOST_KEYS])
            rest = f" and {more:,} more keys" if more > 0 else ""
            return f"front matter left untranslated: {shown}{rest}"
        return "" if self.is_readable else "front matter left untranslated, because it is damaged"
