"""Glossaries: terms and their translations, as constraints of the search, and whether a translation has them.

Words are runs of letters and digits, or single characters of scripts without blanks; each other mark is a word.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from nmt.config import UNK, TranslatorOptions
from nmt.errors import NMTError
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
from nmt.plugins.protection.items import Finder
from nmt.text import META, SOURCE, TARGET, WITHOUT_BLANKS, Tokenizer, clean, open_text, raw_lines, without_end
from nmt.translation import Segment, Stage, Translation

WORD = re.compile(rf"{WITHOUT_BLANKS.pattern}|(?:(?!{WITHOUT_BLANKS.pattern})\w)+|[^\w\s]")
LETTER = re.compile(rf"(?!{WITHOUT_BLANKS.pattern})\w")
CLOSING = ".,;:!?)]}%\u2026"  # a blank follows


class Term(NamedTuple):
    """A term, and its translations, of which any is right; with `case`, only this spelling of it."""

    source: str
    targets: tuple[str, ...]
    case: bool = False

    def written(self, capital: bool) -> list[str]:
        """The translations; with `capital`, their first word gets one unless it has one (iPhone) or is to stay."""

        def is_small(text: str) -> bool:
            first = WORD.match(text)
            return first is not None and first[0].islower() and text != self.source

        return [text[:1].upper() + text[1:] if capital and is_small(text) else text for text in self.targets]


class Match(NamedTuple):
    """A term in a line, from character `begin` to `end`."""

    term: Term
    begin: int
    end: int
    capital: bool  # which the glossary does not give it


class Glossary:
    """Terms, to be found in lines: whole words, from left to right, the longest at each place, without overlap."""

    def __init__(self, entries: Iterable[tuple[str, str, bool]]) -> None:
        self.terms: dict[tuple[tuple[str, ...], bool], Term] = {}
        self.beginnings: dict[str, Any] = {}  # a tree of the terms' words in small letters; "" is where a term ends
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
        """The terms of a clean line, in their order."""
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
        """The term of these words; of two that differ in case alone, the one with this spelling."""
        spelled = tuple(word[0] for word in words)
        return self.terms.get((spelled, True)) or self.terms.get((folded(spelled), False))


def folded(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(word.casefold() for word in words)


def entry(line: str) -> tuple[str, str, bool]:
    """Source, target and whether case counts, of a line; NMTError that says what is wrong."""
    columns = [
        # Spreadsheets put quotes around cells.
        clean(cell[1:-1].replace('""', '"') if re.fullmatch(r'".+"', cell) else cell)
        for cell in line.split("\t")
    ]
    if len(columns) == 1:
        raise NMTError("no tab: a term, a tab and its translation, please; a spreadsheet exports it as TSV")
    if len(columns) > 3 or columns[2:] not in ([], ["case"], [""]):
        raise NMTError("after the translation only a tab and the word case may follow")
    for side, text in zip(("source", "target"), columns, strict=False):
        if not WORD.search(text):
            raise NMTError(f"the {side} is empty")
    return columns[0], columns[1], columns[2:] == ["case"]


def read_glossary(name: str) -> Glossary:
    """Read a file of terms; NMTError, with the line, for one that is none."""
    entries = list[tuple[str, str, bool]]()
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


def judge(matches: Sequence[Match], translation: str) -> list[bool]:
    """Whether each term is used; a place of the translation counts for one term."""
    words, used = WORD.findall(clean(translation)), [False] * len(matches)
    free = [True] * len(words)
    # A short one must not take a word out of a longer one.
    for n in sorted(range(len(matches)), key=lambda n: -max(map(len, matches[n].term.targets))):
        ways = [WORD.findall(text) for capital in (False, True) for text in matches[n].term.written(capital)]
        used[n] = any(take(words, way, free) for way in ways)
    return used


def take(words: list[str], phrase: list[str], free: list[bool]) -> bool:
    """Find words in a row that are free, and take them."""
    for at in range(len(words) - len(phrase) + 1):
        place = slice(at, at + len(phrase))
        if words[place] == phrase and all(free[place]):
            free[place] = [False] * len(phrase)
            return True
    return False


class Terms(Stage):
    """Demands the terms of a glossary, and reports which ones a translation uses; what `finder` finds has none."""

    def __init__(self, glossary: Glossary, tokenizer: Tokenizer, finder: Finder) -> None:
        self.glossary, self.tokenizer, self.finder = glossary, tokenizer, finder

    def find(self, text: str) -> list[Match]:
        return self.glossary.find(self.finder.hidden(text))

    def constraints(self, segments: Sequence[Segment]) -> PhraseConstraints | None:
        """The constraints of segments, None if there are none; a term that is cut counts nowhere."""
        tokenizer, rows = self.tokenizer, list[list[Constraint]]()
        for segment in segments:
            text = tokenizer.decode(segment.ids, SOURCE) if segment.part else tokenizer.clean(segment.text)
            constraints = [constraint_of(tokenizer, match, text[:1].isupper()) for match in self.find(text)]
            rows.append([constraint for constraint in constraints if constraint])
        return PhraseConstraints(rows, kinds(tokenizer)) if any(rows) else None

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        """The terms of a line, and whether each is used; a note names a term that is not."""
        matches, fields = self.find(clean(line)), list[dict[str, Any]]()
        for (term, *_), used in zip(matches, judge(matches, best.text), strict=True):
            if not used:
                best.notes["terms"] = f"no translation of {term.source!r} that the glossary gives"
            verdict = "used" if used else "missed"
            fields.append({"source": term.source, "targets": list(term.targets), "verdict": verdict})
        return {"terms": fields}


def terms(options: TranslatorOptions, tokenizer: Tokenizer, *others: Any) -> Terms:
    keys = options.plugins["protection"]
    return Terms(read_glossary(keys.glossary), tokenizer, Finder(keys.protect))


@lru_cache
def kinds(tokenizer: Tokenizer) -> bytes:
    """The kind of each entry of the target's vocabulary, as constraints know them."""

    def kind(id: int) -> int:
        symbol, text = tokenizer.subwords([id])[0], tokenizer.decode([id])
        blank = symbol.startswith(META) or text.startswith(" ")
        if not text or "\ufffd" in text:  # a blank, or a part of a character
            return EDGE if symbol == META else CONTINUES * (not blank)
        edge = not LETTER.match(text[-1]) and text[-1] not in CLOSING
        return CONTINUES * bool(not blank and LETTER.match(text)) + EDGE * edge

    return bytes(map(kind, range(tokenizer.vocabulary_size)))


def constraint_of(tokenizer: Tokenizer, match: Match, capital: bool) -> Constraint:
    """The ways to write a term; `capital`: the translation begins with one, as its source does.

    Elsewhere a term may have a capital if it has one in the source that the glossary does not give it.
    """
    plain = dict.fromkeys(match.term.written(False) + (match.term.written(True) if match.capital else []))
    begins = dict.fromkeys(match.term.written(True)) if capital else plain
    ways = [phrase for text in begins for phrase in phrases(tokenizer, text, BEGINS)]
    ways += [phrase for where in (FOLLOWS, GLUED) for text in plain for phrase in phrases(tokenizer, text, where)]
    return tuple(dict.fromkeys(ways))


CONTEXTS = {BEGINS: [""], FOLLOWS: ["x "], GLUED: ["x-", "x ("]}  # what may stand before a phrase


@lru_cache(100_000)
def phrases(tokenizer: Tokenizer, text: str, where: int) -> list[Phrase]:
    """A text in tokens, behind such words; none where the vocabulary cannot spell it."""
    contexts = CONTEXTS[where] + ["\u3002"] * (where == FOLLOWS and bool(WITHOUT_BLANKS.match(text)))
    closed, ways = bool(LETTER.match(text[-1])), []
    for context in contexts:
        before, both = tokenizer.encode([context.strip(), tokenizer.clean(context + text)], TARGET)
        tokens = tuple(both[len(before) :])
        if both[: len(before)] == before and tokens and UNK not in tokens:
            ways.append(Phrase(tokens, where, closed))
    return ways
