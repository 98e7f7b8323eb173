"""The languages that the two sides of a corpus are really in."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from nmt.text import SOURCE, Pair, language_name, script, scripts_of_language, subtags

GROUP_PAIRS = 20
"""Consecutive pairs whose language is identified together, because single lines are too short."""
LEAST_LETTERS = 150
LEAST_SWAPPED = 0.05
"""The share of swapped groups that is reported. Chance hardly ever swaps both sides."""
LEAST_SAME = 0.5
"""The share of groups in the language of the other side that is reported."""
LEAST_OTHER = 0.85
"""The same for a third language, which may also be guessed for text in no known language."""
CLOSE = (
    "da nb nn no sv",
    "bs hr sh sr sl",
    "id ms jv",
    "cs sk",
    "es gl pt ca an oc",
    "af nl",
    "xh zu",
    "be ru uk bg mk",
    "zh wuu yue",
    "hi mr ne",
    "fa ps ur ar",
    "en la",
)
"""Languages that may be taken for each other."""


@cache
def identifier() -> Any:
    """py3langid's model; None if it is not installed."""
    if find_spec("py3langid") is None:
        return None
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(Path(MODEL_FILE), norm_probs=True)


def are_close(one: str, other: str) -> bool:
    return one == other or any({one, other} <= set(group.split()) for group in CLOSE)


def main_script(text: str) -> str:
    """The script of most letters of a text; "" if it has few letters."""
    counts = dict[str, int]()
    for character in text:
        name = script(character)
        counts[name] = counts.get(name, 0) + 1
    counts.pop("", None)
    if sum(counts.values()) < LEAST_LETTERS:
        return ""
    return max(counts, key=lambda name: counts[name])


def language_of_group(lines: Sequence[str], languages: tuple[str, str]) -> str:
    """The language of these lines: one of the two given, a third one, or "" if unknown."""
    text = "\n".join(lines)
    name = main_script(text)
    if not name:
        return ""
    scripts = [scripts_of_language(code) or frozenset() for code in languages]
    in_script = [code for code, names in zip(languages, scripts, strict=True) if name in names]
    if len(in_script) == 1:
        return in_script[0]
    if len(in_script) == 0 or not identifier():
        return ""
    code = str(identifier().classify(text)[0])
    return next((language for language in languages if are_close(code, language)), code)


class SideLanguages:
    """Counts groups of pairs by the languages that their sides are in."""

    def __init__(self, source: str, target: str) -> None:
        self.languages = (subtags(source).language, subtags(target).language)
        self.names = (language_name(source), language_name(target))
        self.groups: list[tuple[int, tuple[str, str]]] = []  # first pair, languages of both sides
        # Dialects, scripts and close languages cannot be told apart.
        self.is_decidable = not are_close(*self.languages)

    def load_model(self) -> None:
        """Load the model if it may be needed, so that processes that fork later share its memory."""
        one, other = (scripts_of_language(code) or frozenset() for code in self.languages)
        if self.is_decidable and one & other:
            identifier()

    def add(self, pairs: Sequence[Pair], first: int, most_groups: int) -> None:
        """Count at most that many groups, spread over consecutive pairs. The number is that of the first pair."""
        if not self.is_decidable:
            return
        step = max(GROUP_PAIRS, -(-len(pairs) // most_groups))
        for begin in range(0, len(pairs), step):
            # Lines that are the same on both sides have no language.
            group = [pair for pair in pairs[begin : begin + GROUP_PAIRS] if pair[0] != pair[1]]
            sides = [[pair[side] for pair in group] for side in (0, 1)]
            source, target = (language_of_group(side, self.languages) for side in sides)
            self.groups.append((first + begin, (source, target)))

    def merge(self, later: "SideLanguages", shift: int) -> None:
        """Add the groups of later pairs, whose numbers are too low by `shift`."""
        self.groups += [(first + shift, sides) for first, sides in later.groups]

    def notices(self) -> list[str]:
        """What is wrong with the languages, at most one notice for each kind of problem."""
        source, target = self.languages
        known = [(first, sides) for first, sides in self.groups if "" not in sides]
        swapped = [first for first, sides in known if sides == (target, source)]
        if is_frequent(swapped, known, LEAST_SWAPPED):
            return [
                f"{self.counted(swapped, known)} have {self.names[1]} sources and {self.names[0]} "
                "targets: swap the files or columns, or data.source and data.target"
            ]
        notices = list[str]()
        for side, name in enumerate(("sources", "targets")):
            firsts_of_code = defaultdict[str, list[int]](list)
            for first, sides in known:
                if sides[side] != self.languages[side]:
                    firsts_of_code[sides[side]].append(first)
            for code, firsts in firsts_of_code.items():
                least = LEAST_SAME if code in self.languages else LEAST_OTHER
                if is_frequent(firsts, known, least):
                    key = "data.source" if side == SOURCE else "data.target"
                    notices.append(
                        f"{self.counted(firsts, known)} have {name} that look like "
                        f"{language_name(code)}, not {self.names[side]}: check the files and {key}"
                    )
        return notices

    @staticmethod
    def counted(firsts: list[int], known: list[tuple[int, tuple[str, str]]]) -> str:
        samples = f"{len(firsts):,} of {len(known):,} samples of {GROUP_PAIRS} pairs"
        return f"{samples} (first: pair {firsts[0]:,})"


def is_frequent(firsts: Sequence[int], known: Sequence[Any], least_share: float) -> bool:
    return len(firsts) >= min(2, len(known)) > 0 and len(firsts) >= least_share * len(known)
