"""Resources of .NET, .resx and .resw (documentation of System.Resources.ResXResourceWriter)."""

import re
from collections.abc import Iterator

from nmt.config import NMTError
from nmt.plugins.catalogs.templates import Template
from nmt.plugins.catalogs.values import MARKUP_LEFT, Value, XmlValues
from nmt.plugins.documents import Element, escaped, is_technical, parse_xml

NOT_TEXT = re.compile(
    r".*\.(?:"
    r"(?:Min|Max)?(?:Width|Height)|\w{0,40}Size|Location|Margin|Padding|Anchor|Dock|Alignment"
    r"|Font|FontFamily|ImageKey|ImageIndex|FileName|TabIndex|ShortcutKeys|Visible|Enabled"
    r"|ShortcutKeyDisplayString|DataMember|DisplayMember|ValueMember|DataPropertyName"
    r"|HelpKeyword|NavigateUri|Source"
    r")"
)
"""Names of properties whose values no user reads; those of the user's own strings have no dot."""
FORMAT_ITEM = re.compile(r"(?<!\{)\{\d{1,3}(?:,[+-]?\d{1,3})?(?::[^{}\s]{1,60})?\}(?!\})")
"""A placeholder of String.Format, such as {0} or {0:N2}."""
NAME = re.compile(r".*\.Name")
IN_DESIGNERS = ("$this.", ">>")


class Resources(XmlValues):
    """A file of resources; everything besides strings that users read stays unchanged."""

    def read(self) -> None:
        self.values += self.values_in(self.file)

    def values_in(self, text: str) -> Iterator[Value]:
        document, *_ = parse_xml(text)
        roots = [element for element in document.children if element.tag]
        if roots[0].name != "root":
            raise NMTError("not a file of .NET resources, which begins with the element <root>")
        entries = [entry for entry in roots[0].children if entry.name == "data"]
        names = [entry.attributes.get("name", "") for entry in entries]
        is_of_designer = any(name.startswith(IN_DESIGNERS) for name in names)
        for entry, name in zip(entries, names, strict=True):
            if is_string(entry, name, is_of_designer):
                yield from self.values_of(entry)

    def values_of(self, entry: Element) -> Iterator[Value]:
        """The value of an entry, unless it is technical or has markup."""
        for element in entry.children:
            text = element.text
            if element.name != "value" or is_technical(text):
                continue
            if element.children:
                self.left[MARKUP_LEFT] += 1
                continue
            yield Value(element.inside, element.outside, Template(text, FORMAT_ITEM), escaped)


def is_string(entry: Element, name: str, is_of_designer: bool) -> bool:
    """Whether an entry may be text; objects declare their type, as do files."""
    if {"type", "mimetype"} & entry.spans.keys():
        return False
    if is_of_designer and NAME.fullmatch(name):
        return False
    # Designers of forms write their own data with such names.
    return not name.startswith(">>") and not NOT_TEXT.fullmatch(name)
