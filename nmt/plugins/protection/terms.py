"""Glossaries: terms and their translations as search constraints, and checks that a translation uses them.

A word is a run of letters and digits, a single character of a script without spaces, or any other single symbol.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from nmt.config import NMTError, TranslatorOptions, require
from nmt.plugins.protection.constraints import BEGINS, FOLLOWS, GLUED, Constraint, PhraseConstraints, kinds, phrases
from nmt.plugins.protection.items import Finder, hidden
from nmt.text import SOURCE, WITHOUT_BLANKS, Tokenizer, clean, read_texts
from nmt.translation import Limits, Segment, Stage, Translation

WORD = re.compile(rf"{WITHOUT_BLANKS.pattern}|(?:(?!{WITHOUT_BLANKS.pattern})\w)+|[^\w\s]")


class Term(NamedTuple):
    """A term and its translations, all acceptable; with `case`, only this capitalization matches."""

    source: str
    targets: tuple[str, ...]
    case: bool = False

    def written(self, capital: bool) -> list[str]:
        """The translations, capitalized if `capital`, except terms to keep and mixed-case words (iPhone)."""

        def is_small(text: str) -> bool:
            first = WORD.match(text)
            return first is not None and first[0].islower() and text != self.source

        return [text[:1].upper() + text[1:] if capital and is_small(text) else text for text in self.targets]


class Match(NamedTuple):
    """A term in a line, from character `begin` to `end`."""

    term: Term
    begin: int
    end: int
    capital: bool  # the line capitalizes the term, but the glossary does not


class Glossary:
    """Finds terms in lines: whole words, left to right, the longest match at each position, without overlap."""

    def __init__(self, entries: Iterable[tuple[str, str, bool]]) -> None:
        self.terms: dict[tuple[tuple[str, ...], bool], Term] = {}
        for source, target, case in entries:
            words = tuple(WORD.findall(source))
            key = words if case else folded(words), case
            term = self.terms.get(key, Term(source, (), case))
            self.terms[key] = term._replace(targets=tuple(dict.fromkeys((*term.targets, target))))
        self.most_words = max((len(words) for words, _ in self.terms), default=0)

    def find(self, line: str) -> list[Match]:
        """The terms in a clean line, in order."""
        matches, places, at = list[Match](), list(WORD.finditer(line)), 0
        words = tuple(place[0] for place in places)
        while at < len(words):
            ends = range(min(at + self.most_words, len(words)), at, -1)
            term, end = next(((term, end) for end in ends if (term := self.term(words[at:end]))), (None, at + 1))
            if term:
                capital = words[at][0].isupper() and term.source[0].islower()
                matches.append(Match(term, places[at].start(), places[end - 1].end(), capital))
            at = end
        return matches

    def term(self, words: tuple[str, ...]) -> Term | None:
        """The term with these words; if two differ only in case, the one whose case matches."""
        return self.terms.get((words, True)) or self.terms.get((folded(words), False))


def folded(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.casefold() for word in words)


def entry(line: str) -> tuple[str, str, bool]:
    """Parse a glossary line into source, target and whether case matters."""
    columns = [
        # Spreadsheets put quotes around cells.
        clean(cell[1:-1].replace('""', '"') if re.fullmatch(r'".+"', cell) else cell)
        for cell in line.split("\t")
    ]
    require(len(columns) > 1, "no tab: write a term, a tab and its translation, or export a spreadsheet as TSV")
    require(columns[2:] in ([], ["case"], [""]), 'only a tab and "case" may follow the translation')
    for side, text in zip(("source", "target"), columns, strict=False):
        require(WORD.search(text) is not None, f"the {side} is empty")
    return columns[0], columns[1], columns[2:] == ["case"]


def read_glossary(name: str) -> Glossary:
    """Read a glossary file; NMTError with the number of the first invalid line."""
    entries = list[tuple[str, str, bool]]()
    for number, line in enumerate(read_texts(name), 1):
        try:
            if line.strip() and not line.startswith("#"):
                entries.append(entry(line))
        except NMTError as error:
            raise NMTError(f"{name}, line {number}: {error}") from error
    require(bool(entries), f"{name}: contains no terms")
    return Glossary(entries)


def judge(matches: Sequence[Match], translation: str) -> list[bool]:
    """For each term, whether the translation uses it; a word counts for one term only."""
    words, used = WORD.findall(clean(translation)), [False] * len(matches)
    # A short term must not take a word from a longer one.
    for n in sorted(range(len(matches)), key=lambda n: -max(map(len, matches[n].term.targets))):
        ways = [WORD.findall(text) for capital in (False, True) for text in matches[n].term.written(capital)]
        used[n] = any(take(words, way) for way in ways)
    return used


def take(words: list[str], phrase: list[str]) -> bool:
    """Remove the first occurrence of a phrase from `words`; return False if there is none."""
    for at in range(len(words) - len(phrase) + 1):
        if words[at : at + len(phrase)] == phrase:
            words[at : at + len(phrase)] = [""] * len(phrase)
            return True
    return False


class Terms(Stage):
    """Requires the translations of glossary terms, except within protected items, and reports which are used."""

    def __init__(self, glossary: Glossary, tokenizer: Tokenizer, finder: Finder) -> None:
        self.glossary, self.tokenizer, self.finder = glossary, tokenizer, finder

    def find(self, text: str) -> list[Match]:
        return self.glossary.find(hidden(text, self.finder.stretches(text)))

    def constraints(self, segments: Sequence[Segment]) -> PhraseConstraints | None:
        """The constraints of segments, or None if there are none; a term split across segments is ignored."""
        tokenizer, rows = self.tokenizer, list[list[Constraint]]()
        for segment in segments:
            text = tokenizer.decode(segment.ids, SOURCE) if segment.part else tokenizer.clean(segment.text)
            constraints = [constraint_of(tokenizer, match, text[:1].isupper()) for match in self.find(text)]
            rows.append([constraint for constraint in constraints if constraint])
        return PhraseConstraints(rows, kinds(tokenizer)) if any(rows) else None

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        """A line's terms and whether their translations are used; a note names a term whose translation is missing."""
        matches, fields = self.find(clean(line)), list[dict[str, Any]]()
        for (term, *_), used in zip(matches, judge(matches, best.text), strict=True):
            if not used:
                best.notes["the translation of a glossary term is missing"] = repr(term.source)
            verdict = "used" if used else "missed"
            fields.append({"source": term.source, "targets": list(term.targets), "verdict": verdict})
        return {"terms": fields}


def terms(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> Terms:
    keys = options.plugins["protection"]
    return Terms(read_glossary(keys.glossary), tokenizer, Finder(keys.protect))


def constraint_of(tokenizer: Tokenizer, match: Match, capital: bool) -> Constraint:
    """The ways to write a term, capitalized at the beginning of a translation if `capital`.

    Elsewhere it may also be capitalized if the line, but not the glossary, capitalizes it.
    """
    plain = dict.fromkeys(match.term.written(False) + (match.term.written(True) if match.capital else []))
    begins = dict.fromkeys(match.term.written(True)) if capital else plain
    ways = [phrase for text in begins for phrase in phrases(tokenizer, text, BEGINS)]
    ways += [phrase for where in (FOLLOWS, GLUED) for text in plain for phrase in phrases(tokenizer, text, where)]
    return tuple(dict.fromkeys(ways))
