"""Override blocks of SubStation Alpha, such as {\\i1}: which text they format."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from nmt.plugins.documents.dialogs import SIGNS, TAGS
from nmt.plugins.documents.nodes import MarkupToken
from nmt.plugins.documents.string_markup import STYLE_OVERRIDE
from nmt.plugins.documents.string_reader import Inset

NAMES = (
    "alpha iclip xbord ybord xshad yshad bord shad blur clip fade move fscx fscy"
    " fad fax fay frx fry frz fsc fsp org pos pbo"
    " 1a 2a 3a 4a 1c 2c 3c 4c an be fe fn fr fs a b c i p q r s t u"
)
OVERRIDE = re.compile(rf"\\({'|'.join(NAMES.split())})(\([^()]*+\)|[^\\]*+)")
OF_WHOLE_LINE = frozenset(
    ["iclip", "clip", "fade", "move", "fad", "org", "pos", "pbo", "an", "a", "q", "p", "t"]
)
"""The overrides that do not format only the text behind them."""
ALIASES = {"1c": "c", "fr": "frz"}
RESET = "r"
ENDS_SENTENCE = re.compile(r"\\[Nn](?=(?:\{[^{}]*+\}|[ \t])*+(?:" + SIGNS + r"|\\[Nn]))")
"""A line break before the words of another person, or before an empty line."""
ENDS_TURN = re.compile(rf"(?:\r\n?|\n)(?={TAGS}{SIGNS})")
"""The same line break in SubRip."""
OFF = ("", "0")
TAG = re.compile(STYLE_OVERRIDE)
"""A block in a file of another format, in which braces without overrides are text."""


@dataclass(frozen=True)
class Block:
    """A block in braces; without overrides, it is a comment."""

    begin: int
    end: int
    overrides: dict[str, str]

    @property
    def styles(self) -> set[str]:
        """The properties of text that the block sets."""
        return self.overrides.keys() - OF_WHOLE_LINE - {RESET}

    @property
    def ends_style(self) -> bool:
        """Whether the block only sets properties back to those of the style."""
        return all(self.overrides[name] in OFF for name in self.styles | self.resets)

    @property
    def resets(self) -> set[str]:
        return self.overrides.keys() & {RESET}

    @property
    def draws(self) -> bool | None:
        """Whether the text behind the block is a drawing; None if the block does not say."""
        scale = self.overrides.get("p")
        return None if scale is None else scale.strip() not in OFF


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks in braces; a brace that is never closed is text."""
    end = 0
    begin = text.find("{")
    while begin >= 0:
        end = text.find("}", begin) + 1
        if not end:
            return
        yield block_at(text, begin, end)
        begin = text.find("{", end)


def block_at(text: str, begin: int, end: int) -> Block:
    overrides = dict[str, str]()
    for name, value in OVERRIDE.findall(text[begin + 1 : end - 1]):
        overrides[ALIASES.get(name, name)] = value.strip()
    # An escaped brace, which only some players show, stays with its backslash.
    is_escaped = text[begin - 1 : begin] == "\\"
    return Block(begin - 1 if is_escaped else begin, end, overrides)


def override_insets(text: str) -> list[Inset]:
    """The override blocks, drawings and ends of sentences of an event."""
    insets = insets_of(text, blocks_of(text))
    return with_ends(text, insets, ENDS_SENTENCE)


def insets_of_tags(text: str) -> list[Inset]:
    """The override blocks, drawings and ends of sentences of a subtitle in SubRip."""
    blocks = [block_at(text, *match.span()) for match in TAG.finditer(text)]
    if not blocks:  # usual
        return []
    return with_ends(text, insets_of(text, blocks), ENDS_TURN)


def with_ends(text: str, insets: list[Inset], pattern: re.Pattern[str]) -> list[Inset]:
    """The insets and those of the line breaks that a pattern matches, in order."""
    for line_break in pattern.finditer(text):
        token = MarkupToken("point", line_break[0], name="p")
        insets.append(Inset(*line_break.span(), token, is_element=True))
    # The sort is stable, so tags at the same place keep their order.
    return sorted(insets, key=lambda inset: inset.begin)


def insets_of(text: str, blocks: Iterable[Block]) -> list[Inset]:
    """The tokens of blocks, in which drawings are single tokens.

    A block and the one that sets its properties back are the tags of an element.
    """
    insets = list[Inset]()
    opened = list[tuple[str, set[str]]]()  # the names of elements, and their properties
    drawing = -1  # where a drawing begins
    for block in blocks:
        if block.draws is False and drawing >= 0:
            insets.append(point(text, drawing, block.begin))
            drawing = -1
        if drawing >= 0:
            continue
        if block.draws:
            drawing = block.begin
            continue
        insets += tokens_of(block, text, opened)
    if drawing >= 0:
        insets.append(point(text, drawing, len(text)))
    # A style may continue to the end. Line breaks at the end belong to no sentence.
    end = len(text.rstrip())
    for name, _ in reversed(opened):
        insets.append(closing(end, end, name, ""))
    return insets


def tokens_of(block: Block, text: str, opened: list[tuple[str, set[str]]]) -> Iterator[Inset]:
    """The tags for a block: those of elements that it ends, and of one that it begins."""
    raw = text[block.begin : block.end]
    if not block.styles and not block.resets:
        yield point(text, block.begin, block.end)
        return
    ended = names_ended_by(block, opened)
    for name in ended[:-1]:
        yield closing(block.begin, block.begin, name, "")
    # Only the last of the closing tags is written, and none if the block also begins an element.
    if ended and block.ends_style:
        yield closing(block.begin, block.end, ended[-1], raw)
    elif ended:
        yield closing(block.begin, block.begin, ended[-1], "")
    elif block.ends_style:
        yield point(text, block.begin, block.end)
    if not block.ends_style:
        name = f"style{block.begin}"
        opened.append((name, block.styles))
        yield Inset(block.begin, block.end, MarkupToken("open", raw, name=name))


def names_ended_by(block: Block, opened: list[tuple[str, set[str]]]) -> list[str]:
    """Remove the elements whose properties a block sets, and return their names."""
    ended = list[str]()
    while opened and (block.resets or opened[-1][1] <= block.styles):
        ended.append(opened.pop()[0])
    return ended


def closing(begin: int, end: int, name: str, raw: str) -> Inset:
    return Inset(begin, end, MarkupToken("close", raw, name=name))


def point(text: str, begin: int, end: int) -> Inset:
    return Inset(begin, end, MarkupToken("point", text[begin:end]))
