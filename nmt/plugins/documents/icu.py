"""ICU messages, which choose a text by number or by name.

Syntax: https://unicode-org.github.io/icu/userguide/format_parse/messages. An example:
`{count, plural, one {# file} other {# files}}`.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from babel import Locale, UnknownLocaleError
from babel.core import parse_locale

PLURAL = ("plural", "selectordinal")
KINDS = (*PLURAL, "select")
# Java's choices are recognized so that they can be counted. Their syntax differs, so they are not parsed.
STARTS = re.compile(r"\{\s*[^\s{},]+\s*,\s*(?:plural|selectordinal|select|choice)\s*,")
SPECIAL = re.compile(r"['{}#]")
WORD = r"[^\s{},'#]+"
HEAD = re.compile(rf"\{{\s*(?P<name>{WORD})\s*(?:\}}|,\s*(?P<kind>{WORD})\s*(?P<mark>[,}}]))")
OFFSET = re.compile(r"\s*offset:\s*\d+")
BRANCH = re.compile(r"\s*(?P<key>=\d+|[^\s{},'#=]+)\s*\{")
QUOTED = re.compile(r"(?>(?:[^']++|'')*)'")  # from after the first apostrophe
END = re.compile(r"\s*\}")
CONTROLS = re.compile(r"[\0-\x08]")  # stand for arguments while a sentence is translated
DEEPEST = 20  # levels of arguments
CATEGORIES = ("zero", "one", "two", "few", "many", "other")
NUMBERS = range(1000)  # from which the integers that belong to a category are known


class UnknownSyntax(Exception):
    """A message breaks the rules of ICU."""


@dataclass
class Message:
    """A span of text with arguments."""

    begin: int
    end: int = 0
    arguments: list["Argument"] = field(default_factory=list)


@dataclass
class Argument:
    """A span that a program replaces, or a span of quoted text, which has no name."""

    begin: int
    end: int
    name: str
    kind: str = ""  # plural, select and others; for {name}, empty; for the number sign, "#"
    shown: str = ""  # what stands for it in a sentence
    branches: dict[str, Message] = field(default_factory=dict)


def is_message(text: str) -> bool:
    """True if a text seems to choose among several texts."""
    return STARTS.search(text) is not None


def parse_message(text: str) -> Message:
    """Parse an ICU message; UnknownSyntax if it is malformed or contains control characters."""
    if CONTROLS.search(text):
        raise UnknownSyntax
    message = message_at(text, 0, "", 0)
    if message.end < len(text):  # at a closing brace that closes nothing
        raise UnknownSyntax
    return message


def message_at(text: str, begin: int, number: str, depth: int) -> Message:
    """The message from `begin` to the next unmatched brace.

    `number` is the argument that the number sign stands for, if any.
    """
    if depth > DEEPEST:
        raise UnknownSyntax
    message, at = Message(begin), begin
    while special := SPECIAL.search(text, at):
        begin, at = special.start(), special.end()
        if special[0] == "}":
            break
        if special[0] == "{":
            argument = argument_at(text, begin, number, depth)
            message.arguments.append(argument)
            at = argument.end
        elif special[0] == "#" and number:
            message.arguments.append(Argument(begin, at, number, "#", f"{{{number}}}"))
        elif text.startswith("'", at) and special[0] == "'":
            at += 1  # two apostrophes stand for one
        elif special[0] == "'" and text[at : at + 1] in ("{", "}", *("#" if number else "")):
            at = end_of_quotation(text, at)
            shown = text[begin + 1 : at - 1].replace("''", "'")
            message.arguments.append(Argument(begin, at, "", "", shown))
    message.end = special.start() if special else len(text)
    return message


def end_of_quotation(text: str, at: int) -> int:
    """The offset after the apostrophe that ends a quotation; its content begins at `at`."""
    end = QUOTED.match(text, at)
    if not end:
        raise UnknownSyntax
    return end.end()


def argument_at(text: str, begin: int, number: str, depth: int) -> Argument:
    """The argument at an opening brace."""
    head = HEAD.match(text, begin)
    if not head:
        raise UnknownSyntax
    name, kind = head["name"], head["kind"] or ""
    argument = Argument(begin, head.end(), name, kind, f"{{{name}}}")
    if kind in KINDS:
        if head["mark"] != ",":
            raise UnknownSyntax
        read_branches(text, argument, name if kind in PLURAL else number, depth)
    elif kind == "choice":
        raise UnknownSyntax
    elif head["mark"] == ",":
        argument.end = end_of_style(text, head.end())
    return argument


def read_branches(text: str, argument: Argument, number: str, depth: int) -> None:
    """Read the branches of an argument up to its closing brace."""
    offset = OFFSET.match(text, argument.end) if argument.kind == "plural" else None
    at = offset.end() if offset else argument.end
    while branch := BRANCH.match(text, at):
        key = branch["key"]
        is_known = argument.kind == "select" or key in CATEGORIES or key.startswith("=")
        if key in argument.branches or not is_known:
            raise UnknownSyntax
        message = message_at(text, branch.end(), number, depth + 1)
        if not text.startswith("}", message.end):
            raise UnknownSyntax
        argument.branches[key] = message
        at = message.end + 1
    end = END.match(text, at)
    if not (end and argument.branches):
        raise UnknownSyntax
    argument.end = end.end()


def end_of_style(text: str, at: int) -> int:
    """The offset after the brace that ends the style of a number, a date or similar."""
    depth = 1
    while special := SPECIAL.search(text, at):
        at = special.end()
        if special[0] == "'":
            # In a style, each apostrophe begins a quotation: {d, date, h 'o''clock'}.
            at = end_of_quotation(text, at)
        depth += {"{": 1, "}": -1}.get(special[0], 0)
        if depth == 0:
            return at
    raise UnknownSyntax


def read_text(raw: str) -> str:
    """The text that a reader sees."""
    return raw.replace("''", "'")


def write_text(text: str) -> str:
    """Text for a message: all parsers read two apostrophes as one and quoted braces as braces."""
    return re.sub(r"[{}]+", r"'\g<0>'", text.replace("'", "''"))


def write_plural(text: str) -> str:
    """Text for a branch of a plural, in which a number sign would stand for the number."""
    return re.sub(r"[{}#]+", r"'\g<0>'", text.replace("'", "''"))


def skeleton(message: Message) -> Counter[object]:
    """What a translation of a message must keep: its arguments and the order of their branches."""
    result = Counter[object]()
    for argument in message.arguments:
        if argument.name:
            inside = [frozenset(skeleton(branch).items()) for branch in argument.branches.values()]
            result[argument.name, argument.kind, (*argument.branches,), (*inside,)] += 1
    return result


def choices(message: Message) -> Iterator[Argument]:
    """The arguments of a message with branches, also those in branches."""
    for argument in message.arguments:
        if argument.branches:
            yield argument
            for branch in argument.branches.values():
                yield from choices(branch)


@cache
def numbers_of_forms(language: str, kind: str) -> dict[str, list[int]]:
    """The plural forms of a language (CLDR) besides "other", and the small integers of each."""
    try:
        locale = Locale(parse_locale(language.replace("-", "_"))[0])
    except (ValueError, UnknownLocaleError):
        return {}
    rule = locale.plural_form if kind == "plural" else locale.ordinal_form
    numbers: dict[str, list[int]] = {form: [] for form in CATEGORIES if form in rule.tags}
    for number in NUMBERS:
        numbers.get(rule(number), []).append(number)
    return numbers


def missing_forms(message: Message, language: str) -> set[str]:
    """The plural forms that a language has and that a plural of the message lacks."""
    missing = set[str]()
    for argument in choices(message):
        forms = numbers_of_forms(language, argument.kind) if argument.kind in PLURAL else {}
        for form, numbers in forms.items():
            # =1 can stand for a category to which only 1 belongs.
            explicit = {f"={number}" for number in numbers}
            has_numbers = bool(numbers) and explicit <= argument.branches.keys()
            if form not in argument.branches and not has_numbers:
                missing.add(form)
    return missing


def lacking(messages: Sequence[Message], language: str) -> tuple[str, int]:
    """A notice about messages that lack plural forms of a language, and their number."""
    rows = [forms for message in messages if (forms := missing_forms(message, language))]
    names = [form for form in CATEGORIES if any(form in forms for forms in rows)]
    return f"messages without plural forms that {language} has ({', '.join(names)})", len(rows)
