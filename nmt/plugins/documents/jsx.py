"""Tags and expressions of MDX, which contain JavaScript (https://mdxjs.com/docs/what-is-mdx/)."""

import re
from dataclasses import dataclass, field

IN_CODE = re.compile(
    r"//[^\n]*"
    r"|/\*.*?(?:\*/|\Z)"
    r"|\"(?:[^\"\\\n]|\\.){0,10000}\""
    r"|'(?:[^'\\\n]|\\.){0,10000}'"
    r"|\n[ \t]*(?=\n)"
    r"|[`{}()\[\]]",
    re.DOTALL,
)
"""Comments, strings, empty lines, backquotes and brackets in JavaScript."""
IN_TEMPLATE = re.compile(r"\\.|`|\$\{", re.DOTALL)
BEGIN_OF_TAG = re.compile(r"<[ \t]*(?P<closes>/?)[ \t]*(?P<name>[A-Za-z_$][\w$.:-]*)?\s*")
ATTRIBUTE = re.compile(
    r"(?P<name>[A-Za-z_$][\w$:.-]*)(?:\s*=\s*(?:(?P<value>\"[^\"]*\"|'[^']*')|(?P<code>\{)))?\s*"
)
END_OF_TAG = re.compile(r"/?\s*>")
BLANKS = re.compile(r"\s*")
LONGEST = 20_000
"""Characters in a tag or an expression."""
MOST_FAILURES = 20
"""The unclosed braces and tags of a text. Then nothing else is searched for, which would take
quadratic time."""


@dataclass
class JsxTag:
    """A tag, or an expression, which has no name and no attributes."""

    begin: int
    end: int

    name: str = ""

    closes: bool = False

    attributes: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Maps names to the spans of their values in quotation marks, which they include."""


class Jsx:
    """Reads the tags and expressions of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.failures = 0

    def read(self, at: int) -> JsxTag | None:
        """The tag or expression that begins at an offset; None if there is none."""
        if self.failures >= MOST_FAILURES:
            return None
        if self.text.startswith("{", at):
            end = self.end_of_expression(at)
            tag = JsxTag(at, end) if end else None
        elif self.text.startswith("<!--", at):
            end = self.text.find("-->", at, at + LONGEST)
            tag = JsxTag(at, end + len("-->")) if end >= 0 else None
        else:
            tag = self.tag(at)
        if not tag:
            self.failures += 1
        return tag

    def end_of_expression(self, at: int) -> int:
        """The offset behind the brace that closes the one at `at`; 0 if there is none."""
        code = Code(self.text, at + 1, at + LONGEST)
        while code.depth >= 0:
            if not code.step():
                return 0
        return code.at

    def end_of_code(self, at: int) -> int:
        """The offset of the empty line after statements that begin at `at`.

        It is the first one outside of brackets, or the first one if brackets stay open.
        """
        code = Code(self.text, at, len(self.text))
        first = 0
        while self.failures < MOST_FAILURES:
            if not code.step():
                if code.depth == 0 or not first:
                    return len(self.text)
                self.failures += 1
                return first
            if code.is_empty_line:
                if code.depth <= 0:
                    return code.at
                first = first or code.at
        empty_line = re.compile(r"\n[ \t]*(?=\n)|\Z").search(self.text, at)
        assert empty_line
        return empty_line.end()

    def tag(self, at: int) -> JsxTag | None:
        begin = BEGIN_OF_TAG.match(self.text, at)
        if not begin:
            return None
        tag = JsxTag(at, 0, begin["name"] or "", begin["closes"] == "/")
        position = begin.end()
        while position < at + LONGEST:
            end = END_OF_TAG.match(self.text, position)
            if end:
                tag.end = end.end()
                return tag
            # Without a name, as in <>, a tag has no attributes.
            position = self.attribute(tag, position) if tag.name else 0
            if not position:
                return None
        return None

    def attribute(self, tag: JsxTag, at: int) -> int:
        """Add an attribute, and return the offset behind it; 0 if there is none."""
        attribute = ATTRIBUTE.match(self.text, at)
        if attribute:
            if attribute["value"]:
                tag.attributes.setdefault(attribute["name"], attribute.span("value"))
            if not attribute["code"]:
                return attribute.end()
            at = attribute.start("code")
        if not self.text.startswith("{", at):
            return 0
        end = self.end_of_expression(at)
        blanks = BLANKS.match(self.text, end)
        assert blanks
        return blanks.end() if end else 0


class Code:
    """A position in JavaScript, and how many brackets are open there."""

    def __init__(self, text: str, at: int, end: int) -> None:
        self.text = text
        self.at = at
        self.end = end
        self.depth = 0
        self.templates = list[int]()
        """The depths of the expressions inside of template literals."""
        self.is_empty_line = False

    def step(self) -> bool:
        """Move behind the next sign; False at the end of the text."""
        sign = IN_CODE.search(self.text, self.at, self.end)
        if not sign:
            return False
        self.at = sign.end()
        self.is_empty_line = sign[0][0] == "\n"
        if sign[0] == "`":
            return self.skip_template()
        if sign[0] in ("{", "(", "["):
            self.depth += 1
        elif sign[0] in ("}", ")", "]"):
            if self.templates and self.depth == self.templates[-1]:
                self.templates.pop()
                return self.skip_template()
            self.depth -= 1
        return True

    def skip_template(self) -> bool:
        """Move behind the next end or expression of a template literal; False if there is none."""
        while sign := IN_TEMPLATE.search(self.text, self.at, self.end):
            self.at = sign.end()
            if sign[0] == "`":
                return True
            if sign[0] == "${":
                self.templates.append(self.depth)
                return True
        return False
