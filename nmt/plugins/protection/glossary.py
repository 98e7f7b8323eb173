"""Glossaries: terms and their translations are search constraints.

A translation that lacks the translation of a term is flagged.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.config import NMTError, TranslatorOptions, require, without_compression
from nmt.plugins.protection.casing import folded
from nmt.plugins.protection.constraints import (
    BEGINS,
    FOLLOWS,
    GLUED,
    Constraint,
    PhraseConstraints,
    kinds,
    phrases,
)
from nmt.plugins.protection.finder import Finder
from nmt.plugins.protection.items import hidden
from nmt.plugins.protection.occurrences import Form, term_words, which_are_used
from nmt.plugins.protection.terms import Casing, Match, Term, casing_of, texts_of, with_case_of_line
from nmt.plugins.protection.written_terms import WrittenTerms
from nmt.text import (
    CELL_SEPARATORS,
    SOURCE,
    MalformedLine,
    Row,
    Tokenizer,
    canonical,
    clean,
    comma_separated_rows,
    read_texts,
    separator_of,
    without_particles,
    without_prefixes,
)
from nmt.translation import Limits, Segment, Stage, Translation


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
                    casing = casing_of(line[begins:ends], term)
                    matches.append(Match(term, begins, ends, casing))
                    end = last
                    break
            at = end
        return with_case_of_line(matches, line)

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


def entry(cells: Sequence[str], separator: str) -> tuple[str, str, bool]:
    """The source and target in a row of a glossary, and whether case matters."""
    # Sources are compared with what the model reads, translations with what it writes.
    columns = [clean(cells[0]), *map(canonical, cells[1:])]
    require(
        len(columns) > 1,
        f"no {separator}: write a term, a {separator} and its translation, or export a spreadsheet as TSV or CSV",
    )
    require(
        columns[2:] in ([], ["case"], [""]),
        f'only a {separator} and "case" may follow the translation',
    )
    for side, text in zip(("source", "target"), columns, strict=False):
        require(bool(term_words(text)), f"the {side} is empty")
    return columns[0], columns[1], columns[2:] == ["case"]


def rows_of_tabs(name: str) -> Iterator[Row]:
    """The numbered rows of a file whose cells are separated by tabs, without comments."""
    for number, line in enumerate(read_texts(name), 1):
        if not line.startswith("#"):
            yield (
                number,
                [
                    # Spreadsheets put quotes around cells.
                    cell[1:-1].replace('""', '"') if re.fullmatch(r'".+"', cell) else cell
                    for cell in line.split("\t")
                ],
            )


def rows_of_commas(path: Path, separator: str) -> Iterator[Row]:
    """The numbered rows of a CSV file, without comments."""
    for number, cells in comma_separated_rows(path, separator):
        if isinstance(cells, MalformedLine) or not cells[0].startswith("#"):
            yield number, cells


def read_glossary(name: str, source: str = "", target: str = "") -> Glossary:
    """Read a glossary file between two languages.

    An NMTError names the first invalid line.
    """
    separator = "\t"
    rows = rows_of_tabs(name)
    if Path(without_compression(name)).suffix == ".csv":
        separator = separator_of(Path(name))
        rows = rows_of_commas(Path(name), separator)
    entries = list[tuple[str, str, bool]]()
    for number, cells in rows:
        try:
            if isinstance(cells, MalformedLine):
                raise NMTError(str(cells)) from cells
            if any(map(str.strip, cells)):
                entries.append(entry(cells, CELL_SEPARATORS[separator]))
        except NMTError as error:
            raise NMTError(f"{name}, line {number}: {error}") from error
    require(bool(entries), f"{name}: contains no terms")
    return Glossary(entries, source, target)


def judge(matches: Sequence[Match], translation: str, language: str = "") -> list[bool]:
    """For each term, whether a translation into a language uses it.

    A word counts for one term only.
    """
    return which_are_used([match.acceptable(language) for match in matches], translation)


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
        terms = list[list[list[Form]]]()
        for segment in segments:
            text = self.text_of(segment)
            row = list[Constraint]()
            written = list[list[Form]]()
            for match in self.find(text):
                constraint = constraint_of(tokenizer, match, begins_with_capital(text), language)
                if constraint:
                    row.append(constraint)
                    written.append(match.acceptable(language))
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


def begins_with_capital(text: str) -> bool:
    """Whether the first letter or digit of a text is a capital."""
    first = next(filter(str.isalnum, text), "")
    return first.isupper()


def constraint_of(
    tokenizer: Tokenizer,
    match: Match,
    capital: bool,
    language: str = "",
) -> Constraint:
    """The ways to write a term in a language.

    The case follows the line: at the beginning of a translation, a term is capitalized if `capital`.
    """
    begins, elsewhere = texts_of(match, capital, language)
    ways = [phrase for text in begins for phrase in phrases(tokenizer, text, BEGINS)]
    for where in (FOLLOWS, GLUED):
        for text in elsewhere:
            ways += phrases(tokenizer, text, where)
    if not ways and match.casing is Casing.IN_LINE_OF_CAPITALS:
        # A vocabulary may lack capitals, such as those of Georgian.
        listed = match._replace(casing=Casing.AS_LISTED)
        return constraint_of(tokenizer, listed, capital, language)
    return tuple(dict.fromkeys(ways))
