"""The tags with which a line for a multilingual model names its target language, such as <2de>."""

import re

from nmt.config import NMTError
from nmt.text import Tokenizer, did_you_mean, match_language
from nmt.translation.lines import Line
from nmt.translation.stages import RefusedLine

LANGUAGE_TAG = re.compile(r"\s*(<2[\w-]{1,30}>|>>[\w-]{1,30}<<)")


def language_of(tag: str) -> str:
    return tag.strip("<>").removeprefix("2")


def languages(tokenizer: Tokenizer) -> list[str]:
    """The target languages that the model has tags for."""
    return [language_of(tag) for tag in tokenizer.tags if LANGUAGE_TAG.fullmatch(tag)]


def find_tag(target: str, tokenizer: Tokenizer) -> str | None:
    """The tag that a user means by 2fr, <2fr>, fr, FR, fra or fr-CA.

    None if the model has no such tag.
    """
    # Tags need not be those of languages, so the user's words count first.
    for tag in tokenizer.tags:
        if target in (tag, tag.strip("<>"), language_of(tag)):
            return tag
    code = match_language(language_of(target), languages(tokenizer))
    for tag in tokenizer.tags:
        if language_of(tag) == code:
            return tag
    return None


def language_tag(target: str | None, tokenizer: Tokenizer) -> str:
    """The tag of a target language and a space, or "" for None.

    Raises NMTError if the model has no such tag.
    """
    if not target:
        return ""
    tag = find_tag(target, tokenizer)
    if tag is None:
        supported = ", ".join(map(language_of, tokenizer.tags))
        hint = did_you_mean(language_of(target), languages(tokenizer))
        if hint:
            raise NMTError(f"target={target:.40}: {hint} The model supports {supported}")
        raise NMTError(f"target={target:.40}: the model supports {supported}")
    return f"{tag} "


def untagged(text: str, tokenizer: Tokenizer, align: bool = False) -> Line | RefusedLine:
    """A line stripped of its leading language tag; refused if the model lacks that tag."""
    text_from_tag = text.lstrip()
    tag = tokenizer.leading_tag(text_from_tag)
    if tag:
        return Line(text_from_tag.removeprefix(tag), f"{tag} ", align)
    unknown = LANGUAGE_TAG.match(text)
    # For a model without such tags, `<2de>` is text like any other.
    if unknown and has_tags_like(unknown[1], tokenizer):
        supported = ", ".join(tokenizer.tags)
        return RefusedLine(0, f"{unknown[1]}: the model supports {supported}")
    return Line(text, align=align)


def has_tags_like(tag: str, tokenizer: Tokenizer) -> bool:
    """Whether the model has tags of the same form: <2de> or >>deu<<."""
    return any(known_tag[:2] == tag[:2] for known_tag in tokenizer.tags)
