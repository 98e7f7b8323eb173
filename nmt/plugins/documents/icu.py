"""ICU messages, which choose a text by number or by name.

Syntax: https://unicode-org.github.io/icu/userguide/format_parse/messages. An example:
`{count, plural, one {# file} other {# files}}`.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

PLURAL = ("plural", "selectordinal")
KINDS = (*PLURAL, "select")
CATEGORIES = ("zero", "one", "two", "few", "many", "other")
DEEPEST = 20
"""Maximum levels of arguments: a hostile message must not exhaust Python's recursion."""
# Java's choices are recognized so that they can be counted. Their syntax differs, so they are not
# parsed.
STARTS = re.compile(r"\{\s*[^\s{},]+\s*,\s*(?:plural|selectordinal|select|choice)\s*,")
SPECIAL = re.compile(r"['{}#]")
WORD = r"[^\s{},'#]+"
HEAD = re.compile(rf"\{{\s*(?P<name>{WORD})\s*(?:\}}|,\s*(?P<kind>{WORD})\s*(?P<mark>[,}}]))")
OFFSET = re.compile(r"\s*offset:\s*\d+")
BRANCH = re.compile(r"\s*(?P<key>=\d+|[^\s{},'#=]+)\s*\{")
QUOTED = re.compile(r"(?>(?:[^']++|'')*)'")  # from after the first apostrophe
QUOTABLE = ("{", "}")
QUOTABLE_IN_PLURAL = ("{", "}", "#")
END = re.compile(r"\s*\}")
CONTROLS = re.compile(r"[\0-\x08]")  # stand for arguments while a sentence is translated


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
    kind: str = ""
    """plural, select and others; for {name}, empty; for the number sign, "#"."""
    shown: str = ""
    """The stand-in for the argument in a sentence."""
    branches: dict[str, Message] = field(default_factory=dict)


def is_message(text: str) -> bool:
    """True if a text seems to choose among several texts."""
    return STARTS.search(text) is not None


def parse_message(text: str) -> Message:
    """Parse an ICU message; UnknownSyntax if it is malformed or contains control characters."""
    # These characters stand for arguments while the message is translated.
    if CONTROLS.search(text):
        raise UnknownSyntax
    message = message_at(text, 0, number="", depth=0)
    if message.end < len(text):  # at a closing brace that closes nothing
        raise UnknownSyntax
    return message


def message_at(text: str, begin: int, number: str, depth: int) -> Message:
    """The ICU message from `begin` to the next unmatched closing brace, or to the text's end.

    Its arguments are those in braces, number signs in plurals, and quotations of such signs.
    `number` is the argument that the number sign stands for, and empty outside of plurals. `depth`
    is the number of arguments around the message. UnknownSyntax if the message is malformed.
    """
    if depth > DEEPEST:
        raise UnknownSyntax
    message = Message(begin, len(text))
    at = begin
    while special := SPECIAL.search(text, at):
        sign = special[0]
        at = special.end()
        argument: Argument | None = None
        if sign == "}":
            # Each opening brace has been read with its closing one, so this closes the message.
            message.end = special.start()
            break
        if sign == "{":
            argument = argument_at(text, special.start(), number, depth)
        elif sign == "#":
            if number:  # elsewhere, the sign is text
                argument = Argument(special.start(), at, number, "#", f"{{{number}}}")
        elif text.startswith("'", at):
            at += 1  # two apostrophes stand for one
        else:
            # ICU's default: an apostrophe quotes only if a sign with a meaning follows.
            argument = quotation_at(text, special.start(), number)
        if argument:
            message.arguments.append(argument)
            at = argument.end
    return message


def quotation_at(text: str, begin: int, number: str) -> Argument | None:
    """The quotation that begins at an apostrophe; None if the apostrophe is part of a word."""
    content = begin + 1
    if not text.startswith(QUOTABLE_IN_PLURAL if number else QUOTABLE, content):
        return None
    end = end_of_quotation(text, content)
    shown = text[content : end - 1].replace("''", "'")
    return Argument(begin, end, name="", shown=shown)


def end_of_quotation(text: str, at: int) -> int:
    """The offset after the apostrophe that ends a quotation; its content begins at `at`."""
    end = QUOTED.match(text, at)
    if not end:
        raise UnknownSyntax
    return end.end()


def argument_at(text: str, begin: int, number: str, depth: int) -> Argument:
    """The argument at an opening brace, such as {name} or {count, plural, one {# file} ...}."""
    head = HEAD.match(text, begin)
    if not head:
        raise UnknownSyntax
    name = head["name"]
    kind = head["kind"] or ""
    has_more = head["mark"] == ","
    argument = Argument(begin, head.end(), name, kind, f"{{{name}}}")
    if kind in KINDS:
        if not has_more:
            raise UnknownSyntax
        # In a branch of `select`, the number is still that of the plural around it.
        read_branches(text, argument, name if kind in PLURAL else number, depth)
    elif kind == "choice":
        raise UnknownSyntax
    elif has_more:
        argument.end = end_of_style(text, head.end())
    return argument


def read_branches(text: str, argument: Argument, number: str, depth: int) -> None:
    """Read the branches of an argument up to its closing brace, such as one {# file}.

    `argument.end` is where they begin, and afterwards the end of the argument.
    """
    offset = OFFSET.match(text, argument.end) if argument.kind == "plural" else None
    at = offset.end() if offset else argument.end
    while branch := BRANCH.match(text, at):
        key = branch["key"]
        is_key = argument.kind == "select" or key in CATEGORIES or key.startswith("=")
        # Two branches with one key would leave the choice to the parser.
        if not is_key or key in argument.branches:
            raise UnknownSyntax
        message = message_at(text, branch.end(), number, depth + 1)
        if not text.startswith("}", message.end):
            raise UnknownSyntax
        argument.branches[key] = message
        at = message.end + 1
    end = END.match(text, at)
    if not end or not argument.branches:
        raise UnknownSyntax
    argument.end = end.end()


def end_of_style(text: str, at: int) -> int:
    """The offset after the brace that ends the style of a number, a date or similar."""
    depth = 1
    while special := SPECIAL.search(text, at):
        sign = special[0]
        at = special.end()
        if sign == "'":
            # In a style, each apostrophe begins a quotation: {d, date, h 'o''clock'}.
            at = end_of_quotation(text, at)
        elif sign == "{":
            depth += 1
        elif sign == "}":
            depth -= 1
            if depth == 0:
                return at
    raise UnknownSyntax


def read_text(raw: str) -> str:
    """The text that a reader sees."""
    return raw.replace("''", "'")


def write_text(text: str) -> str:
    """Text for a message: all parsers read two apostrophes as one and quoted braces."""
    return re.sub(r"[{}]+", r"'\g<0>'", text.replace("'", "''"))


def write_plural(text: str) -> str:
    """Text for a branch of a plural, in which a number sign would stand for the number."""
    return re.sub(r"[{}#]+", r"'\g<0>'", text.replace("'", "''"))


def skeleton(message: Message) -> Counter[object]:
    """The parts that a translation must keep: arguments and the order of their branches."""
    result = Counter[object]()
    for argument in message.arguments:
        # Quoted text has no name, and a translation may quote other signs.
        if argument.name:
            names = tuple(argument.branches)
            branches = [skeleton(branch) for branch in argument.branches.values()]
            contents = tuple(frozenset(branch.items()) for branch in branches)
            result[argument.name, argument.kind, names, contents] += 1
    return result
