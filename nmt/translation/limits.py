"""The limits of a model: lengths, languages and characters that it can read."""

from dataclasses import dataclass, replace
from typing import Any

from nmt.files import RARE_LETTERS, ModelDescription, is_parser, joined_pairs, positions, within
from nmt.translation.directions import Direction


@dataclass(frozen=True)
class Limits:
    """The limits of a model's input; None means no limit."""

    split: bool = False
    """Lines are translated sentence by sentence."""
    together: int = 1
    """With `split`, at most so many sentences are translated together."""
    longest: int | None = None
    """With `split`, a sentence with more tokens is translated in parts."""
    positions: int | None = None
    """The number of tokens that the model has positions for."""
    language: str = ""
    """The source language, whose rules split lines into sentences."""
    characters: frozenset[str] | None = None
    """The characters of the training sources. Words with other characters are copied."""
    rare: frozenset[str] = frozenset()
    """The letters in `characters` that are too rare to be learned."""
    copies_signs: bool = False
    """Text without a letter is copied, such as a rule or a smiley."""
    target: str = ""
    """The target language; empty if it is unknown."""


def limits_of(
    descriptions: list[ModelDescription], split: bool, direction: Direction | None = None
) -> Limits:
    """The limits that suit all models of an ensemble.

    Without a `direction`, the languages are those that the first model states.
    """
    direction = direction or Direction(descriptions[0].source, descriptions[0].target)
    ends = []
    for description in descriptions:
        end = positions(description)
        if end:
            ends.append(end)
    lengths = longest_sources(descriptions)
    characters = None
    rare = frozenset[str]()
    # A copy would cut the sentence, and a parser must build its tree over all words.
    is_parsing = any(is_parser(description) for description in descriptions)
    if not is_parsing:
        characters, rare = learned_characters(descriptions)
    return Limits(
        split=split,
        # Positions alone do not make a model translate
        # sentences well that are longer than any in training.
        longest=min([*lengths, *ends], default=None) if split else None,
        positions=min(ends, default=None),
        language=direction.source,
        characters=characters,
        rare=rare,
        copies_signs=reads_letters(characters) and not is_parsing,
        target=direction.target,
    )


def limits_for(
    descriptions: list[ModelDescription], split: str, direction: Direction | None = None
) -> Limits:
    """The limits with a value of the option `split`."""
    limits = limits_of(descriptions, split != "never", direction)
    if split != "paragraph":
        return limits
    # An ensemble translates each chunk with all of its models.
    return replace(limits, together=min(map(joined_pairs, descriptions)))


def longest_sources(descriptions: list[ModelDescription]) -> list[int]:
    """The number of tokens of the longest training source, for each model that records it."""
    lengths = []
    for description in descriptions:
        # config.json may come from anyone, so its values are checked where they are used.
        length = within(description.training, "lengths", "source", "max")
        if type(length) is int and length > 0:  # a bool is an int, too
            lengths.append(length)
    return lengths


def learned_characters(
    descriptions: list[ModelDescription],
) -> tuple[frozenset[str] | None, frozenset[str]]:
    """The `characters` and `rare` letters of Limits: the characters that all models have seen.

    A character is rare if it is rare for any of the models. Without a record for each model, there
    is no limit.
    """
    frequent = list[frozenset[str]]()
    seen = list[frozenset[str]]()
    for description in descriptions:
        text: Any = within(description.training, "characters", "source")
        if not isinstance(text, str):
            return None, frozenset()
        # Models of earlier versions do not record rare letters.
        rare_letters = within(description.training, "characters", RARE_LETTERS) or ""
        frequent.append(frozenset(text))
        seen.append(frozenset(text + rare_letters))
    # An ensemble reads each character with all of its models, so each must know it.
    # A space is not a reason to copy, even if no training source had one.
    characters = frozenset.intersection(*seen) | {" "}
    rare = characters - frozenset.intersection(*frequent) - {" "}
    return characters, rare


def reads_letters(characters: frozenset[str] | None) -> bool:
    """Whether a model has seen letters; toy models, which reverse digits for example, have not."""
    return characters is None or any(map(str.isalpha, characters))
