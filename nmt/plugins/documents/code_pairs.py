"""Pairs of codes in XLIFF and TMX, such as <bpt> and <ept>."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from nmt.plugins.documents.nodes import MarkupToken

ID = "id "
RID = "rid "


def name_of_code(attributes: dict[str, str]) -> str:
    """The name that the two codes of a pair share: `rid` in XLIFF, `i` in TMX, or else `id`."""
    rid = attributes.get("rid") or attributes.get("i")
    return f"{RID}{rid}" if rid else ID + attributes.get("id", "")


def with_pairs(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """The tokens in which the two codes of each pair have the same name."""
    opened = {token.name for token in tokens if token.kind == "open"}
    named = list[MarkupToken]()
    for token in tokens:
        # Between two tags, there is a token without text.
        if token.kind == "text" and not token.raw and not token.text:
            continue
        # A code may also refer to the `id` of the other one, as in <bx id="1"/>a<ex rid="1"/>.
        if token.kind == "close" and token.name not in opened:
            token = replace(token, name=other_name(token.name))
        named.append(token)
    return with_nested_pairs(named)


def other_name(name: str) -> str:
    if name.startswith(RID):
        return ID + name.removeprefix(RID)
    return RID + name.removeprefix(ID) if name.startswith(ID) else name


def with_nested_pairs(tokens: Sequence[MarkupToken]) -> list[MarkupToken]:
    """The tokens in which pairs around the same words are one pair.

    memoQ closes such pairs in any order: <bpt id="1"/><bpt id="2"/>a<ept id="1"/><ept id="2"/>.
    """
    joined = dict[int, range]()  # the first token of a run -> the run that becomes one token
    opened = list[int]()
    index = 0
    while index < len(tokens):
        if tokens[index].kind == "open":
            opened.append(index)
        if tokens[index].kind != "close":
            index += 1
            continue
        run = run_of_closings(tokens, index)
        before = opened[-len(run) :]
        if is_same_run(tokens, before, run):
            joined[before[0]] = range(before[0], before[-1] + 1)
            joined[run[0]] = run
        # Whatever else these tags close, no later run can be around the same words.
        del opened[-len(run) :]
        index = run.stop
    return with_joined(tokens, joined)


def run_of_closings(tokens: Sequence[MarkupToken], begin: int) -> range:
    end = begin
    while end < len(tokens) and tokens[end].kind == "close":
        end += 1
    return range(begin, end)


def is_same_run(tokens: Sequence[MarkupToken], opened: Sequence[int], closed: range) -> bool:
    """Whether tags that follow one another open what a run of closing tags closes."""
    if len(opened) != len(closed) or opened[-1] - opened[0] != len(opened) - 1:
        return False
    opening = [tokens[index].name for index in opened]
    closing = [tokens[index].name for index in closed]
    # Properly nested tags need no change.
    return opening[::-1] != closing and Counter(opening) == Counter(closing)


def with_joined(tokens: Sequence[MarkupToken], joined: dict[int, range]) -> list[MarkupToken]:
    result = list[MarkupToken]()
    index = 0
    while index < len(tokens):
        run = joined.get(index, range(index, index + 1))
        names = sorted(tokens[number].name for number in run)
        raw = "".join(tokens[number].raw for number in run)
        token = tokens[index]
        result.append(token if len(run) == 1 else replace(token, raw=raw, name=" ".join(names)))
        index = run.stop
    return result
