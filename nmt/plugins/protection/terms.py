"""Terms of a glossary in translations: as constraints of the search, and in a report."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from typing import Any

from nmt.config import UNK, TranslatorOptions, shown
from nmt.errors import how_to_install
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
from nmt.plugins.protection.glossary import Glossary, Lemmatiser, Match, judge, read_glossary
from nmt.text import META, SOURCE, TARGET, WITHOUT_BLANKS, Finder, Tokenizer, clean
from nmt.translation import Limits, Segment, Stage, Translation, language_of, languages

LETTER = re.compile(rf"(?!{WITHOUT_BLANKS.pattern})\w")
CLOSING = ".,;:!?)]}%\u2026"
"""Marks that a blank follows."""
WORST = 5
"""Terms that the report names."""


class Terms(Stage):
    """Demands the terms of a glossary, and reports which ones translations into `language` use.

    No word of what `finder` protects is of a term.
    """

    def __init__(self, glossary: Glossary | None, tokenizer: Tokenizer, finder: Finder, language: str = "") -> None:
        self.glossary, self.tokenizer, self.finder, self.language = glossary, tokenizer, finder, language

    def find(self, text: str) -> list[Match]:
        """The terms of a clean text."""
        return self.glossary.find(self.finder.hidden(text)) if self.glossary else []

    def unusable(self, characters: frozenset[str] | None) -> list[str]:
        """The terms that no search can demand.

        Their source has characters that are copied, because the model does not know them (None: it knows all), or the
        vocabulary cannot spell their translation.
        """
        return [
            term.source
            for term in (self.glossary.terms.values() if self.glossary else ())
            if term.targets != (term.source,)
            if not (characters is None or characters.issuperset(term.source))
            or not any(phrases(self.tokenizer, target, FOLLOWS) for target in term.targets)
        ]

    def constraints(self, segments: Sequence[Segment]) -> PhraseConstraints | None:
        """The constraints of segments, None if there are none; a term that a cut goes through counts nowhere."""
        tokenizer, rows = self.tokenizer, list[list[Constraint]]()
        for segment in segments if self.glossary else ():
            text = tokenizer.decode(segment.ids, SOURCE) if segment.part else tokenizer.clean(segment.text)
            constraints = [constraint_of(tokenizer, match, text[:1].isupper()) for match in self.find(text)]
            rows.append([constraint for constraint in constraints if constraint])
        return PhraseConstraints(rows, kinds(tokenizer)) if any(rows) else None

    @cached_property
    def lemma(self) -> Lemmatiser | None:
        return lemmatiser(self.language)

    def report(self, line: str, translations: list[Translation], counts: dict[str, int]) -> dict[str, Any]:
        """The terms of a line, and what became of each."""
        if not self.glossary:
            return {}
        terms, matches = list[dict[str, Any]](), self.find(clean(line))
        for (term, *_), verdict in zip(matches, judge(matches, translations[0].text, self.lemma), strict=True):
            key = f"{verdict}\t{term.source}"
            counts[key] = counts.get(key, 0) + 1
            terms.append({"source": term.source, "targets": list(term.targets), "verdict": verdict})
        return {"terms": terms}

    def summary(self, counts: Mapping[str, int]) -> str:
        """How many terms were used, and those that were missed most."""
        if not self.glossary:
            return ""
        by_verdict = defaultdict[str, Counter[str]](Counter)
        for key, count in counts.items():
            verdict, _, term = key.partition("\t")
            by_verdict[verdict][term] += count
        used, inflected, missed = (by_verdict[verdict] for verdict in ("used", "inflected", "missed"))
        every = used + inflected + missed
        words = f"terms: {every.total():,} in the lines, {used.total():,} used, {inflected.total():,} inflected, "
        words += f"{missed.total():,} missed"
        if worst := sorted(missed, key=lambda term: (-missed[term], term))[:WORST]:
            words += ": " + ", ".join(f"{term} ({missed[term]:,} of {every[term]:,})" for term in worst)
            if not self.lemma:
                words += f" (simplemma would find inflected forms of {self.language}; {how_to_install('terms')})"
        return words


def terms(
    options: TranslatorOptions, tokenizer: Tokenizer, limits: Limits, notice: Callable[[str], None]
) -> Terms | None:
    keys = options.plugins.get("protection")
    if not keys:
        return None
    language = language_of(options.target or "") if languages(tokenizer) else limits.target
    glossary = read_glossary(keys.glossary, notice) if keys.glossary else None
    stage = Terms(glossary, tokenizer, Finder(keys.protect), language or "")
    if unusable := stage.unusable(limits.characters):
        notice(
            f"glossary: {len(unusable):,} terms have no effect, as the model does not know their characters: "
            f"{shown(', '.join(unusable))}"
        )
    return stage


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


CONTEXTS = {BEGINS: [""], FOLLOWS: ["x "], GLUED: ["x-", "x ("]}
"""What may stand before a phrase."""


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


def lemmatiser(language: str) -> Lemmatiser | None:
    """The lemmas of a language's words, if simplemma is installed and knows it."""
    try:
        import simplemma

        simplemma.lemmatize("x", lang=language)
    except (ImportError, ValueError):
        return None
    return cache(lambda word: str(simplemma.lemmatize(word, lang=language)))
