"""YAML files with the texts of programs, such as those of Rails.

Their keys: https://guides.rubyonrails.org/i18n.html.
"""

import re
from collections.abc import Iterable

from nmt.config import NMTError
from nmt.plugins.catalogs.plurals import OTHER, forms_of_target
from nmt.plugins.catalogs.templates import Template
from nmt.plugins.catalogs.values import Copy, Value, Values
from nmt.plugins.catalogs.yaml_events import Mapping, Yaml
from nmt.plugins.catalogs.yaml_scalars import Scalar, is_text
from nmt.plugins.documents import CATEGORIES, Part, check_source, is_technical
from nmt.text import language_tag

CODE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z\d]{2,8}){0,3}")
PLACEHOLDER = re.compile(r"%\{[^{}]{1,100}\}|\{\{[^{}]{1,100}\}\}|\$t\([^()]{1,100}\)")
SYMBOL = re.compile(r":[A-Za-z_][\w.]{0,100}[?!]?")
DATE = re.compile(r"%[-0^#_]{0,2}[YBbHIMpPAaey](?![A-Za-z{])")
"""Directives of strftime that no other placeholder looks like, apart from `%a` and `%e` of C."""
FOR_CODE = re.compile(
    r"date\.order|(?:date|time|datetime)\.formats\..*"
    r"|number\.(?:.*\.)?(?:format|negative_format|unit|delimiter|separator|round_mode)"
    r"|number\.human\.storage_units\.units\.[a-z]b"  # KB, MB
    r"|i18n\..*"
)
"""The paths of values for programs in a locale of Rails, after its language.

https://github.com/svenfuchs/rails-i18n/blob/master/rails/locale/en.yml
"""
DATES_LEFT = "values for code, such as formats of dates and numbers, left unchanged"


class YamlStrings(Values):
    """A YAML file, whose strings are translated."""

    is_for_rails = False

    def read(self) -> None:
        self.values += self.values_in(self.file)

    def values_in(self, text: str) -> Iterable[Value]:
        content = Yaml(text)
        root = root_of_language(content)
        if root:
            self.relabel(root)
        elif self.is_for_rails:
            raise NMTError(
                "not a locale file, because its root key is no language code; pass format=yaml "
                "to translate all strings of a YAML file"
            )
        values = dict[int, Value]()  # by the offset of each scalar
        for item in content.texts:
            path = item.path[1:] if root else item.path
            if self.is_to_translate(path, item.scalar):
                scalar = item.scalar
                string = Template(scalar.value, PLACEHOLDER)
                values[scalar.begin] = Value(scalar.begin, scalar.end, string, scalar.write)
        for mapping in content.mappings:
            self.add_plurals(mapping, values)
        return values.values()

    def is_to_translate(self, path: tuple[str, ...], scalar: Scalar) -> bool:
        text = scalar.value
        if not scalar.is_string or SYMBOL.fullmatch(text) or is_technical(text):
            return False
        if FOR_CODE.fullmatch(".".join(path)) or DATE.search(text):
            self.left[DATES_LEFT] += 1
            return False
        return True

    def relabel(self, root: Scalar) -> None:
        """Replace the language of the file; raise NMTError if the model does not translate it."""
        check_source(root.value, f"line {root.line}: its root key", self.source, self.target)
        target = language_tag(self.target)
        if target:
            written = root.write(target) if root.style or is_text(target) else f'"{target}"'
            self.changes.append(Part(root.begin, root.end, otherwise=written))

    def add_plurals(self, mapping: Mapping, values: dict[int, Value]) -> None:
        """Add the plural forms that the target language has and a mapping lacks."""
        keys = [pair.key for pair in mapping.pairs if pair.key]
        forms = [key.value for key in keys]
        if len(keys) < len(mapping.pairs) or not is_plural(forms):
            return
        last_pair = mapping.pairs[-1]
        other = mapping.pairs[forms.index(OTHER)].scalar
        if not other or not last_pair.scalar or other.begin not in values:
            return
        value = values[other.begin]
        for form in forms_of_target(forms, self.target, keeps_zero=True):
            if form not in forms:
                value.copies.append(self.copy_of(mapping, keys[-1], last_pair.scalar, form))

    def copy_of(self, mapping: Mapping, key: Scalar, last: Scalar, form: str) -> Copy:
        """A further form, behind the last one, whose key is `key`."""
        name = key.write(form)
        if mapping.is_in_flow:
            return Copy(last.end, f", {name}: ")
        # A comment may follow on the line.
        at = self.file.find("\n", last.end)
        if at < 0:
            at = len(self.file)
        elif self.file[at - 1] == "\r":
            at -= 1
        return Copy(at, f"{key.line_end}{' ' * key.column}{name}: ")


class Locale(YamlStrings):
    """A YAML file whose root is a language code, as in Rails."""

    is_for_rails = True


def root_of_language(content: Yaml) -> Scalar | None:
    """The only root key of a file, if it is a language code."""
    if len(content.roots) != 1:
        return None
    root = content.roots[0]
    if not root or len(root.pairs) != 1:
        return None
    pair = root.pairs[0]
    if not pair.key or not (pair.mapping or pair.scalar):
        return None
    is_code = CODE.fullmatch(pair.key.value) and language_tag(pair.key.value)
    return pair.key if is_code else None


def is_plural(forms: Iterable[str]) -> bool:
    names = set(forms)
    return OTHER in names and len(names) > 1 and names <= set(CATEGORIES)
