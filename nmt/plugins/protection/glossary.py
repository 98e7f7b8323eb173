"""Glossaries: terms and their translations are search constraints, and a translation that lacks them is flagged."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from nmt.config import NMTError, TranslatorOptions, require
from nmt.plugins.protection.constraints import (
    BEGINS,
    FOLLOWS,
    GLUED,
    Constraint,
    PhraseConstraints,
    WrittenTerms,
    kinds,
    phrases,
)
from nmt.plugins.protection.items import Finder, hidden
from nmt.plugins.protection.occurrences import term_words, which_are_used
from nmt.text import (
    SOURCE,
    Tokenizer,
    canonical,
    clean,
    read_texts,
    subtags,
    without_particles,
    without_prefixes,
    without_vowel_points,
)
from nmt.translation import Limits, Segment, Stage, Translation

WITH_DOTLESS_I = ("tr", "az")
"""Languages in which I is the capital of \u0131, and \u0130 that of i."""


def has_dotless_i(language: str) -> bool:
    return subtags(language).language in WITH_DOTLESS_I


def folded(word: str, dotless_i: bool = False) -> str:
    """A word without its case and vowel points."""
    word = without_vowel_points(word)
    if dotless_i:
        word = word.replace("I", "\u0131").replace("\u0130", "i")
    # Unicode's rules add a dot to the i of \u0130.
    return word.casefold().replace("i\u0307", "i")


def capitalized(text: str, dotless_i: bool = False) -> str:
    """The text with a capital at its beginning, if sentences of its script begin with one."""
    first = text[:1]
    if dotless_i and first == "i":
        return f"\u0130{text[1:]}"
    # The capitals of Georgian are for text in capitals only; `title` knows that.
    return first.title() + text[1:]


class Term(NamedTuple):
    """A term and its translations, all acceptable; with `case`, only this capitalization matches."""

    source: str
    targets: tuple[str, ...]
    case: bool = False

    def written(self, capital: bool, dotless_i: bool = False) -> list[str]:
        """The translations, capitalized if `capital`, except terms to keep and mixed-case words (iPhone)."""
        if not capital:
            return list(self.targets)
        return [capitalized(text, dotless_i) if self.is_small(text) else text for text in self.targets]

    def is_small(self, text: str) -> bool:
        begin, end = term_words(text)[0]
        return text[begin:end].islower() and text != self.source

    def all_written(self, dotless_i: bool = False) -> list[str]:
        """The translations in either case."""
        return [*dict.fromkeys(self.written(False) + self.written(True, dotless_i))]


class Match(NamedTuple):
    """A term in a line, from character `begin` to `end`."""

    term: Term
    begin: int
    end: int
    capital: bool  # the line capitalizes the term, but the glossary does not


class Glossary:
    """Finds terms in lines: whole words, left to right, the longest match at each position, without overlap.

    Words may have the prefixes and particles that their language joins to them.
    """

    def __init__(self, entries: Iterable[tuple[str, str, bool]], source: str = "", target: str = "") -> None:
        self.dotless_i = has_dotless_i(source) if source else False
        self.dotless_i_of_target = has_dotless_i(target) if target else False
        self.terms: dict[tuple[tuple[str, ...], bool], Term] = {}
        for source_term, target_term, case in entries:
            words = tuple(source_term[begin:end] for begin, end in term_words(source_term))
            key = words if case else self.folded(words), case
            term = self.terms.get(key, Term(source_term, (), case))
            self.terms[key] = term._replace(targets=tuple(dict.fromkeys((*term.targets, target_term))))
        self.most_words = max((len(words) for words, _ in self.terms), default=0)

    def folded(self, words: Iterable[str]) -> tuple[str, ...]:
        return tuple(folded(word, self.dotless_i) for word in words)

    def find(self, line: str) -> list[Match]:
        """The terms in a clean line, in order."""
        matches = list[Match]()
        spans = term_words(line)
        words = [line[begin:end] for begin, end in spans]
        at = 0
        while at < len(words):
            end = at + 1
            for last in range(min(at + self.most_words, len(words)), at, -1):
                found = self.term_with_affixes(words[at:last])
                if found:
                    term, prefix, particle = found
                    begins, ends = spans[at][0] + prefix, spans[last - 1][1] - particle
                    capital = line[begins].isupper() and term.source[0].islower()
                    matches.append(Match(term, begins, ends, capital))
                    end = last
                    break
            at = end
        return matches

    def term_with_affixes(self, words: Sequence[str]) -> tuple[Term, int, int] | None:
        """The term with these words, apart from what is joined to them: the lengths before and after it."""
        for stem in forms_without_affixes(words):
            term = self.term(stem.words)
            if term:
                return term, stem.before, stem.after
        return None

    def term(self, words: Sequence[str]) -> Term | None:
        """The term with these words; if two differ only in case, the one whose case matches."""
        return self.terms.get((tuple(words), True)) or self.terms.get((self.folded(words), False))


class Stem(NamedTuple):
    """Words without what is joined to them, and how many characters that is before and after them."""

    words: tuple[str, ...]
    before: int = 0
    after: int = 0


def forms_without_affixes(words: Sequence[str]) -> Iterator[Stem]:
    """The words as they are, and without prefixes of the first and particles of the last one."""
    yield Stem(tuple(words))
    first, last = words[0], words[-1]
    firsts = [first, *without_prefixes(first)]
    lasts = [last, *without_particles(last)]
    if len(words) > 1:
        for begin in firsts:
            for end in lasts:
                yield Stem((begin, *words[1:-1], end), max(len(first) - len(begin), 0), len(last) - len(end))
        return
    for stem in firsts:
        before = max(len(first) - len(stem), 0)
        yield Stem((stem,), before)
        for shorter in without_particles(stem):
            yield Stem((shorter,), before, len(stem) - len(shorter))


def entry(line: str) -> tuple[str, str, bool]:
    """Parse a glossary line into source, target and whether case matters."""
    cells = [
        # Spreadsheets put quotes around cells.
        cell[1:-1].replace('""', '"') if re.fullmatch(r'".+"', cell) else cell
        for cell in line.split("\t")
    ]
    # Sources are compared with what the model reads, translations with what it writes.
    columns = [clean(cells[0]), *map(canonical, cells[1:])]
    require(len(columns) > 1, "no tab: write a term, a tab and its translation, or export a spreadsheet as TSV")
    require(columns[2:] in ([], ["case"], [""]), 'only a tab and "case" may follow the translation')
    for side, text in zip(("source", "target"), columns, strict=False):
        require(bool(term_words(text)), f"the {side} is empty")
    return columns[0], columns[1], columns[2:] == ["case"]


def read_glossary(name: str, source: str = "", target: str = "") -> Glossary:
    """Read a glossary file between two languages; NMTError with the number of the first invalid line."""
    entries = list[tuple[str, str, bool]]()
    for number, line in enumerate(read_texts(name), 1):
        try:
            if line.strip() and not line.startswith("#"):
                entries.append(entry(line))
        except NMTError as error:
            raise NMTError(f"{name}, line {number}: {error}") from error
    require(bool(entries), f"{name}: contains no terms")
    return Glossary(entries, source, target)


def judge(matches: Sequence[Match], translation: str, dotless_i: bool = False) -> list[bool]:
    """For each term, whether the translation uses it; a word counts for one term only."""
    return which_are_used([match.term.all_written(dotless_i) for match in matches], translation)


class Terms(Stage):
    """Requires the translations of glossary terms, except within protected items, and reports which are used."""

    def __init__(self, glossary: Glossary, tokenizer: Tokenizer, finder: Finder) -> None:
        self.glossary, self.tokenizer, self.finder = glossary, tokenizer, finder

    def find(self, text: str) -> list[Match]:
        return self.glossary.find(hidden(text, self.finder.stretches(text)))

    def constraints(self, segments: Sequence[Segment]) -> PhraseConstraints | None:
        """The constraints of segments, or None if there are none; a term split across segments is ignored."""
        tokenizer, dotless_i = self.tokenizer, self.glossary.dotless_i_of_target
        rows = list[list[Constraint]]()
        terms = list[list[list[str]]]()
        for segment in segments:
            text = tokenizer.decode(segment.ids, SOURCE) if segment.part else tokenizer.clean(segment.text)
            row = list[Constraint]()
            written = list[list[str]]()
            for match in self.find(text):
                constraint = constraint_of(tokenizer, match, text[:1].isupper(), dotless_i)
                if constraint:
                    row.append(constraint)
                    written.append(match.term.all_written(dotless_i))
            rows.append(row)
            terms.append(written)
        if not any(rows):
            return None
        return PhraseConstraints(rows, kinds(tokenizer), WrittenTerms(terms, tokenizer))

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        """A line's terms and whether their translations are used; a note names a term whose translation is missing."""
        matches, fields = self.find(clean(line)), list[dict[str, Any]]()
        verdicts = judge(matches, best.text, self.glossary.dotless_i_of_target)
        for (term, *_), used in zip(matches, verdicts, strict=True):
            if not used:
                best.notes["the translation of a glossary term is missing"] = repr(term.source)
            verdict = "used" if used else "missed"
            fields.append({"source": term.source, "targets": list(term.targets), "verdict": verdict})
        return {"terms": fields}


def terms(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> Terms:
    keys = options.plugins["protection"]
    glossary = read_glossary(keys.glossary, limits.language, limits.target)
    return Terms(glossary, tokenizer, Finder(keys.protect))


def constraint_of(tokenizer: Tokenizer, match: Match, capital: bool, dotless_i: bool = False) -> Constraint:
    """The ways to write a term, capitalized at the beginning of a translation if `capital`.

    Elsewhere it may also be capitalized if the line, but not the glossary, capitalizes it.
    """
    term = match.term
    plain = dict.fromkeys(term.all_written(dotless_i) if match.capital else term.written(False))
    begins = dict.fromkeys(term.written(True, dotless_i)) if capital else plain
    ways = [phrase for text in begins for phrase in phrases(tokenizer, text, BEGINS)]
    ways += [phrase for where in (FOLLOWS, GLUED) for text in plain for phrase in phrases(tokenizer, text, where)]
    return tuple(dict.fromkeys(ways))
