"""Filters of training pairs, and the comparison that keeps held-out sets apart from training."""

import re

import regex

from nmt.config import FilterConfig
from nmt.text.files import Pair

# Scripts without blanks between words, and how many of their characters correspond to an English word: in translations
# of a user interface, a word had 1.6 characters in Chinese, 2.9 in Japanese and 5.6 in Thai.
HAN = "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3031-\u3035\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff"
# Thai, Lao, Tibetan, Myanmar, Khmer, Tai Le, New Tai Lue, Tai Tham, Balinese, Javanese, Myanmar Extended, Tai Viet.
SOUTH_EAST = "\u0e00-\u0eff\u0f00-\u109f\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf\u1b00-\u1b7f\ua980-\ua9ff\uaa60-\uaadf"
CHARACTERS_OF_A_WORD = ((re.compile(f"[{HAN}]"), 2), (re.compile(f"[{KANA}]"), 4), (re.compile(f"[{SOUTH_EAST}]"), 5))
WITHOUT_BLANKS = re.compile(f"[{HAN}{KANA}{SOUTH_EAST}]")
WITH_A_LETTER = re.compile(r"\S*[^\W_]\S*")
NO_LETTERS = regex.compile(r"[^\p{L}\p{Mn}\p{Mc}]+|[\ufe00-\ufe0f\U000e0100-\U000e01ef]+")
"""Variation selectors, which choose the look of a character, are marks, too."""
NO_SYMBOLS = regex.compile(r"[^\p{N}\p{S}]+")


def words(text: str) -> float:
    """The number of words of a clean line, at least 1; in scripts without blanks, estimated from its characters."""
    if text.isascii() or not WITHOUT_BLANKS.search(text):
        return text.count(" ") + 1
    others = WITH_A_LETTER.findall(WITHOUT_BLANKS.sub(" ", text))
    return max(1, len(others) + sum(len(script.findall(text)) / size for script, size in CHARACTERS_OF_A_WORD))


def reason_to_drop(pair: Pair, config: FilterConfig) -> str | None:
    """The first rule that a clean pair breaks, or None; token limits and duplicates are checked elsewhere."""
    source, target = pair
    if not source or not target:
        return "empty side"
    fewest, most = sorted((words(source), words(target)))
    if fewest < config.min_words:
        return "too short"
    if config.max_words is not None and most > config.max_words:
        return "too long (words)"
    if config.max_ratio is not None and most > config.max_ratio * fewest:
        return "length ratio"
    if config.drop_identical and source == target:
        return "identical sides"
    return None


def letters(text: str) -> str:
    """The letters of a text in lower case, with their marks, such as the vowels of Hindi and Arabic.

    So texts that differ only in digits, case or punctuation are the same. A text without letters keeps its digits and
    symbols, and a text of punctuation alone stays as it is.
    """
    folded = text.casefold()
    return NO_LETTERS.sub("", folded) or NO_SYMBOLS.sub("", folded) or folded
