"""String resources of Android.

https://developer.android.com/guide/topics/resources/string-resource
"""

import re
from collections.abc import Sequence

from nmt.config import NMTError
from nmt.plugins.catalogs.android_strings import android_string
from nmt.plugins.catalogs.plurals import OTHER, sources_of_forms
from nmt.plugins.catalogs.values import Copy, Value, XmlValues, space_before
from nmt.plugins.documents import Element, Part, parse_xml

QUANTITY = re.compile(r"""(\squantity\s*=\s*["'])[^"']*""")
ARRAYS_LEFT = "items of <array> left untranslated; nmt translates those of <string-array>"


class Android(XmlValues):
    """A file of resources; its strings, plurals and arrays of strings are translated."""

    def read(self) -> None:
        elements = parse_xml(self.file)
        roots = [child for child in elements[0].children if child.tag]
        if roots[0].tag != "resources":
            raise NMTError(
                f"its root is <{roots[0].tag}>, but string resources of Android have <resources>; "
                "extract its text to XLIFF with Okapi's `tikal -x FILE`, and merge the translation "
                "with `tikal -m`"
            )
        for resource in roots[0].children:
            if resource.tag and resource.attributes.get("translatable") != "false":
                self.read_resource(resource)

    def read_resource(self, resource: Element) -> None:
        items = [child for child in resource.children if child.tag == "item"]
        is_string = resource.tag == "item" and resource.attributes.get("type") == "string"
        if resource.tag == "string" or is_string:
            self.add(resource)
        elif resource.tag == "string-array":
            for item in items:
                self.add(item)
        elif resource.tag == "plurals":
            self.read_plural(items)
        elif resource.tag == "array":
            # Most have references, numbers and colors.
            self.left[ARRAYS_LEFT] += sum(" " in item.text.strip() for item in items)

    def add(self, element: Element) -> Value | None:
        """Add the text of an element; None if it refers to another resource."""
        content = android_string(self.file[element.inside : element.outside])
        if not content or element.inside == element.end:
            return None
        begin, end, string, write = content
        value = Value(element.inside + begin, element.inside + end, string, write)
        self.values.append(value)
        return value

    def read_plural(self, items: Sequence[Element]) -> None:
        forms = {item.attributes.get("quantity", ""): item for item in items}
        texts = {form: item.text for form, item in forms.items()}
        sources = sources_of_forms(texts, self.target)
        for form, item in forms.items():
            space = space_before(self.file, item.begin)
            if sources.get(form) != form:
                self.changes.append(Part(item.begin - len(space), item.end))
                continue
            value = self.add(item)
            if value and form == OTHER:
                added = [added for added, source in sources.items() if added != source]
                value.copies = self.copies_of(item, value, added, space)

    def copies_of(
        self,
        item: Element,
        value: Value,
        forms: Sequence[str],
        space: str,
    ) -> list[Copy]:
        """Copies of the form `other` for other forms, before it."""
        before = self.file[item.begin : value.begin]
        after = self.file[value.end : item.end] + space
        copies = list[Copy]()
        for form in forms:
            opening = QUANTITY.sub(rf"\g<1>{form}", before, count=1)
            copies.append(Copy(item.begin, opening, after))
        return copies
