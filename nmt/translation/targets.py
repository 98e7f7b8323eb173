"""The target languages of a model: tags such as <2fr> or >>fra<<, with which a source begins, and scripts."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from nmt.errors import NMTError
from nmt.files import ModelDescription, parse_json, within
from nmt.text import Tokenizer, is_text, scripts_of_characters, scripts_of_language

LANGUAGE_TAG = re.compile(r"\s*(<2[\w-]{1,30}>|>>[\w-]{1,30}<<)")


def language_of(tag: str) -> str:
    return tag.strip("<>").removeprefix("2")


def languages(tokenizer: Tokenizer) -> list[str]:
    """The target languages that the model has tags for."""
    return [language_of(tag) for tag in tokenizer.tags if LANGUAGE_TAG.fullmatch(tag)]


def unknown_tag(line: str, tokenizer: Tokenizer) -> str:
    """The tag that a line begins with, if it looks like the model's but is none of them."""
    found = LANGUAGE_TAG.match(line)
    alike = found and any(tag[:2] == found[1][:2] for tag in tokenizer.tags)
    return found[1] if found and alike and found[1] not in tokenizer.tags else ""


def language_tag(target: str | None, tokenizer: Tokenizer) -> str:
    """The tag of a target language with a blank, or none; NMTError where the model has no such tag."""
    if not target:
        return ""
    tags = [tag for tag in tokenizer.tags if target in (tag, tag.strip("<>"), language_of(tag))]
    if not tags:
        names = ", ".join(map(language_of, tokenizer.tags))
        raise NMTError(f"target={target:.40}: the model has {names or 'no tags, as it has one target language'}")
    return f"{tags[0]} "


def fields_of_tsv(line: str) -> tuple[str, str]:
    """The text and the target language of a line."""
    target, tab, text = line.partition("\t")
    if not tab:
        raise NMTError("no tab; a target language, a tab and a text, please, as 'fr\tGood morning'")
    return text, target.strip()


def fields_of_json(line: str) -> tuple[str, str]:
    """The text and the target language, or "", of a line."""
    try:
        record: Any = parse_json(line)
    except ValueError as error:
        raise NMTError(f"no JSON ({error})") from error
    text, target = (record.get("source"), record.get("target", "")) if isinstance(record, dict) else (None, "")
    if not is_text(text) or not isinstance(target, str):
        raise NMTError('no text; {"source": "Good morning", "target": "fr"}, please')
    return " ".join(text.split()), target


READERS: dict[str, Callable[[str], tuple[str, str]]] = {"tsv": fields_of_tsv, "jsonl": fields_of_json}


def with_tags(lines: Iterable[str], format: str, tokenizer: Tokenizer, first: int) -> Iterator[str]:
    """The texts of lines with columns, each after the tag of its target language if it has one.

    `first` is the number of the first line. Raises NMTError, which names the line, for one that cannot be read.
    """
    tag_of = cache(lambda target: language_tag(target, tokenizer))
    for number, line in enumerate(lines, first):
        try:
            text, target = READERS[format](line) if line.strip() else ("", "")
            yield tag_of(target) + text
        except NMTError as error:
            raise NMTError(f"line {number:,}: {error}") from error


def target_scripts(descriptions: list[ModelDescription]) -> frozenset[str] | None:
    """The scripts that a model writes: those of its training's targets if these are known, else of its language."""
    characters = within(descriptions[0].training, "characters", "target")
    found = scripts_of_characters(characters) if isinstance(characters, str) else frozenset()
    return found or scripts_of_language(descriptions[0].target)
