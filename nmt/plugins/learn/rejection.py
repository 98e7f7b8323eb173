"""Reject corrections that cannot be right, by their texts alone."""

import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from nmt.plugins.learn.addresses import new_addresses
from nmt.plugins.learn.division import normalized, surplus_near_copies
from nmt.plugins.learn.reading import Correction, Languages
from nmt.text import (
    TARGET,
    Tokenizer,
    are_close,
    is_identifiable,
    language_identifier,
    subtags,
)

EMPTY = "empty"
CONTROL = "control characters"
LONG = "too long"
ADDRESS = "an address that the source lacks"
LANGUAGE = "wrong language"
CONFLICT = "conflicting corrections"
OLDER = "replaced by a newer suggestion"
REPEATED = "repeated"
NEAR_COPIES = "too many near-copies"
TEST_SET = "in the general test or validation set"
# Marks of direction are part of Arabic and Hebrew text.
ALLOWED_FORMATS = {"\u200c", "\u200d", "\u200e", "\u200f", "\u00ad"}
LEAST_LETTERS = 25
"""With fewer letters, the language of a text is not identified."""
SURE = 0.95
"""The least probability of a third language that is reported as wrong."""
LIKELIER = 0.9
"""The share of the source language's probability in that of both languages that is reported. Of 511
German paragraphs about software, 0.2% were above, and 96% of their English sources."""


@dataclass
class Sifted:
    """Corrections with the reasons why some were rejected."""

    usable: list[Correction] = field(default_factory=list)
    rejected: list[tuple[Correction, str]] = field(default_factory=list)

    def reject(self, correction: Correction, reason: str) -> None:
        self.rejected.append((correction, reason))

    def sift(
        self, corrections: Iterable[Correction], reason_of: Callable[[Correction], str]
    ) -> None:
        """Sort corrections by whether there is a reason to reject them."""
        for correction in corrections:
            reason = reason_of(correction)
            if reason:
                self.reject(correction, reason)
            else:
                self.usable.append(correction)

    def counts(self) -> Counter[str]:
        """The number of rejected corrections by the reason, without its details."""
        return Counter(reason.partition(":")[0] for _, reason in self.rejected)


@dataclass(frozen=True)
class TextRules:
    """The rules that need no model."""

    languages: Languages
    tokenizer: Tokenizer
    most_tokens: int
    """The longest side of a correction, in subwords."""
    held_back: set[str]
    """The normalized sources of the general test and validation sets."""

    def reason(self, correction: Correction) -> str:
        """Why a correction is rejected; empty if it is not."""
        source = correction.source
        target = correction.target
        if not any(map(str.isalnum, source)) or not any(map(str.isalnum, target)):
            return EMPTY
        if has_control_characters(source + target):
            return CONTROL
        if self.is_too_long(source, target):
            return LONG
        new = new_addresses(source, target)
        if new:
            return f"{ADDRESS}: {min(new)}"
        if normalized(source) in self.held_back:
            return TEST_SET
        return self.reason_of_language(target)

    def is_too_long(self, source: str, target: str) -> bool:
        ids = self.tokenizer.encode([self.tokenizer.clean(source)])
        ids += self.tokenizer.encode([self.tokenizer.clean(target, TARGET)], TARGET)
        return max(map(len, ids)) > self.most_tokens

    def reason_of_language(self, target: str) -> str:
        """Why a target is not in its language; empty if it is, or if that is not sure."""
        source = subtags(self.languages.source).language
        expected = subtags(self.languages.target).language
        if sum(map(str.isalpha, target)) < LEAST_LETTERS or not is_identifiable(expected):
            return ""
        ranked = dict(language_identifier().rank(target))
        code = max(ranked, key=lambda name: ranked[name])
        if not are_close(source, expected) and source in ranked:
            # A text that was left as it is, which a technical text in the target language hardly
            # resembles, although it has many words of the source language.
            both = ranked[source] + ranked[expected]
            if ranked[source] > LIKELIER * both:
                return f"{LANGUAGE}: {source}"
        if ranked[code] >= SURE and not are_close(code, expected):
            return f"{LANGUAGE}: {code}"
        return ""


def has_control_characters(text: str) -> bool:
    """Whether a text has characters that no text needs, such as escapes, or hides text."""
    for character in text:
        kind = unicodedata.category(character)
        if kind in ("Cc", "Co", "Cs", "Cn") or character == "\ufffd":
            return True
        if kind == "Cf" and character not in ALLOWED_FORMATS:
            return True
    return False


def without_conflicts(corrections: Sequence[Correction]) -> Sifted:
    """Keep one correction of each source: of suggestions the newest, otherwise none that differ.

    The last of equal corrections stays.
    """
    by_source = defaultdict[str, list[Correction]](list)
    for correction in corrections:
        by_source[correction.source].append(correction)
    reasons = dict[int, str]()
    for same_source in by_source.values():
        reasons |= reasons_among(same_source)
    sifted = Sifted()
    sifted.sift(corrections, lambda correction: reasons.get(id(correction), ""))
    return sifted


def without_surplus(corrections: Sequence[Correction]) -> Sifted:
    """Keep at most 10 corrections whose sources are near-copies of each other."""
    surplus = surplus_near_copies(corrections)
    sifted = Sifted()
    sifted.sift(corrections, lambda item: NEAR_COPIES if item in surplus else "")
    return sifted


def reasons_among(corrections: Sequence[Correction]) -> dict[int, str]:
    """Why corrections of the same source are rejected, by the identity of the object."""
    # Suggestions in the same second have the order of the file, which `sorted` keeps.
    ordered = sorted(corrections, key=lambda correction: correction.time)
    newest = ordered[-1]
    reasons = dict[int, str]()
    targets = {correction.target for correction in ordered}
    are_suggestions = all(correction.time for correction in ordered)
    for correction in ordered:
        if correction.target == newest.target and (len(targets) == 1 or are_suggestions):
            if correction is not newest:
                reasons[id(correction)] = REPEATED
        else:
            reasons[id(correction)] = OLDER if are_suggestions else CONFLICT
    return reasons
