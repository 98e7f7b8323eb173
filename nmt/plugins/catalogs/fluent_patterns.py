"""The texts of Fluent, in which placeables stay and the variants of selectors are translated."""

import re
from collections import Counter
from collections.abc import Sequence

from fluent.syntax import FluentParser, ast

from nmt.config import NMTError
from nmt.plugins.catalogs.plurals import OTHER, forms_of_target
from nmt.plugins.catalogs.templates import line_number
from nmt.plugins.documents import (
    CATEGORIES,
    COMMENT,
    HTML_TAG,
    OTHER_TAG,
    Inset,
    Kind,
    MarkupToken,
    Part,
    Reader,
    Spliced,
    String,
    marked,
)
from nmt.translation import Translated

BULLET = r"[-•\u2013] "
LINE = rf"(?P<line>\r?\n *(?P<paragraph>(?:\r?\n *)+|(?={BULLET}))?)"
"""A line break with the indentation of the next line, which is not part of the text."""
MARKUP = re.compile(
    rf"{LINE}|(?:\A|(?<=\n)) *{BULLET}|{HTML_TAG}|{OTHER_TAG}|{COMMENT}",
)
DEEPEST = 20
"""Maximum levels of selectors: a hostile file must not exhaust Python's recursion."""
BRACE = re.compile(r"[{}]")
Skeleton = Counter[object]


def write_text(text: str) -> str:
    """Text for a pattern, in which braces enclose placeables."""
    return BRACE.sub(r'{"\g<0>"}', text)


FLUENT = Kind(markup=MARKUP, write=write_text)


class FluentString(String):
    """A pattern in the notation of Fluent, with all its variants."""

    def __init__(
        self,
        file: str,
        pattern: ast.Pattern,
        span: tuple[int, int],
        target: str,
    ) -> None:
        self.file = file
        self.pattern = pattern
        self.offset, end = span
        self.target = target
        self.added = set[str]()
        """Plural forms that only the translation has."""
        super().__init__(file[self.offset : end])

    def find_parts(self, text: str) -> list[Part]:
        return self.parts_of(self.pattern, self.offset, self.offset + len(text), depth=0)

    def parts_of(self, pattern: ast.Pattern, begin: int, end: int, depth: int) -> list[Part]:
        """The parts of a pattern at this span; `depth` counts the selectors around it."""
        if depth > DEEPEST:
            number = line_number(self.file, begin)
            raise NMTError(f"line {number}: selectors are nested more than {DEEPEST} levels deep")
        insets = list[Inset]()
        for element in pattern.elements:
            if isinstance(element, ast.Placeable):
                insets.append(self.inset_of(element, begin, depth))
        text = self.file[begin:end]
        return Reader(text, begin - self.offset, FLUENT, insets).parts

    def inset_of(self, placeable: ast.Placeable, begin: int, depth: int) -> Inset:
        """A placeable in its pattern, which begins at this offset; its variants have their own."""
        start, end = span_of(placeable)
        raw = self.file[start:end]
        expression = placeable.expression
        note: Spliced | None = None
        shown = raw
        if isinstance(expression, ast.SelectExpression):
            shown = "{" + self.source_of(expression.selector) + "}"
            parts = self.parts_of_variants(expression, depth + 1)
            note = Spliced(raw, parts, start - self.offset) if parts else None
        written = marked(note) if note else raw
        is_text = isinstance(expression, ast.StringLiteral)
        token = MarkupToken("point", written) if is_text else MarkupToken("copy", written, shown)
        return Inset(start - begin, end - begin, token, note)

    def parts_of_variants(self, expression: ast.SelectExpression, depth: int) -> list[Part]:
        parts = list[Part]()
        for variant in expression.variants:
            begin, end = span_of(variant.value)
            of_variant = self.parts_of(variant.value, begin, end, depth)
            if variant.default:
                parts += self.missing_forms(expression, variant, of_variant)
            parts += of_variant
        return parts

    def missing_forms(
        self,
        expression: ast.SelectExpression,
        default: ast.Variant,
        parts: Sequence[Part],
    ) -> list[Part]:
        """Variants for the plural forms that the target language has, to insert before `other`."""
        keys = [self.key_of(variant) for variant in expression.variants]
        if not is_plural(expression.selector, keys):
            return []
        begin, end = span_of(default.value)
        text = self.file[begin:end]
        # A mark of the default variant is only before its key.
        at = self.file.rindex("*", 0, span_of(default.key)[0])
        line_begin = self.file.rindex("\n", 0, at) + 1
        before_key = self.file[line_begin:at]
        indent = before_key if not before_key.strip() else "    "
        missing = list[Part]()
        for form in forms_of_target(keys, self.target):
            if form not in keys:
                self.added.add(form)
                copy = Spliced(text, parts, begin - self.offset)
                missing.append(Form(at - self.offset, form, copy, f"\n{indent}"))
        return missing

    def source_of(self, node: ast.SyntaxNode) -> str:
        return source_of(self.file, node)

    def key_of(self, variant: ast.Variant) -> str:
        return self.source_of(variant.key)

    def keeps(self, translations: Sequence[Translated], text: str) -> bool:
        """True if `text` has the placeables and the variants of the pattern."""
        sign = self.file.rfind("=", 0, self.offset)
        # The parser needs the white space before the pattern: a line may not begin like a variant.
        entry = f"k {self.file[sign : self.offset]}{text}\n"
        resource = FluentParser().parse(entry)
        if len(resource.body) != 1 or not isinstance(resource.body[0], ast.Message):
            return False
        message = resource.body[0]
        if message.attributes or not message.value:
            return False
        before = skeleton(self.file, self.pattern, self.added)
        return before == skeleton(entry, message.value, self.added)


class Form(Part):
    """A variant for a plural form, with the text of the default variant."""

    def __init__(self, at: int, form: str, text: Spliced, line_end: str) -> None:
        super().__init__(at, at, text.lines)
        self.form = form
        self.copy = text
        self.line_end = line_end

    def render(self, translations: Sequence[Translated]) -> str:
        return f"[{self.form}] {self.copy.render(translations)}{self.line_end}"


def span_of(node: ast.SyntaxNode) -> tuple[int, int]:
    assert node.span  # the parser is asked for spans
    return node.span.start, node.span.end


def source_of(file: str, node: ast.SyntaxNode) -> str:
    begin, end = span_of(node)
    return file[begin:end]


def is_plural(selector: ast.SyntaxNode, keys: Sequence[str]) -> bool:
    """Whether a selector with these variants chooses a plural form."""
    if not isinstance(selector, ast.VariableReference | ast.FunctionReference):
        return False
    if isinstance(selector, ast.FunctionReference) and selector.id.name != "NUMBER":
        return False
    names = {key for key in keys if not key.replace(".", "").isdecimal()}
    # Without a form besides `other`, nothing shows that the variable is a number.
    return OTHER in names and len(keys) > 1 and names <= set(CATEGORIES)


def skeleton(file: str, pattern: ast.Pattern, ignored: set[str]) -> Skeleton:
    """The parts that a translation must keep: placeables, and keys of variants besides some."""
    result = Skeleton()
    for element in pattern.elements:
        if not isinstance(element, ast.Placeable):
            continue
        expression = element.expression
        if isinstance(expression, ast.SelectExpression):
            selector = source_of(file, expression.selector)
            variants = list[object]()
            for variant in expression.variants:
                key = source_of(file, variant.key)
                if key not in ignored:
                    content = frozenset(skeleton(file, variant.value, ignored).items())
                    variants.append((key, variant.default, content))
            result[selector, tuple(variants)] += 1
        # Text, such as a brace, may be new.
        elif not isinstance(expression, ast.StringLiteral):
            result[source_of(file, element)] += 1
    return result
