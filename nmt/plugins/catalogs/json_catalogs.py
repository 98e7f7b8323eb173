"""The catalogs of Flutter (ARB), of browser extensions, and of i18next, which are JSON."""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from nmt.config import NMTError
from nmt.plugins.catalogs.icu_plurals import with_forms_of
from nmt.plugins.catalogs.json_tree import (
    JSON_STRING,
    Member,
    Node,
    all_members,
    parse_json,
    read_string,
    without,
    write_string,
)
from nmt.plugins.catalogs.plurals import OTHER, sources_of_forms
from nmt.plugins.catalogs.values import Copy, Value, Values, space_before
from nmt.plugins.documents import CATEGORIES, Part, StringOfProgram, check_source
from nmt.text import language_tag

ORDINAL = "_ordinal"
ORDINALS_LEFT = "ordinal plurals (first, second) that keep the forms of the source language"


class JsonValues(Values):
    """A file of JSON with the strings of a program."""

    def value_of(self, node: Node) -> Value:
        """The value for a string of the file."""
        text = read_string(self.file, node)
        write = partial(write_string, before=self.file[node.begin : node.end])
        return Value(node.begin, node.end, StringOfProgram(text), write)

    def members(self, what: str) -> list[Member]:
        """The members of the file's object; NMTError if the file is another value."""
        root = parse_json(self.file)
        if root.kind != "{":
            raise NMTError(f"not {what}, which is a JSON object with the names of its messages")
        return root.members


class Arb(JsonValues):
    """An Application Resource Bundle of Flutter, with ICU messages.

    https://github.com/google/app-resource-bundle/wiki/ApplicationResourceBundleSpecification
    """

    def read(self) -> None:
        for member in self.members("an ARB file"):
            value = member.value
            if member.name == "@@locale":
                self.changes += self.locale(value)
            # Names with this sign are about a message, or about the file.
            elif member.name.startswith("@"):
                continue
            elif value.kind == '"':
                self.values.append(self.message(value))
            elif value.kind in "{[":
                number = self.file.count("\n", 0, member.begin) + 1
                raise NMTError(
                    f"line {number}: not an ARB file, whose messages are strings; pass format=json "
                    "to translate all strings of a JSON file"
                )

    def locale(self, node: Node) -> list[Part]:
        """The change of the declared language; raise NMTError for a file in another language."""
        if node.kind == '"':
            check_source(read_string(self.file, node), "@@locale", self.source, self.target)
        # Flutter writes en_US.
        code = language_tag(self.target).replace("-", "_")
        if not code or node.kind != '"':
            return []
        return [Part(node.begin, node.end, otherwise=json.dumps(code))]

    def message(self, node: Node) -> Value:
        text = read_string(self.file, node)
        value = self.value_of(node)
        completed = with_forms_of(text, self.target)
        if completed != text:
            value.string = StringOfProgram(completed)
            value.is_completed = True
        return value


class ChromeMessages(JsonValues):
    """The messages of a browser extension.

    https://developer.chrome.com/docs/extensions/reference/api/i18n
    """

    def read(self) -> None:
        members = self.members("messages.json of a browser extension")
        for member in members:
            message = member.value.get("message")
            if message and message.kind == '"':
                self.values.append(self.value_of(message))
        if members and not self.values:
            raise NMTError(
                'not messages.json of a browser extension, because nothing in it has a "message"; '
                "pass format=json to translate all strings of a JSON file"
            )


class I18next(JsonValues):
    """Translations of i18next, whose names end in a plural category.

    https://www.i18next.com/misc/json-format (version 4)
    """

    def read(self) -> None:
        root = Node("{", 0, members=self.members("translations of i18next"))
        dropped = set[int]()
        copies = dict[int, list[Copy]]()
        for node in objects(root):
            superfluous = list[Member]()
            for plural in plurals_of(node):
                sources = self.sources_of(plural)
                superfluous += [plural[form] for form in plural if sources.get(form) != form]
                added = [form for form, source in sources.items() if form != source]
                copies[plural[OTHER].value.begin] = self.copies_of(plural[OTHER], added)
            self.changes += without(self.file, node.members, superfluous)
            dropped |= {member.value.begin for member in superfluous}
        for member in all_members(root):
            node = member.value
            if node.kind == '"' and node.begin not in dropped:
                value = self.value_of(node)
                value.copies = copies.get(node.begin, [])
                self.values.append(value)

    def sources_of(self, plural: Mapping[str, Member]) -> Mapping[str, str]:
        """For each form that a plural has in the translation, the form to translate."""
        if plural[OTHER].name.endswith(f"{ORDINAL}_{OTHER}"):
            self.left[ORDINALS_LEFT] += bool(self.target)
            return {form: form for form in plural}
        texts = {form: read_string(self.file, member.value) for form, member in plural.items()}
        return sources_of_forms(texts, self.target, keeps_zero=True)

    def copies_of(self, member: Member, forms: Sequence[str]) -> list[Copy]:
        """Copies of the form `other` for other forms, before it."""
        key = JSON_STRING.match(self.file, member.begin)
        assert key
        colon = self.file[key.end() : member.value.begin]
        space = space_before(self.file, member.begin)
        base = member.name.removesuffix(OTHER)
        copies = list[Copy]()
        for form in forms:
            name = write_string(base + form, key[0])
            copies.append(Copy(member.begin, name + colon, f",{space}"))
        return copies


def objects(root: Node) -> Iterator[Node]:
    """An object, and all objects inside of it."""
    yield root
    for member in all_members(root):
        if member.value.kind == "{":
            yield member.value


def plurals_of(node: Node) -> Iterator[dict[str, Member]]:
    """The plurals among the members of an object: their forms, by category."""
    plurals = dict[str, dict[str, Member]]()
    for member in node.members:
        base, separator, category = member.name.rpartition("_")
        if separator and category in CATEGORIES and member.value.kind == '"':
            plurals.setdefault(base, {})[category] = member
    for plural in plurals.values():
        # Otherwise, the name of a single message happens to end like this.
        if OTHER in plural:
            yield plural
