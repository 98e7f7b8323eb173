"""The tags with which a line for a multilingual model names its target language, such as <2de>."""

import re

from nmt.config import NMTError
from nmt.text import MOST_LISTED, Tokenizer, did_you_mean, match_language, near_in_words
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
        language = language_of(target)
        supported = supported_in_words(language, [*map(language_of, tokenizer.tags)], tokenizer)
        hint = did_you_mean(language, languages(tokenizer))
        if hint:
            # The hint is a question, so a new sentence follows.
            supported = f"{hint} {supported[:1].upper()}{supported[1:]}"
        raise NMTError(f"target={target:.40}: {supported}")
    return f"{tag} "


def supported_in_words(language: str, tags: list[str], tokenizer: Tokenizer) -> str:
    """What a model supports instead of a language: all of its tags, or of many the near ones."""
    if len(tags) <= MOST_LISTED:
        return f"the model supports {', '.join(tags)}"
    parts = ["not a language of the model"]
    near = near_in_words(language, languages(tokenizer))
    if near:
        parts.append(near)
    parts.append(f"`nmt runs RUN` lists all {len(tags)}")
    return "; ".join(parts)


def untagged(text: str, tokenizer: Tokenizer, align: bool = False) -> Line | RefusedLine:
    """A line stripped of its leading language tag; refused if the model lacks that tag."""
    text_from_tag = text.lstrip()
    tag = tokenizer.leading_tag(text_from_tag)
    if tag:
        return Line(text_from_tag.removeprefix(tag), f"{tag} ", align)
    unknown = LANGUAGE_TAG.match(text)
    # For a model without such tags, `<2de>` is text like any other.
    if unknown and has_tags_like(unknown[1], tokenizer):
        supported = supported_in_words(language_of(unknown[1]), [*tokenizer.tags], tokenizer)
        return RefusedLine(0, f"{unknown[1]}: {supported}")
    return Line(text, align=align)


def has_tags_like(tag: str, tokenizer: Tokenizer) -> bool:
    """Whether the model has tags of the same form: <2de> or >>deu<<."""
    return any(known_tag[:2] == tag[:2] for known_tag in tokenizer.tags)
