"""The lengths and characters up to which a model translates lines as they are."""

from dataclasses import dataclass

from nmt.model_directory.description import ModelDescription, is_parser, positions, within


@dataclass
class Limits:
    """Limits in tokens beyond which lines are cut, and the known characters; None: no limit."""

    usual: int | None = None
    """A line with more tokens is translated sentence by sentence."""
    longest: int | None = None
    """A sentence with more tokens is translated in parts."""
    positions: int | None = None
    """The model has positions for this many tokens."""
    language: str = ""
    """Language of the lines, whose rules split them into sentences."""
    reason: str = ""
    """End of the notice about a line that is cut, after its length; empty if the user asked for it (split=always)."""
    characters: frozenset[str] | None = None
    """Characters of the training sources; words with other characters are copied."""


def numbers(descriptions: list[ModelDescription], *keys: str) -> list[int]:
    """The positive numbers that the trainings of these models recorded under these keys."""
    found = [within(description.training, *keys) for description in descriptions]
    return [number for number in found if type(number) is int and number > 0]


def limits(descriptions: list[ModelDescription], split: str) -> Limits:
    """The limits of a model, or those that all models of an ensemble keep; `split` is auto, always or never."""
    ends = [end for end in map(positions, descriptions) if end]
    found = Limits(positions=min(ends, default=None), language=descriptions[0].source)
    found.characters = known_characters(descriptions)
    if split == "never":
        return found
    usual, most = (numbers(descriptions, "lengths", "source", key) for key in ("p99", "max"))
    most = most or numbers(descriptions, "config", "data", "filters", "max_tokens")
    found.longest = min([*most, *ends], default=None)
    if found.longest is None:
        return found
    found.usual = min([*usual, found.longest])
    if split == "always":
        found.usual = 0
    else:
        share = f"99 % of the lines that the model was trained on have {found.usual:,} at most"
        known = share if usual else f"the model was trained on {found.longest:,} at most"
        found.reason = f"but {known}: translated sentence by sentence (split=never: as one)"
    return found


def known_characters(descriptions: list[ModelDescription]) -> frozenset[str] | None:
    """The characters that the sources of all these models held; None if that is not known, and for parsers."""
    known = [within(description.training, "characters", "source") for description in descriptions]
    if any(map(is_parser, descriptions)) or not all(isinstance(found, str) for found in known):
        return None
    return frozenset(" ").union(frozenset.intersection(*map(frozenset, known)))
