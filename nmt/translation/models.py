"""The models that a command names, and the target language that it asks for."""

from pathlib import Path
from typing import NamedTuple

from nmt.config import MULTIPLE, NMTError, TranslatorOptions
from nmt.files import ModelDescription, find_model_directory, read_description
from nmt.text import (
    Tokenizer,
    did_you_mean,
    direction_tag,
    match_language,
    read_tokenizer,
    with_code,
)
from nmt.translation.directions import Direction
from nmt.translation.language_tags import (
    EXAMPLE,
    direction_of,
    find_tag,
    language_of,
    language_tag,
    languages,
    source_of,
    supported_code,
)


class Models(NamedTuple):
    """The model directories that `run` names, their descriptions, and their common tokenizer."""

    folders: list[Path]
    descriptions: list[ModelDescription]
    tokenizer: Tokenizer

    def target(self, options: TranslatorOptions) -> str:
        """The target language; empty if it is unknown."""
        if self.tokenizer.has_target_tags:
            return self.direction(options).target
        codes = languages(self.tokenizer)
        if not codes:
            return self.descriptions[0].target or ""
        target = language_of(options.target or "")
        return match_language(target, codes) or target

    def direction(self, options: TranslatorOptions) -> Direction:
        """The languages of lines without a tag; empty where they are unknown."""
        description = self.descriptions[0]
        if not self.tokenizer.has_target_tags:
            return Direction(self.source(options), self.target(options))
        named = direction_of(options.source, options.target, self.tokenizer)
        # A model that was trained on one direction has it as its default.
        known = self.tokenizer.languages
        return Direction(
            named.source or (description.source if description.source in known else ""),
            named.target or (description.target if description.target in known else ""),
        )

    def source(self, options: TranslatorOptions) -> str:
        """The source language of a model without tags on both sides; empty if it is unknown."""
        stated = self.descriptions[0].source
        if stated != MULTIPLE:
            return stated
        source = source_of(options.source, options.target)
        if source and self.tokenizer.languages:
            return supported_code("source", source, self.tokenizer)
        return source

    def source_languages(self) -> list[str]:
        """The codes of the languages that the model translates from."""
        source = self.descriptions[0].source
        if self.tokenizer.has_target_tags or (source == MULTIPLE and self.tokenizer.languages):
            return [*self.tokenizer.languages]
        return [source]

    def target_languages(self) -> list[str]:
        """The codes of the languages that the model translates into."""
        return languages(self.tokenizer) or [self.descriptions[0].target]


def find_models(names: list[str]) -> Models:
    """Find models by name; NMTError if one is missing or their vocabularies differ."""
    folders = [find_model_directory(name) for name in names]
    descriptions = [read_description(folder) for folder in folders]
    for folder, description in zip(folders, descriptions, strict=True):
        # An ensemble averages probabilities token by token, so all models must number tokens alike.
        if description.tokenizer != descriptions[0].tokenizer:
            raise NMTError(
                f"{folder} and {folders[0]} have different vocabularies: they cannot form an "
                "ensemble"
            )
    return Models(folders, descriptions, read_tokenizer(folders[0]))


def tag_of_languages(options: TranslatorOptions, models: Models) -> str:
    """The tag of lines without their own, and a space; "" if they need or have none."""
    if models.tokenizer.has_target_tags:
        direction = models.direction(options)
        # Lines may name the other language themselves.
        return f"{direction_tag(*direction)} " if all(direction) else ""
    check_source(options, models)
    return tag_of_target(options, models)


def require_languages(options: TranslatorOptions, models: Models) -> Direction:
    """The languages of all lines; NMTError if the model needs languages that are not named."""
    direction = models.direction(options)
    if models.tokenizer.has_target_tags and not all(direction):
        missing = "target" if direction.source else "source"
        raise NMTError(f"the {missing} language is not known; pass both, such as {EXAMPLE}")
    return direction


def check_source(options: TranslatorOptions, models: Models) -> None:
    """Raise NMTError if a model has another source language than the user names."""
    source = source_of(options.source, options.target)
    description = models.descriptions[0]
    if description.source == MULTIPLE:
        models.source(options)  # raises an error for a language that the model lacks
        return
    if not source or match_language(source, [description.source]):
        return
    raise NMTError(
        f"source={source:.40}: {options.run[0]} translates from {with_code(description.source)}; "
        "omit source, or name another model"
    )


def tag_of_target(options: TranslatorOptions, models: Models) -> str:
    """Like `language_tag`, but a model with a single target language accepts it without a tag."""
    target = options.target
    if not target or languages(models.tokenizer) or find_tag(target, models.tokenizer):
        return language_tag(target, models.tokenizer)
    description = models.descriptions[0]
    # A model with a single target has no tags; it only confirms the user's choice.
    if match_language(language_of(target), [description.target]):
        return ""
    targets = [description.target] if description.target else []
    advice = did_you_mean(language_of(target), targets)
    if not advice:
        advice = "omit target, or name another model"
    direction = f"from {with_code(description.source)} to {with_code(description.target)}"
    raise NMTError(f"target={target:.40}: {options.run[0]} translates {direction}; {advice}")
