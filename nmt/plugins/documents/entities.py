"""References to entities in XML, which stay as they are: nmt never expands an entity.

Manuals have them for names and versions, as in `&product;`, and declare them in a DTD elsewhere.
https://www.w3.org/TR/xml, sections 2.8 and 4.1.
"""

import re
from html import unescape
from html.entities import name2codepoint

REFERENCE = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)(?P<name>[^\W\d][\w:.-]*+);")
"""A reference to an entity, except the five that XML itself declares."""
BEGINNING = re.compile(r"\s*+(<!--|<\?|<!DOCTYPE\b)")
INSIDE = re.compile(r"""<!--|<\?|["'<>]""")
"""What decides where a declaration ends."""
CLOSINGS = {"<!--": "-->", "<?": "?>", '"': '"', "'": "'"}
ENTITY = re.compile(
    r"""<!ENTITY\s++(?P<name>[\w:.-]++)\s++(?:"(?P<double>[^"]*+)"|'(?P<single>[^']*+)')"""
)
UNDECLARED = 0x2100
"""The characters below it are letters and signs of text, which all DTDs declare by these names."""


def doctype_span(text: str) -> tuple[int, int]:
    """Where the document type declaration begins and ends; (0, 0) without one."""
    at = 0
    while beginning := BEGINNING.match(text, at):
        if beginning[1] == "<!DOCTYPE":
            return beginning.start(1), end_of_declaration(text, beginning.end())
        at = end_behind(text, beginning[1], beginning.end())
    return 0, 0


def end_of_declaration(text: str, at: int) -> int:
    """The end of a declaration that begins before `at`, with the declarations inside it."""
    depth = 1
    while depth:
        mark = INSIDE.search(text, at)
        if not mark:
            return len(text)
        at = mark.end()
        if mark[0] == "<":
            depth += 1
        elif mark[0] == ">":
            depth -= 1
        else:
            at = end_behind(text, mark[0], at)
    return at


def end_behind(text: str, opening: str, at: int) -> int:
    """The end of a comment, instruction or string whose content begins at `at`."""
    closing = CLOSINGS[opening]
    end = text.find(closing, at)
    return len(text) if end < 0 else end + len(closing)


def without_entities(text: str) -> str:
    """A file of the same length without document type declaration and references.

    Whoever parses it finds the same elements at the same places, and no entities.
    """
    begin, end = doctype_span(text)
    # Line breaks stay, for the numbers of lines in messages.
    blank = re.sub(r"[^\n]", " ", text[begin:end])
    content = REFERENCE.sub(lambda reference: "_" * len(reference[0]), text[end:])
    return text[:begin] + blank + content


def declared_entities(text: str) -> dict[str, str]:
    """The entities that a file itself declares, and their text as it is in the file."""
    begin, end = doctype_span(text)
    entities = dict[str, str]()
    for match in ENTITY.finditer(text, begin, end):
        # The first declaration counts.
        entities.setdefault(match["name"], match["double"] or match["single"] or "")
    return entities


def character_of(name: str) -> str:
    """The character that all DTDs name so, such as a dash for mdash; empty for other names."""
    code = name2codepoint.get(name, UNDECLARED)
    return unescape(f"&{name};") if code < UNDECLARED else ""
