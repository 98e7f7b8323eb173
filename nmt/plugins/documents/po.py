"""Message catalogs of GNU gettext (https://www.gnu.org/software/gettext/manual, section PO Files).

Messages without a translation get one, and the flag `fuzzy`, as nobody has checked it. All else stays as it is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from nmt.errors import NMTError
from nmt.plugins.documents.document import Direction, Spliced, Text, Translated
from nmt.plugins.documents.strings import sentences_of
from nmt.text import same_directives

LINE = re.compile(
    r'[ \t]*(?:(?P<key>msg(?:ctxt|id|id_plural|str))(?:\[(?P<form>\d{1,2})\])?[ \t]*)?"(?P<text>(?:[^"\\\n]|\\.)*)"\s*'
)
CHARSET = re.compile(r"(?m)^Content-Type:.*charset=([\w-]+)")
LANGUAGE = re.compile(r"(?m)^Language:[ \t]*([\w@-]+)")
FORMAT = re.compile(r"(?<![\w-])(?!no-|possible-|impossible-)([a-z][a-z+-]*)-format(?![\w-])")
FORMS = re.compile(r"nplurals[ \t]*=[ \t]*([1-9])(?!\d)")
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", '"': '"', "\\": "\\"}
ESCAPE = re.compile(r"\\(x[\da-fA-F]+|[0-7]{1,3}|.)")
IN_ESCAPES = str.maketrans(
    {chr(code): f"\\{code:03o}" for code in (*range(1, 32), 127)}
    | {character: f"\\{letter}" for letter, character in ESCAPES.items()}
)


def unescaped(text: str) -> str:
    return ESCAPE.sub(lambda found: ESCAPES.get(found[1]) or numbered(found[1]) or found[0], text)


def numbered(escape: str) -> str:
    """The character of ASCII that an escape numbers, as x1b and 033 do; empty for white space and all else."""
    if escape[0] not in "x01234567" or escape == "x":
        return ""
    code = int(escape[1:], 16) if escape[0] == "x" else int(escape, 8)
    return chr(code).strip() if 0 < code < 128 else ""


def quoted(text: str) -> str:
    """A text as gettext writes it: if it has several lines, each on a line of its own."""
    lines = [f'"{line.translate(IN_ESCAPES)}"\n' for line in re.findall(r"[^\n]*\n|[^\n]+", text)]
    return "".join(lines if len(lines) == 1 else ['""\n', *lines])


@dataclass
class Message:
    """A message, and the place of its translation."""

    start: int
    """Where its first keyword stands."""
    flags: int | None
    """Where its flags are, after "#,"; -1 if one of them is `fuzzy`."""
    formats: list[str] = field(default_factory=list)
    """The kinds of format strings that its flags name, such as c."""
    begin: int = 0
    end: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    """By keyword; that of a plural form has its number in brackets."""
    raw: dict[str, str] = field(default_factory=dict)
    """The same as they stand in the file."""
    strings: list[Spliced] = field(default_factory=list)
    """The message, and its plural."""
    forms: int = 1
    line_end: str = "\n"
    before: str = ""
    """What is written before the translation, from the flag on that nobody has checked it."""
    untranslated: str = ""
    """The stretch as it stands in the file."""
    one: bool = False
    """True where the first plural form is for the number one alone."""
    left: bool = False
    """True for a message that stays untranslated, because its translation would not do as a format string."""

    def read(self, forms: int) -> bool:
        """Find what is to be translated; False where that is nothing, or a plural in a catalog without Plural-Forms."""
        done = [text for key, text in self.texts.items() if key.startswith("msgstr")]
        sources = [self.texts[key] for key in ("msgid", "msgid_plural") if key in self.texts]
        if not done or all(done) or not self.texts.get("msgid"):
            return False
        self.strings = [Spliced(text, sentences_of(text)) for text in sources]
        self.forms = max(forms, len(done))
        return (forms > 0 or len(sources) == 1) and all(string.lines for string in self.strings)

    @property
    def lines(self) -> list[str]:
        return [line for string in self.strings for line in string.lines]

    def render(self, translations: Sequence[Translated]) -> str:
        singular = len(self.strings[0].lines)
        texts = [self.strings[0].render(translations[:singular])]
        plural = self.strings[1:] and self.strings[1].render(translations[singular:])
        sources = [string.text for string in self.strings]
        if plural:
            texts.append(plural)
            if not self.alike(sources[not self.one], texts[0]):
                texts[0] = plural
        self.left = not self.alike(sources[-1], texts[-1])
        if self.left:
            return self.untranslated
        if not plural:
            written = "msgstr " + quoted(texts[0])
        else:
            # The only form of a language without a plural is for all numbers.
            of_forms = [texts[form > 0 or self.forms == 1] for form in range(self.forms)]
            names = [f"msgstr[{form}]" for form in range(self.forms)]
            written = "".join(
                self.raw[name].replace("\r\n", "\n").rstrip("\n") + "\n"
                if self.texts.get(name)
                else f"{name} {quoted(text)}"
                for name, text in zip(names, of_forms, strict=True)
            )
        return self.before + written.replace("\n", self.line_end)

    def alike(self, source: str, text: str) -> bool:
        """True if a translation begins and ends as its source does, and takes the same arguments."""
        ends = [(side.startswith("\n"), side.endswith("\n")) for side in (source, text)]
        return ends[0] == ends[1] and all(same_directives(format, source, text) for format in self.formats)


def messages_of(text: str) -> list[Message]:
    """The messages of a catalog, but not its obsolete ones, which are comments."""
    found, current, flags, name, at = list[Message](), None, None, "", 0
    formats = list[str]()
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        string = LINE.fullmatch(line)
        if string and (key := string["key"]):
            name = f"{key}[{string['form']}]" if string["form"] else key
            if current is None or name in current.texts or (current.end and not key.startswith("msgstr")):
                current, flags, formats = Message(at, flags, formats), None, []
                found.append(current)
            if key == "msgstr" and not current.end:
                current.begin, current.line_end = at, "\r\n" if line.endswith("\r\n") else "\n"
        if string and current:
            current.texts[name] = current.texts.get(name, "") + unescaped(string["text"])
            current.raw[name] = current.raw.get(name, "") + line
            current.end = at + len(line) if name.startswith("msgstr") else current.end
        elif line.startswith("#,"):
            current, flags = None, -1 if re.search(r"\bfuzzy\b", line) or flags == -1 else at + 2
            formats += FORMAT.findall(line)
        else:
            current = None
            if not re.match(r"#(?!~)", line):
                flags, formats = None, []
        at += len(line)
    return found


def check_header(header: str, model: Direction) -> None:
    """NMTError for a template, another character set, or another language than that of the model's translations."""
    charset, language = CHARSET.search(header), LANGUAGE.search(header)
    if (charset and charset[1] == "CHARSET") or "nplurals=INTEGER" in header:
        raise NMTError(f"a template: make a catalog of it first, with `msginit -l {model.target or 'CODE'}`")
    if charset and charset[1].lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
        raise NMTError(f"it says that it is in {charset[1]}: convert it with `msgconv -t UTF-8`")
    Direction(target=language[1] if language else "").check(model)


class Catalog(Text):
    """The messages of a catalog."""

    convert = "convert it with `msgconv -t UTF-8`"

    @property
    def notice(self) -> str:  # type: ignore[override]
        left = sum(isinstance(part, Message) and part.left for part in self.text.parts)
        return f"messages left untranslated, because their format directives did not arrive: {left:,}" if left else ""

    def parts(self, text: str, model: Direction) -> list[Message]:
        parts, forms, one = list[Message](), 0, False
        for message in messages_of(text):
            if not message.texts.get("msgid"):
                header = message.texts.get("msgstr", "")
                forms = int(found[1]) if (found := FORMS.search(header)) else forms
                one = bool(re.search(r"plural[ \t]*=[ \t]*\(?[ \t]*n[ \t]*!=[ \t]*1[ \t]*\)?[ \t]*;", header))
                check_header(header, model)
            if message.read(forms):
                place = message.start if message.flags in (None, -1) else message.flags
                flag = {None: f"#, fuzzy{message.line_end}", -1: ""}.get(message.flags, " fuzzy,")
                message.before, message.begin = flag + text[place : message.begin], place
                message.one = one
                message.untranslated = text[message.begin : message.end]
                parts.append(message)
        return parts
