"""Glossaries: terms and their translations are search constraints.

A translation that lacks the translation of a term is flagged.
"""

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
    comparable,
    read_texts,
    subtags,
    without_particles,
    without_prefixes,
)
from nmt.translation import Limits, Segment, Stage, Translation

WITH_DOTLESS_I = ("tr", "az")
"""Languages in which I is the capital of \u0131, and \u0130 that of i."""
WITH_CAPITAL_NOUNS = ("de", "lb")
"""Languages in which a capital distinguishes words."""


def is_one_of(language: str, languages: Sequence[str]) -> bool:
    """Whether a language code, "" for an unknown one, is of one of some languages."""
    return bool(language) and subtags(language).language in languages


def folded(word: str, language: str) -> str:
    """A word of a language in a form to compare, without its case."""
    word = comparable(word)
    if is_one_of(language, WITH_DOTLESS_I):
        word = word.replace("I", "\u0131").replace("\u0130", "i")
    # Unicode's rules add a dot to the i of \u0130.
    return word.casefold().replace("i\u0307", "i")


def capitalized(text: str, language: str) -> str:
    """The text with a capital at its beginning, if sentences of its script begin with one."""
    if text.startswith("i") and is_one_of(language, WITH_DOTLESS_I):
        return f"\u0130{text[1:]}"
    # The capitals of Georgian are for text in capitals only; `title` knows that.
    return text[:1].title() + text[1:]


def uncapitalized(text: str, language: str) -> str:
    """The text with a small letter at its beginning."""
    if text.startswith("I") and is_one_of(language, WITH_DOTLESS_I):
        return f"\u0131{text[1:]}"
    return text[:1].lower().replace("i\u0307", "i") + text[1:]


class Term(NamedTuple):
    """A term and its translations, all acceptable.

    With `case`, only this capitalization matches.
    """

    source: str
    targets: tuple[str, ...]
    case: bool = False

    def written(self, capital: bool, language: str = "") -> list[str]:
        """The translations, capitalized if `capital`.

        Terms to keep and mixed-case words (iPhone) stay as they are.
        """
        if not capital:
            return list(self.targets)
        written = list[str]()
        for text in self.targets:
            written.append(capitalized(text, language) if self.is_small(text) else text)
        return written

    def is_small(self, text: str) -> bool:
        return first_word(text).islower() and text != self.source

    def acceptable(self, language: str = "") -> list[str]:
        """The translations in every case in which a translation may have them."""
        forms = self.written(False) + self.written(True, language)
        if not self.case and not is_one_of(language, WITH_CAPITAL_NOUNS):
            # Lists of terms often begin each with a capital.
            for text in self.targets:
                if first_word(text).istitle() and text != self.source:
                    forms.append(uncapitalized(text, language))
        return [*dict.fromkeys(forms)]


def first_word(text: str) -> str:
    begin, end = term_words(text)[0]
    return text[begin:end]


class Match(NamedTuple):
    """A term in a line, from character `begin` to `end`."""

    term: Term
    begin: int
    end: int
    capital: bool  # the line capitalizes the term, but the glossary does not


class Glossary:
    """Finds terms in lines: whole words, left to right, without overlap, the longest first.

    Words may have the prefixes and particles that their language joins to them.
    """

    def __init__(
        self,
        entries: Iterable[tuple[str, str, bool]],
        source: str = "",
        target: str = "",
    ) -> None:
        """`source` and `target` are the codes of languages, or empty."""
        self.source, self.target = source, target
        self.terms: dict[tuple[tuple[str, ...], bool], Term] = {}
        for source_term, target_term, case in entries:
            words = tuple(source_term[begin:end] for begin, end in term_words(source_term))
            key = words if case else self.folded(words), case
            term = self.terms.get(key, Term(source_term, (), case))
            targets = dict.fromkeys((*term.targets, target_term))
            self.terms[key] = term._replace(targets=tuple(targets))
        self.most_words = max((len(words) for words, _ in self.terms), default=0)

    def folded(self, words: Iterable[str]) -> tuple[str, ...]:
        return tuple(folded(word, self.source) for word in words)

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
        """The term with these words, and the lengths of what is joined to them before and after."""
        for stem in forms_without_affixes(words):
            term = self.term(stem.words)
            if term:
                return term, stem.before, stem.after
        return None

    def term(self, words: Sequence[str]) -> Term | None:
        """The term with these words; if two differ only in case, the one whose case matches."""
        return self.terms.get((tuple(words), True)) or self.terms.get((self.folded(words), False))


class Stem(NamedTuple):
    """Words without what is joined to them, which is so many characters before and after them."""

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
                yield Stem(
                    (begin, *words[1:-1], end),
                    max(len(first) - len(begin), 0),
                    len(last) - len(end),
                )
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
    require(
        len(columns) > 1,
        "no tab: write a term, a tab and its translation, or export a spreadsheet as TSV",
    )
    require(columns[2:] in ([], ["case"], [""]), 'only a tab and "case" may follow the translation')
    for side, text in zip(("source", "target"), columns, strict=False):
        require(bool(term_words(text)), f"the {side} is empty")
    return columns[0], columns[1], columns[2:] == ["case"]


def read_glossary(name: str, source: str = "", target: str = "") -> Glossary:
    """Read a glossary file between two languages.

    An NMTError names the first invalid line.
    """
    entries = list[tuple[str, str, bool]]()
    for number, line in enumerate(read_texts(name), 1):
        try:
            if line.strip() and not line.startswith("#"):
                entries.append(entry(line))
        except NMTError as error:
            raise NMTError(f"{name}, line {number}: {error}") from error
    require(bool(entries), f"{name}: contains no terms")
    return Glossary(entries, source, target)


def judge(matches: Sequence[Match], translation: str, language: str = "") -> list[bool]:
    """For each term, whether a translation into a language uses it.

    A word counts for one term only.
    """
    return which_are_used([match.term.acceptable(language) for match in matches], translation)


class Terms(Stage):
    """Requires the translations of glossary terms, and reports which are used.

    Protected items have no terms.
    """

    def __init__(self, glossary: Glossary, tokenizer: Tokenizer, finder: Finder) -> None:
        self.glossary, self.tokenizer, self.finder = glossary, tokenizer, finder

    def find(self, text: str) -> list[Match]:
        return self.glossary.find(hidden(text, self.finder.stretches(text)))

    def constraints(self, segments: Sequence[Segment]) -> PhraseConstraints | None:
        """The constraints of segments, or None if there are none.

        A term split across segments is ignored.
        """
        tokenizer, language = self.tokenizer, self.glossary.target
        rows = list[list[Constraint]]()
        terms = list[list[list[str]]]()
        for segment in segments:
            text = self.text_of(segment)
            row = list[Constraint]()
            written = list[list[str]]()
            for match in self.find(text):
                constraint = constraint_of(tokenizer, match, text[:1].isupper(), language)
                if constraint:
                    row.append(constraint)
                    written.append(match.term.acceptable(language))
            rows.append(row)
            terms.append(written)
        if not any(rows):
            return None
        return PhraseConstraints(rows, kinds(tokenizer), WrittenTerms(terms, tokenizer))

    def text_of(self, segment: Segment) -> str:
        """A segment as the model reads it."""
        if segment.part:
            return self.tokenizer.decode(segment.ids, SOURCE)
        return self.tokenizer.clean(segment.text)

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        """A line's terms and whether their translations are used.

        A note names a term whose translation is missing.
        """
        matches = self.find(clean(line))
        fields = list[dict[str, Any]]()
        verdicts = judge(matches, best.text, self.glossary.target)
        for (term, *_), used in zip(matches, verdicts, strict=True):
            if not used:
                best.notes["the translation of a glossary term is missing"] = repr(term.source)
            verdict = "used" if used else "missed"
            targets = list(term.targets)
            fields.append({"source": term.source, "targets": targets, "verdict": verdict})
        return {"terms": fields}


def terms(options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits) -> Terms:
    keys = options.plugins["protection"]
    glossary = read_glossary(keys.glossary, limits.language, limits.target)
    return Terms(glossary, tokenizer, Finder(keys.protect))


def constraint_of(
    tokenizer: Tokenizer,
    match: Match,
    capital: bool,
    language: str = "",
) -> Constraint:
    """The ways to write a term in a language.

    At the beginning of a translation, it is capitalized if `capital`. Elsewhere it may also be
    capitalized if the line, but not the glossary, capitalizes it.
    """
    plain = match.term.written(False)
    with_capital = match.term.written(True, language)
    begins = with_capital if capital else plain
    elsewhere = [*plain, *with_capital] if match.capital else plain
    if match.capital and not capital:
        begins = elsewhere
    ways = [phrase for text in dict.fromkeys(begins) for phrase in phrases(tokenizer, text, BEGINS)]
    for where in (FOLLOWS, GLUED):
        for text in dict.fromkeys(elsewhere):
            ways += phrases(tokenizer, text, where)
    return tuple(dict.fromkeys(ways))
