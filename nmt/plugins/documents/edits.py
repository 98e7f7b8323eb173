"""Changes of single elements of XML, which leave the rest of a file as it is."""

from collections.abc import Iterable

from nmt.plugins.documents.document import Part
from nmt.plugins.documents.elements import Element


def prefix_of(element: Element) -> str:
    """The prefix of an element's tag with its colon."""
    return element.tag.removesuffix(element.name)


def first_child(element: Element, name: str) -> Element | None:
    for child in element.children:
        if child.name == name:
            return child
    return None


def is_empty(element: Element) -> bool:
    """Whether an element is a single tag, such as <w:p/>."""
    return element.inside == element.end


def with_attribute(element: Element, name: str, value: str) -> Part:
    """An element's attribute with another value, or a new one behind the name of its tag."""
    # Spans have names without their prefixes.
    local = name.rpartition(":")[2]
    spans = element.spans
    if local in spans:
        begin, end = spans[local]
        return Part(begin, end, otherwise=value)
    at = element.begin + 1 + len(element.tag)
    return Part(at, at, otherwise=f' {name}="{value}"')


def place_before(element: Element, names: Iterable[str]) -> int:
    """The offset of an element's first child with one of these names, or of its end."""
    for child in element.children:
        if child.name in names:
            return child.begin
    return element.outside


def place_behind(element: Element, names: Iterable[str]) -> int:
    """The offset behind an element's last child with one of these names, or of its beginning."""
    ends = [child.end for child in element.children if child.name in names]
    return max(ends, default=element.inside)


def inserted(element: Element, name: str, at: int) -> Part:
    """A new child without attributes."""
    return added_child(element, f"<{prefix_of(element)}{name}/>", at)


def added_child(element: Element, written: str, at: int) -> Part:
    """A new child at an offset inside an element, which may be a single tag so far."""
    if is_empty(element):
        # "/>" becomes ">".
        return Part(element.end - 2, element.end, otherwise=f">{written}</{element.tag}>")
    return Part(at, at, otherwise=written)
