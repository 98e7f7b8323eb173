"""Glossaries: the terms in lines, and their translations."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt.plugins.protection.casing import folded
from nmt.plugins.protection.occurrences import term_words
from nmt.plugins.protection.terms import Match, Term, casing_of, with_case_of_line
from nmt.text import without_particles, without_prefixes


class Entry(NamedTuple):
    """A row of a glossary; with `case`, the term matches only in this capitalization."""

    source: str
    target: str
    case: bool = False


class Stem(NamedTuple):
    """Words without what is joined to them."""

    words: tuple[str, ...]
    before: int = 0
    """The number of characters joined to the first word, such as an article in Arabic."""
    after: int = 0
    """The number of characters joined to the last word, such as a particle in Korean."""


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
        self.source = source
        self.target = target
        self.terms: dict[tuple[tuple[str, ...], bool], Term] = {}
        """The terms by their words, folded unless case matters, and whether it does."""
        for source_term, target_term, case in entries:
            words = tuple(source_term[begin:end] for begin, end in term_words(source_term))
            # With `case` in the key, Apple, whose case matters, and apple can have different
            # translations.
            key = (words if case else self.folded(words)), case
            term = self.terms.get(key, Term(source_term, (), case))
            # A dictionary keeps the order of the file and drops rows that repeat another one.
            targets = dict.fromkeys((*term.targets, target_term))
            self.terms[key] = term._replace(targets=tuple(targets))
        lengths = [len(words) for words, _ in self.terms]
        # Bounds the search at each word, so that the time is proportional to the length of the
        # line.
        self.most_words = max(lengths, default=0)

    def folded(self, words: Iterable[str]) -> tuple[str, ...]:
        return tuple(folded(word, self.source) for word in words)

    def find(self, line: str) -> list[Match]:
        """The terms in a clean line, in order."""
        matches = list[Match]()
        spans = term_words(line)
        words = [line[begin:end] for begin, end in spans]
        at = 0
        while at < len(words):
            longest = self.longest_at(words, at)
            if longest is None:
                at += 1
                continue
            term, stem, end = longest
            term_begin = spans[at][0] + stem.before
            term_end = spans[end - 1][1] - stem.after
            casing = casing_of(line[term_begin:term_end], term)
            matches.append(Match(term, term_begin, term_end, casing))
            # Without overlap: the words of a term belong to no other term.
            at = end
        return with_case_of_line(matches, line)

    def longest_at(self, words: Sequence[str], at: int) -> tuple[Term, Stem, int] | None:
        """The longest term that begins with a word, its stem, and the number of the word after it.

        None if no term begins there.
        """
        # The longest first, so that "printer driver" is not found as "printer".
        last_end = min(at + self.most_words, len(words))
        for end in range(last_end, at, -1):
            for stem in stems(words[at:end]):
                term = self.term(stem.words)
                if term:
                    return term, stem, end
        return None

    def term(self, words: Sequence[str]) -> Term | None:
        """The term with these words; if two differ only in case, the one whose case matches."""
        # A term whose case matters is the more specific one.
        exact = self.terms.get((tuple(words), True))
        if exact:
            return exact
        return self.terms.get((self.folded(words), False))


def stems(words: Sequence[str]) -> Iterator[Stem]:
    """The words as they are, and without prefixes of the first and particles of the last one."""
    # First as written, because a term may itself end in what looks like a particle.
    yield Stem(tuple(words))
    first = words[0]
    last = words[-1]
    if len(words) == 1:
        yield from stems_of_word(first)
        return
    firsts = [first, *without_prefixes(first)]
    lasts = [last, *without_particles(last)]
    for begin in firsts:
        before = max(len(first) - len(begin), 0)
        for end in lasts:
            after = len(last) - len(end)
            yield Stem((begin, *words[1:-1], end), before, after)


def stems_of_word(word: str) -> Iterator[Stem]:
    """A word without prefixes and particles, and the word itself."""
    for stem in [word, *without_prefixes(word)]:
        # The stem is longer than the word if a prefix has merged with the Arabic article.
        before = max(len(word) - len(stem), 0)
        yield Stem((stem,), before)
        for shorter in without_particles(stem):
            yield Stem((shorter,), before, len(stem) - len(shorter))
