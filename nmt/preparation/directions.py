"""The tags of a corpus for a model such as NLLB, in which tags name the languages of both sides."""

from dataclasses import replace
from typing import Any

from nmt.config import DataConfig, ExperimentConfig, NMTError
from nmt.text import Tokenizer, direction_tag, match_language, near_in_words


def with_directions(config: ExperimentConfig, tokenizer: Tokenizer | None) -> ExperimentConfig:
    """The configuration with a tag for each source, if the vocabulary of `init` needs such tags.

    The languages are those of the source. NMTError if the vocabulary lacks one of them.
    """
    if tokenizer is None or not tokenizer.has_target_tags:
        return config
    data = config.data
    entries = data.sources
    # `sources_of` checks the rest of an entry.
    if isinstance(entries, list):
        entries = [with_direction(data, entry, tokenizer) for entry in entries]
    tag = data.tag
    if not entries:
        tag = tag or tag_for(data.source, data.target, tokenizer)
    return replace(config, data=replace(data, tag=tag, sources=entries))


def with_direction(data: DataConfig, entry: Any, tokenizer: Tokenizer) -> Any:
    """An entry of `data.sources` with the tag for its languages, unless it has its own tag."""
    if not isinstance(entry, dict) or entry.get("tag") or data.tag:
        return entry
    source = str(entry.get("source") or data.source)
    target = str(entry.get("target") or data.target)
    return {**entry, "tag": tag_for(source, target, tokenizer)}


def tag_for(source: str, target: str, tokenizer: Tokenizer) -> str:
    """The tag for two languages of a corpus, whose codes need not be those of the model."""
    codes = []
    for key, language in (("source", source), ("target", target)):
        code = match_language(language, tokenizer.languages)
        if code is None:
            near = near_in_words(language, tokenizer.languages)
            problem = f"data.{key}={language:.40}: the vocabulary of init has no such language"
            advice = "add it with `nmt extend`"
            raise NMTError("; ".join(part for part in (problem, near, advice) if part))
        codes.append(code)
    return direction_tag(*codes)
