"""Glossaries: terms and their translations as search constraints, and checks that a translation uses them.

A word is a run of letters and digits, a single character of a script without spaces, or any other single symbol.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from nmt.config import UNK, NMTError, TranslatorOptions, require
from nmt.plugins.protection.constraints import (
    BEGINS,
    CONTINUES,
    EDGE,
    FOLLOWS,
    GLUED,
    Constraint,
    Phrase,
    PhraseConstraints,
)
from nmt.plugins.protection.items import Finder, hidden
from nmt.text import META, SOURCE, TARGET, WITHOUT_BLANKS, Tokenizer, clean, open_text, raw_lines, without_end
from nmt.translation import Limits, Segment, Stage, Translation

WORD = re.compile(rf"{WITHOUT_BLANKS.pattern}|(?:(?!{WITHOUT_BLANKS.pattern})\w)+|[^\w\s]")
LETTER = re.compile(rf"(?!{WITHOUT_BLANKS.pattern})\w")
CLOSING = ".,;:!?)]}%\u2026"  # punctuation that is followed by a space
CONTEXTS = {BEGINS: [""], FOLLOWS: ["x "], GLUED: ["x-", "x ("]}  # what may precede a phrase


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
        self.beginnings: dict[str, Any] = {}  # a tree of the terms' casefolded words; "" marks the end of a term
        for source, target, case in entries:
            words = tuple(WORD.findall(source))
            key = words if case else folded(words), case
            term = self.terms.get(key, Term(source, (), case))
            self.terms[key] = term._replace(targets=tuple(dict.fromkeys((*term.targets, target))))
            node = self.beginnings
            for word in folded(words):
                node = node.setdefault(word, {})
            node[""] = {}

    def find(self, line: str) -> list[Match]:
        """The terms in a clean line, in order."""
        words, matches, at = list(WORD.finditer(line)), list[Match](), 0
        small = folded([word[0] for word in words])
        while at < len(words):
            node, end, match = self.beginnings, at, None
            while end < len(words) and (node := node.get(small[end], {})):
                end += 1
                if "" in node and (term := self.term(words[at:end])):
                    capital = words[at][0][0].isupper() and term.source[0].islower()
                    match, behind = Match(term, words[at].start(), words[end - 1].end(), capital), end
            if match:
                matches.append(match)
            at = behind if match else at + 1
        return matches

    def term(self, words: Sequence[re.Match[str]]) -> Term | None:
        """The term with these words; if two differ only in case, the one whose case matches."""
        spelled = tuple(word[0] for word in words)
        return self.terms.get((spelled, True)) or self.terms.get((folded(spelled), False))


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
    with open_text(name) as file:
        for number, line in enumerate(raw_lines(file, name), 1):
            try:
                text = without_end(line).decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip() and not text.startswith("#"):
                    entries.append(entry(text))
            except (UnicodeDecodeError, NMTError) as error:
                problem = error if isinstance(error, NMTError) else "not UTF-8"
                raise NMTError(f"{name}, line {number}: {problem}") from error
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


@lru_cache
def kinds(tokenizer: Tokenizer) -> bytes:
    """The kind of each token, made up of the bits CONTINUES and EDGE."""

    def kind(id: int) -> int:
        symbol, text = tokenizer.subwords([id])[0], tokenizer.decode([id])
        blank = symbol.startswith(META) or text.startswith(" ")
        if not text or "\ufffd" in text:  # a space, or part of a character
            return EDGE if symbol == META else CONTINUES * (not blank)
        edge = not LETTER.match(text[-1]) and text[-1] not in CLOSING
        return CONTINUES * bool(not blank and LETTER.match(text)) + EDGE * edge

    return bytes(map(kind, range(tokenizer.vocabulary_size)))


def constraint_of(tokenizer: Tokenizer, match: Match, capital: bool) -> Constraint:
    """The ways to write a term, capitalized at the beginning of a translation if `capital`.

    Elsewhere it may also be capitalized if the line, but not the glossary, capitalizes it.
    """
    plain = dict.fromkeys(match.term.written(False) + (match.term.written(True) if match.capital else []))
    begins = dict.fromkeys(match.term.written(True)) if capital else plain
    ways = [phrase for text in begins for phrase in phrases(tokenizer, text, BEGINS)]
    ways += [phrase for where in (FOLLOWS, GLUED) for text in plain for phrase in phrases(tokenizer, text, where)]
    return tuple(dict.fromkeys(ways))


@lru_cache(100_000)
def phrases(tokenizer: Tokenizer, text: str, where: int) -> list[Phrase]:
    """The tokens of a term in each context; empty if the vocabulary cannot spell it."""
    contexts = CONTEXTS[where] + ["\u3002"] * (where == FOLLOWS and bool(WITHOUT_BLANKS.match(text)))
    closed, ways = bool(LETTER.match(text[-1])), []
    for context in contexts:
        before, both = tokenizer.encode([context.strip(), tokenizer.clean(context + text)], TARGET)
        tokens = tuple(both[len(before) :])
        if both[: len(before)] == before and tokens and UNK not in tokens:
            ways.append(Phrase(tokens, where, closed))
    return ways
