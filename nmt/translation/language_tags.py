"""The tags with which a line for a multilingual model names its languages.

In most models, a tag names the target language, such as <2de>. In models such as NLLB, the tag of a
line names both languages, such as <eng_Latn2deu_Latn>. A user may leave out a language there that
the options `source` and `target` name.
"""

import re
from functools import lru_cache

from nmt.config import CODE, NMTError
from nmt.text import (
    MOST_LISTED,
    Tokenizer,
    did_you_mean,
    direction_tag,
    is_language,
    match_language,
    near_in_words,
)
from nmt.translation.directions import UNKNOWN, Direction
from nmt.translation.lines import Line
from nmt.translation.stages import RefusedLine

LANGUAGE_TAG = re.compile(r"\s*(<2[\w-]{1,30}>|>>[\w-]{1,30}<<)")
DIRECTION_TAG = re.compile(rf"\s*<(?P<source>{CODE}?)?2(?P<target>{CODE})?>")
"""A tag for a model with tags on both sides; either language may be missing."""
EXAMPLE = "target=en2de"
"""Names both languages in every command; in many, the key source is a file."""


def language_of(tag: str) -> str:
    """The target language that a tag or an option names: de for de, <2de>, >>de<< and en2de."""
    both = both_languages(tag)
    if both and both["target"]:
        return both["target"]
    return tag.strip("<>").removeprefix("2")


def both_languages(words: str) -> re.Match[str] | None:
    """A match of DIRECTION_TAG for en2de or <en2de>; None for the name of one language."""
    return DIRECTION_TAG.fullmatch(f"<{words.strip('<>')}>")


def source_of(source: str | None, target: str | None) -> str:
    """The source language that a user names, in `source` or in a target such as en2de."""
    both = both_languages(target or "")
    named = both["source"] if both else None
    return named or source or ""


def languages(tokenizer: Tokenizer) -> list[str]:
    """The target languages that the model has tags for."""
    if tokenizer.has_target_tags:
        return [*tokenizer.languages]
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
        names = [*map(language_of, tokenizer.tags)]
        raise unsupported("target", target, names, tokenizer)
    return f"{tag} "


def unsupported(key: str, language: str, names: list[str], tokenizer: Tokenizer) -> NMTError:
    """The error for a language that a model lacks; `names` are those of its languages."""
    supported = supported_in_words(language_of(language), names, tokenizer)
    hint = did_you_mean(language_of(language), languages(tokenizer))
    if hint:
        # The hint is a question, so a new sentence follows.
        supported = f"{hint} {supported[:1].upper()}{supported[1:]}"
    return NMTError(f"{key}={language:.40}: {supported}")


def supported_in_words(language: str, names: list[str], tokenizer: Tokenizer) -> str:
    """What a model supports instead of a language: all of its languages, or of many the near ones.

    `names` are those of all its languages.
    """
    if len(names) <= MOST_LISTED:
        return f"the model supports {', '.join(names)}"
    parts = ["not a language of the model"]
    near = near_in_words(language, languages(tokenizer))
    if near:
        parts.append(near)
    parts.append(f"`nmt runs RUN` lists all {len(names)}")
    return "; ".join(parts)


def supported_code(key: str, language: str, tokenizer: Tokenizer) -> str:
    """The model's code for a language that a user names; NMTError if it lacks the language."""
    code = code_for(language, tuple(tokenizer.languages))
    if code is None:
        raise unsupported(key, language, [*tokenizer.languages], tokenizer)
    return code


@lru_cache(maxsize=10_000)
def code_for(language: str, codes: tuple[str, ...]) -> str | None:
    """Like `match_language`; cached, because each line may name its languages."""
    return match_language(language, codes)


def direction_of(source: str | None, target: str | None, tokenizer: Tokenizer) -> Direction:
    """The languages that a user names to a model with tags on both sides.

    The target may name both, such as eng_Latn2deu_Latn.
    """
    source = source_of(source, target)
    both = both_languages(target or "")
    if both:
        target = both["target"]
    return Direction(
        supported_code("source", source, tokenizer) if source else "",
        supported_code("target", target, tokenizer) if target else "",
    )


def untagged(
    text: str, tokenizer: Tokenizer, align: bool = False, default: Direction = UNKNOWN
) -> Line | RefusedLine:
    """A line stripped of its leading language tag; refused if the model lacks that tag.

    For a model with tags on both sides, the tag completes the languages of `default`.
    """
    if tokenizer.has_target_tags:
        return in_direction(text, tokenizer, align, default)
    text_from_tag = text.lstrip()
    tag = tokenizer.leading_tag(text_from_tag)
    if tag:
        return Line(text_from_tag.removeprefix(tag), f"{tag} ", align)
    # A model such as SMaLL-100 reads the tag of the target only.
    both = DIRECTION_TAG.match(text_from_tag) if tokenizer.languages else None
    if both and names_language(both, tokenizer):
        target_tag = find_tag(both["target"], tokenizer)
        if target_tag:
            return Line(text_from_tag[both.end() :], f"{target_tag} ", align)
        supported = supported_in_words(both["target"], [*tokenizer.languages], tokenizer)
        return RefusedLine(0, f"{both[0].strip()}: {supported}")
    unknown = LANGUAGE_TAG.match(text)
    # For a model without such tags, `<2de>` is text like any other.
    if unknown and has_tags_like(unknown[1], tokenizer):
        supported = supported_in_words(language_of(unknown[1]), [*tokenizer.tags], tokenizer)
        return RefusedLine(0, f"{unknown[1]}: {supported}")
    return Line(text, align=align)


def in_direction(
    text: str, tokenizer: Tokenizer, align: bool, default: Direction
) -> Line | RefusedLine:
    """A line for a model with tags on both sides; without a tag if the default says all."""
    match = DIRECTION_TAG.match(text)
    if match and not names_language(match, tokenizer):
        match = None
    direction = default
    if match:
        try:
            source = match["source"] or default.source
            target = match["target"] or default.target
            direction = direction_of(source, target, tokenizer)
        except NMTError as error:
            return RefusedLine(0, str(error))
    # A blank line has no languages, and needs none.
    if not all(direction) and text.strip():
        missing = "target" if direction.source else "source"
        advice = f"pass {EXAMPLE}, or begin lines with <en2de>"
        return RefusedLine(0, f"its {missing} language is not known; {advice}")
    if match is None:
        return Line(text, align=align)
    return Line(text[match.end() :], f"{direction_tag(*direction)} ", align)


def names_language(match: re.Match[str], tokenizer: Tokenizer) -> bool:
    """Whether a match of DIRECTION_TAG names a language, unlike <h2> or <b2b>."""
    # No markup begins with a digit, so <2xx> is a mistake.
    if not match["source"]:
        return True
    codes = tuple(tokenizer.languages)
    return any(code_for(word, codes) or is_language(word) for word in match.groups() if word)


def has_tags_like(tag: str, tokenizer: Tokenizer) -> bool:
    """Whether the model has tags of the same form: <2de> or >>deu<<."""
    return any(known_tag[:2] == tag[:2] for known_tag in tokenizer.tags)
