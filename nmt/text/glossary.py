"""Glossaries: terms and their translations, where they stand in a line, and whether a translation has them.

Words are runs of letters and digits, or single characters of scripts without blanks; each other mark is a word.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt.errors import NMTError
from nmt.text.files import open_text, raw_lines, without_end
from nmt.text.filters import WITHOUT_BLANKS
from nmt.text.tokenizers import clean

WORD = re.compile(rf"{WITHOUT_BLANKS.pattern}|(?:(?!{WITHOUT_BLANKS.pattern})\w)+|[^\w\s]")
MARK = "|"
"""Stands around a translation that is inserted beside its term."""
Lemmatiser = Callable[[str], str]


class Term(NamedTuple):
    """A term, and its translations, of which any is right; with `case`, it is spelled so alone."""

    source: str
    targets: tuple[str, ...]
    case: bool = False

    def written(self, capital: bool) -> list[str]:
        """The translations; with an initial capital if wanted, unless the term is to stay as it is."""
        if not capital:
            return list(self.targets)
        return [capitalised(target) if target != self.source else target for target in self.targets]


class Match(NamedTuple):
    """A term in a line, from character `begin` to `end`."""

    term: Term
    begin: int
    end: int
    capital: bool
    """The line gives it a capital that the glossary does not."""


def capitalised(text: str) -> str:
    """A text whose first word is in small letters, with a capital; any other (iPhone) as it is."""
    first = WORD.match(text)
    return text[:1].upper() + text[1:] if first and first[0].islower() else text


class Glossary:
    """Terms, to be found in lines: whole words, the longest first, without overlap."""

    def __init__(self, entries: Iterable[tuple[str, str, bool]]) -> None:
        sources: dict[tuple[tuple[str, ...], bool], str] = {}
        targets: dict[tuple[tuple[str, ...], bool], dict[str, None]] = {}
        for source, target, case in entries:
            words = tuple(WORD.findall(source))
            if not words or not WORD.search(target):
                continue
            key = words if case else folded(words), case
            sources.setdefault(key, source)
            targets.setdefault(key, {})[target] = None
        self.terms = {key: Term(source, tuple(targets[key]), key[1]) for key, source in sources.items()}
        self.lengths: dict[str, set[int]] = {}
        """How many words the terms with a first word, in small letters, have."""
        for words, _ in self.terms:
            self.lengths.setdefault(words[0].casefold(), set()).add(len(words))

    def find(self, line: str) -> list[Match]:
        """The terms of a clean line, in their order."""
        found = sorted(self.candidates(line), key=lambda match: (match.begin - match.end, match.begin))
        chosen, taken = list[Match](), set[int]()
        for match in found:
            if taken.isdisjoint(range(match.begin, match.end)):
                taken |= set(range(match.begin, match.end))
                chosen.append(match)
        return sorted(chosen, key=lambda match: match.begin)

    def candidates(self, line: str) -> Iterator[Match]:
        """All terms of a line; of two that differ in case alone, the one that is spelled as there."""
        words = list(WORD.finditer(line))
        for at, first in enumerate(words):
            for length in self.lengths.get(first[0].casefold(), ()):
                own = tuple(word[0] for word in words[at : at + length])
                term = self.terms.get((own, True)) or self.terms.get((folded(own), False))
                if term and len(own) == length:
                    capital = first[0][0].isupper() and term.source[0].islower()
                    yield Match(term, first.start(), words[at + length - 1].end(), capital)


def folded(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.casefold() for word in words)


def entry(line: str) -> tuple[str, str, bool]:
    """Source, target and whether case counts, of a line; NMTError that says what is wrong."""
    columns = [clean(column) for column in line.split("\t")]
    if len(columns) == 1:
        raise NMTError("no tab: a term, a tab and its translation, please")
    if len(columns) > 3 or columns[2:] not in ([], ["case"], [""]):
        raise NMTError("after the translation only a tab and the word case may follow")
    for side, text in zip(("source", "target"), columns, strict=False):
        if not WORD.search(text):
            raise NMTError(f"the {side} is empty")
    return columns[0], columns[1], columns[2:] == ["case"]


def read_glossary(name: str) -> Glossary:
    """Read a file of terms; NMTError, with the line, for one that is none."""
    entries = []
    with open_text(name) as file:
        for number, line in enumerate(raw_lines(file, name), 1):
            try:
                text = without_end(line).decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip() and not text.startswith("#"):
                    entries.append(entry(text))
            except UnicodeDecodeError as error:
                raise NMTError(f"{name}, line {number}: not UTF-8") from error
            except NMTError as error:
                raise NMTError(f"{name}, line {number}: {error}") from error
    if not entries:
        raise NMTError(f"{name}: no terms in it")
    return Glossary(entries)


def with_targets(line: str, found: Iterable[tuple[Match, str]]) -> str:
    """A line with a translation beside each of these terms, in marks (Dinu et al. 2019, who append them)."""
    for match, target in sorted(found, key=lambda pair: -pair[0].begin):
        line = f"{line[: match.end]} {MARK}{target}{MARK}{line[match.end :]}"
    return line


def judge(found: Sequence[Match], translation: str, lemma: Lemmatiser | None) -> list[str]:
    """Whether each term is used, inflected or missed; a place of the translation counts for one term."""
    words, verdicts = WORD.findall(clean(translation)), ["missed"] * len(found)
    free = [True] * len(words)
    rounds: list[tuple[str, Lemmatiser]] = [("used", str)]
    if lemma:
        rounds.append(("inflected", lambda word: lemma(word).casefold()))
    for verdict, form in rounds:
        forms = [form(word) for word in words]
        # A short one must not take a word out of a longer one.
        for n in sorted(range(len(found)), key=lambda n: -max(map(len, found[n].term.targets))):
            term = found[n].term
            if verdicts[n] == "missed":
                wanted = [list(map(form, WORD.findall(text))) for now in (False, True) for text in term.written(now)]
                if any(take(forms, own, free) for own in wanted):
                    verdicts[n] = verdict
    return verdicts


def take(words: list[str], wanted: list[str], free: list[bool]) -> bool:
    """Find words in a row that are free, and take them."""
    for at in range(len(words) - len(wanted) + 1):
        own = slice(at, at + len(wanted))
        if words[own] == wanted and all(free[own]):
            free[own] = [False] * len(wanted)
            return True
    return False
