"""Fluent files (https://projectfluent.org/fluent/guide), parsed by Mozilla's fluent.syntax."""

from collections.abc import Iterator

from fluent.syntax import FluentParser, ast

from nmt.config import NMTError
from nmt.plugins.catalogs.fluent_patterns import FluentString, span_of
from nmt.plugins.catalogs.templates import line_number
from nmt.plugins.catalogs.values import Value, Values
from nmt.plugins.documents import is_technical

NOT_TEXT = frozenset(
    ["accesskey", "class", "commandkey", "href", "id", "key", "keycode", "src", "style"]
)
"""Attributes, and last words of names, whose values are keys of a keyboard, sizes or addresses."""
FREEMARKER = ("<#", "<%@", "${", "[#")
TERMS_LEFT = "terms, such as names of products, left untranslated"
KEYS_LEFT = "keyboard shortcuts and styles left unchanged"


class Fluent(Values):
    """A Fluent file; comments, terms and placeables stay unchanged."""

    def read(self) -> None:
        self.values += self.values_in(self.file)

    def values_in(self, text: str) -> Iterator[Value]:
        try:
            resource = FluentParser().parse(text)
        except RecursionError as error:
            raise NMTError("its placeables are nested too deeply") from error
        for entry in resource.body:
            match entry:
                case ast.Junk():
                    raise NMTError(problem_of(text, entry))
                case ast.Term():
                    self.left[TERMS_LEFT] += 1
                case ast.Message():
                    yield from self.values_of(text, entry)

    def values_of(self, text: str, message: ast.Message) -> Iterator[Value]:
        patterns = [(message.id.name.rpartition("-")[2], message.value)]
        patterns += [(attribute.id.name, attribute.value) for attribute in message.attributes]
        for name, pattern in patterns:
            if pattern is None:
                continue
            begin, end = span_of_pattern(text, pattern)
            raw = text[begin:end]
            if name in NOT_TEXT:
                self.left[KEYS_LEFT] += 1
            elif len(raw) > 1 and not is_technical_pattern(raw, pattern):
                string = FluentString(text, pattern, (begin, end), self.target)
                yield Value(begin, end, string, str)


def is_technical_pattern(raw: str, pattern: ast.Pattern) -> bool:
    # In placeables, there may be variants with text.
    is_text = all(isinstance(element, ast.TextElement) for element in pattern.elements)
    return is_text and is_technical(raw)


def span_of_pattern(text: str, pattern: ast.Pattern) -> tuple[int, int]:
    """The span of a pattern without the indentation of its first line."""
    begin, end = span_of(pattern)
    return end - len(text[begin:end].lstrip(" \r\n")), end


def problem_of(text: str, junk: ast.Junk) -> str:
    """What is wrong with an entry that is not Fluent."""
    begin, _ = span_of(junk)
    if text.startswith(FREEMARKER, begin):
        return f"line {line_number(text, begin)}: not Fluent, but a template of FreeMarker"
    annotation = junk.annotations[0]
    number = line_number(text, span_of(annotation)[0])
    return f"line {number}: not valid Fluent ({annotation.message})"
