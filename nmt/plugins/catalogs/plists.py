"""Property lists of Apple in XML, such as strings with plural rules (`.stringsdict`).

https://developer.apple.com/documentation/xcode/localizing-strings-that-contain-plurals
"""

from collections.abc import Iterator, Mapping, Sequence

from nmt.config import NMTError
from nmt.plugins.catalogs.plurals import OTHER, sources_of_forms
from nmt.plugins.catalogs.values import (
    MARKUP_LEFT,
    Copy,
    Value,
    Values,
    XmlValues,
    space_before,
)
from nmt.plugins.documents import CATEGORIES, Element, Part, StringOfProgram, escaped, parse_xml

KIND = "NSStringFormatSpecTypeKey"
PLURAL_RULE = "NSStringPluralRuleType"
FIXED = (KIND, "NSStringFormatValueTypeKey")
"""Keys whose values are not text."""
BINARY = b"bplist"


def check_text(content: bytes) -> None:
    """Raise NMTError for a binary property list."""
    if content.startswith(BINARY):
        raise NMTError("a binary property list: convert it with `plutil -convert xml1 FILE`")


class StringsDict(XmlValues):
    """A property list whose strings are translated, with the plural forms of the language."""

    def __init__(self, content: bytes, source: str = "", target: str = "") -> None:
        check_text(content)
        super().__init__(content, source, target)

    def read(self) -> None:
        read_plist(self)


def read_plist(values: Values) -> None:
    """Read the strings of a property list."""
    roots = [child for child in parse_xml(values.file)[0].children if child.tag]
    children = [child for child in roots[0].children if child.tag]
    if roots[0].tag != "plist" or len(children) != 1 or children[0].tag != "dict":
        raise NMTError("not a property list with a dictionary of strings")
    read_dictionary(values, children[0])


def read_dictionary(values: Values, dictionary: Element) -> None:
    """Add the strings of a dictionary, and of the dictionaries inside of it."""
    pairs = {key.text: (key, value) for key, value in pairs_of(dictionary)}
    kind = pairs.get(KIND)
    is_plural = kind is not None and kind[1].text == PLURAL_RULE
    forms = {name: pair for name, pair in pairs.items() if name in CATEGORIES}
    if is_plural and all(value.tag == "string" for _, value in forms.values()):
        read_plural(values, forms)
        return
    for name, (_, value) in pairs.items():
        if value.tag == "dict":
            read_dictionary(values, value)
        elif value.tag == "string" and name not in FIXED:
            add(values, value)


def pairs_of(dictionary: Element) -> Iterator[tuple[Element, Element]]:
    """The keys and values of a dictionary."""
    children = [child for child in dictionary.children if child.tag]
    for key, value in zip(children[::2], children[1::2], strict=False):
        if key.tag != "key":
            line = dictionary.file.count("\n", 0, key.begin) + 1
            raise NMTError(f"line {line}: <{key.tag}> is where a <key> should be")
        yield key, value


def add(values: Values, element: Element) -> Value | None:
    """Add the text of an element; None if it has no place for any, or has markup."""
    if element.inside == element.end:
        return None
    if element.children:
        values.left[MARKUP_LEFT] += 1
        return None
    value = Value(element.inside, element.outside, StringOfProgram(element.text), escaped)
    values.values.append(value)
    return value


def read_plural(values: Values, forms: Mapping[str, tuple[Element, Element]]) -> None:
    # The form `zero` is for the number 0, in all languages.
    texts = {form: element.text for form, (_, element) in forms.items()}
    sources = sources_of_forms(texts, values.target, keeps_zero=True)
    for form, (key, element) in forms.items():
        space = space_before(values.file, key.begin)
        if sources.get(form) != form:
            values.changes.append(Part(key.begin - len(space), element.end))
            continue
        value = add(values, element)
        if value and form == OTHER:
            added = [added for added, source in sources.items() if added != source]
            value.copies = copies_of(key, element, added, space)


def copies_of(key: Element, element: Element, forms: Sequence[str], space: str) -> list[Copy]:
    """Copies of the form `other` for other forms, before it."""
    between = key.file[key.outside : element.inside]
    after = element.file[element.outside : element.end] + space
    return [Copy(key.begin, f"<key>{form}{between}", after) for form in forms]
