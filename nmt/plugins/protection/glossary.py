"""Glossaries: terms and their translations, where they stand in a line, and whether a translation has them.

Words are runs of letters and digits, or single characters of scripts without blanks; each other mark is a word.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from nmt.errors import NMTError
from nmt.text import WITHOUT_BLANKS, clean, open_text, raw_lines, without_end

WORD = re.compile(rf"{WITHOUT_BLANKS.pattern}|(?:(?!{WITHOUT_BLANKS.pattern})\w)+|[^\w\s]")
ENDS = frozenset(".!?\u3002\uff01\uff1f")
"""Words that end a sentence."""
HEADINGS = {("source", "target"), ("src", "tgt"), ("src", "trg"), ("term", "translation")}
LANGUAGES = frozenset(
    """en english de german deutsch fr french es spanish it italian pt portuguese nl dutch pl polish cs czech
    ru russian ja japanese zh chinese""".split()  # noqa: SIM905
)
"""First rows of two of these hold no term either."""
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
    """Terms, to be found in lines: whole words, from left to right, the longest at each place, without overlap."""

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
        self.beginnings: dict[str, Any] = {}
        """A tree of the terms' words in small letters; "" is where a term ends."""
        for words, _ in self.terms:
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
        """The term that these words are; of two that differ in case alone, the one that is spelled so."""
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


def read_glossary(name: str, notice: Callable[[str], None] = lambda words: None) -> Glossary:
    """Read a file of terms, with a notice for a heading; NMTError, with the line, for one that is none."""
    entries = list[tuple[str, str, bool]]()
    with open_text(name) as file:
        for number, line in enumerate(raw_lines(file, name), 1):
            try:
                text = without_end(line).decode("utf-8-sig" if number == 1 else "utf-8")
                if not text.strip() or text.startswith("#"):
                    continue
                term = entry(text)
                pair = term[0].casefold(), term[1].casefold()
                if not entries and (pair in HEADINGS or (LANGUAGES.issuperset(pair) and pair[0] != pair[1])):
                    notice(f"{name}, line {number}: taken for a heading, and left out; below another it is a term")
                else:
                    entries.append(term)
            except UnicodeDecodeError as error:
                raise NMTError(f"{name}, line {number}: not UTF-8") from error
            except NMTError as error:
                raise NMTError(f"{name}, line {number}: {error}") from error
    if not entries:
        raise NMTError(f"{name}: no terms in it")
    return Glossary(entries)


def judge(matches: Sequence[Match], translation: str, lemma: Lemmatiser | None) -> list[str]:
    """Whether each term is used, inflected or missed; a place of the translation counts for one term."""
    words, verdicts = WORD.findall(clean(translation)), ["missed"] * len(matches)
    behind = appended(matches, words)
    free = [True] * behind + [False] * (len(words) - behind)
    rounds: list[tuple[str, Lemmatiser]] = [("used", str)]
    if lemma:
        rounds.append(("inflected", lambda word: lemma(word).casefold()))
    for verdict, form in rounds:
        forms = [form(word) for word in words]
        # A short one must not take a word out of a longer one.
        for n in sorted(range(len(matches)), key=lambda n: -max(map(len, matches[n].term.targets))):
            term = matches[n].term
            if verdicts[n] == "missed":
                targets = [list(map(form, WORD.findall(text))) for now in (False, True) for text in term.written(now)]
                if any(take(forms, target, free) for target in targets):
                    verdicts[n] = verdict
    return verdicts


def appended(matches: Sequence[Match], words: Sequence[str]) -> int:
    """Where the words behind the last sentence of a translation begin, if these are nothing but terms."""
    targets = [WORD.findall(text) for match in matches for now in (False, True) for text in match.term.written(now)]
    end = len(words)
    while end and words[end - 1] in ENDS:
        end -= 1
    begin = end
    while term := next((term for term in targets if term and list(words[begin - len(term) : begin]) == term), None):
        begin -= len(term)
    return begin if 0 < begin < end and words[begin - 1] in ENDS else len(words)


def take(words: list[str], phrase: list[str], free: list[bool]) -> bool:
    """Find words in a row that are free, and take them."""
    for at in range(len(words) - len(phrase) + 1):
        place = slice(at, at + len(phrase))
        if words[place] == phrase and all(free[place]):
            free[place] = [False] * len(phrase)
            return True
    return False
