"""Which pairs are left out of training, and how held-out sets are kept apart from it."""

from nmt.config import FilterConfig
from nmt.text.files import Pair


def reason_to_drop(pair: Pair, config: FilterConfig) -> str | None:
    """The name of the first rule that a clean pair breaks, or None; token limits and duplicates are not judged here."""
    source, target = pair
    words = sorted((source.count(" ") + 1, target.count(" ") + 1))
    if not source or not target:
        return "empty side"
    if words[0] < config.min_words:
        return "too short"
    if config.max_words is not None and words[1] > config.max_words:
        return "too long (words)"
    if config.max_ratio is not None and words[1] > config.max_ratio * words[0]:
        return "length ratio"
    if config.drop_identical and source == target:
        return "identical sides"
    return None


def letters(text: str) -> str:
    """The letters of a text in lower case: strings that differ in digits, case or punctuation alone share them."""
    return "".join(filter(str.isalpha, text.casefold()))
