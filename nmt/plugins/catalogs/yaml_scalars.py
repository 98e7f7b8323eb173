"""Scalars of YAML 1.1, written again in their own style (https://yaml.org/spec/1.1)."""

import json
import re
import textwrap

import yaml

STRING_TAG = "tag:yaml.org,2002:str"
RESOLVER = yaml.resolver.Resolver()
NOT_PRINTABLE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff"
UNSAFE = re.compile(rf"[{NOT_PRINTABLE}]")
NOT_PLAIN = re.compile(
    rf"[-?:,\[\]{{}}#&*!|>'\"%@`\s=]|.*(?::(?:\s|\Z)|\s#|\s\Z|[\n\t{NOT_PRINTABLE}])",
    re.DOTALL,
)
"""Text that is not a plain scalar, although some of it could be."""
FLOW_SIGN = re.compile(r"[,\[\]{}]")
NARROWEST = 20
ESCAPE_OF_JSON = re.compile(r"\\u[dD][89abAB][\da-f]{2}\\u[dD][c-fC-F][\da-f]{2}")


def is_text(value: str) -> bool:
    """Whether a plain scalar is a string, as opposed to a number, a date or `yes`."""
    tag: str = RESOLVER.resolve(yaml.ScalarNode, value, (True, False))
    return tag == STRING_TAG


class Scalar:
    """A scalar at a span of a file."""

    def __init__(
        self,
        file: str,
        event: yaml.ScalarEvent,
        is_in_flow: bool,
        line_end: str,
    ) -> None:
        """`is_in_flow` says whether it is inside of [] or {}."""
        self.value: str = event.value
        self.style: str = event.style or ""
        self.is_string = event.tag == STRING_TAG if event.tag else self.has_string_style()
        self.is_in_flow = is_in_flow
        # The parser sets both marks.
        assert event.start_mark
        assert event.end_mark
        self.line: int = event.start_mark.line + 1
        self.column: int = event.start_mark.column
        self.begin: int = event.start_mark.index
        self.end: int = event.end_mark.index
        self.line_end = line_end
        # The mark of a scalar includes its anchor and its tag.
        raw = file[self.begin : self.end]
        if event.anchor or event.tag:
            properties = re.match(r"(?:[&!]\S*\s+)+", raw)
            self.begin += properties.end() if properties else 0
        if self.style in ("|", ">"):
            # Blank lines after a block belong to its end.
            raw = file[self.begin : self.end]
            self.end = self.begin + len(raw.rstrip())
        self.raw = file[self.begin : self.end]

    def has_string_style(self) -> bool:
        return bool(self.style) or is_text(self.value)

    def write(self, text: str) -> str:
        """The scalar with another text."""
        if self.style in ("|", ">") and not UNSAFE.search(text):
            return self.block(text)
        if self.style == "'" and not re.search(rf"[\n\t{NOT_PRINTABLE}]", text):
            return "'" + text.replace("'", "''") + "'"
        if not self.style and is_plain(text, self.is_in_flow):
            return text
        return double_quoted(text, ascii_only=bool(re.search(r"\\[uUx]", self.raw)))

    def block(self, text: str) -> str:
        header, _, content = self.raw.partition("\n")
        header = header.rstrip("\r")
        first = re.search(r"^([ \t]*)\S", content, re.MULTILINE)
        if not first:
            return self.raw
        own_indent = re.match(r"\n*([ \t]*)", self.value)
        width_of_own = len(own_indent[1]) if own_indent else 0
        indent = first[1][: len(first[1]) - width_of_own]
        text = text.rstrip("\n")
        if self.style == ">":
            if re.search(r"^[ \t]", text, re.MULTILINE):
                # Folding would keep the breaks of these lines only.
                header = header.replace(">", "|", 1)
            else:
                text = folded(text, width=longest_line(content) - len(indent))
        lines = [indent + line if line else "" for line in text.split("\n")]
        return self.line_end.join([header, *lines])


def is_plain(text: str, is_in_flow: bool) -> bool:
    if NOT_PLAIN.match(text) or not is_text(text):
        return False
    return not (is_in_flow and FLOW_SIGN.search(text))


def double_quoted(text: str, ascii_only: bool = False) -> str:
    """A text in double quotes, in which YAML has the escapes of JSON."""
    quoted = json.dumps(text, ensure_ascii=ascii_only)
    quoted = ESCAPE_OF_JSON.sub(whole_character, quoted)
    return UNSAFE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", quoted)


def whole_character(pair: re.Match[str]) -> str:
    """One escape for the two that JSON needs for a character beyond U+FFFF."""
    character = json.loads(f'"{pair[0]}"')
    return f"\\U{ord(character):08x}"


def longest_line(content: str) -> int:
    return max(map(len, content.splitlines()))


def folded(text: str, width: int) -> str:
    """The lines of a folded block, which has one more break than each run of breaks in its text."""
    blank = text[: len(text) - len(text.lstrip("\n"))]
    lines = [wrapped(line, width) for line in text[len(blank) :].split("\n")]
    pieces = [blank]
    for number, line in enumerate(lines):
        # The break after a line, in addition to the empty line that stands for a break.
        is_first_break = number > 0 and bool(lines[number - 1])
        if number:
            pieces.append("\n\n" if is_first_break else "\n")
        pieces.append(line)
    return "".join(pieces)


def wrapped(line: str, width: int) -> str:
    # Wrapping would change white space other than single spaces.
    if " ".join(line.split()) != line:
        return line
    lines = textwrap.wrap(
        line,
        max(width, NARROWEST),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)
