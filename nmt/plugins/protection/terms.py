"""Terms of a glossary in translations: as constraints of the search, as hints in the source, and in a report."""

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from nmt.config import UNK
from nmt.errors import how_to_install
from nmt.files import ModelDescription, within
from nmt.plugins.protection.constraints import BEGINS, CONTINUES, EDGE, FOLLOWS, GLUED, Constraint, Constraints, Phrase
from nmt.plugins.protection.glossary import MARK, Glossary, Lemmatiser, Match, judge, with_targets
from nmt.text import META, SOURCE, TARGET, WITHOUT_BLANKS, Finder, Tokenizer, clean
from nmt.translation import Segment

LETTER = re.compile(rf"(?!{WITHOUT_BLANKS.pattern})\w")
CLOSING = ".,;:!?)]}%\u2026"
"""Marks that a blank follows."""
WORST = 5
"""Terms that the report names."""


class Terms:
    """What a glossary demands of a model's translations, as constraints, or with `soft` as hints in the source.

    No word of what `finder` protects is of a term.
    """

    def __init__(self, glossary: Glossary, tokenizer: Tokenizer, soft: bool, finder: Finder) -> None:
        self.glossary, self.tokenizer, self.soft, self.finder = glossary, tokenizer, soft, finder

    def find(self, text: str) -> list[Match]:
        """The terms of a clean text."""
        return self.glossary.find(self.finder.hidden(text))

    @property
    def characters(self) -> frozenset[str]:
        """The characters that hints bring into a line."""
        return frozenset(MARK).union(*(target for term in self.glossary.terms.values() for target in term.targets))

    def unusable(self, characters: frozenset[str] | None) -> list[str]:
        """The terms that no search can demand.

        Their source has characters that are copied, because the model does not know them (None: it knows all), or the
        vocabulary cannot spell their translation.
        """
        return [
            term.source
            for term in self.glossary.terms.values()
            if term.targets != (term.source,)
            if not (characters is None or characters.issuperset(term.source))
            or not any(phrases(self.tokenizer, target, FOLLOWS) for target in term.targets)
        ]

    def spans(self, line: str, translation: str) -> list[tuple[int, int]]:
        """Where the terms of a line stand in its translation, as the glossary writes them."""
        found = self.find(clean(line))
        targets = {text for match in found for now in (False, True) for text in match.term.written(now)}
        pattern = "|".join(map(re.escape, sorted(targets, key=len, reverse=True)))
        return [each.span() for each in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", translation)] if targets else []

    def constraints(self, segments: Sequence[Segment]) -> Constraints | None:
        """The constraints of segments, None if there are none; a term that a cut goes through counts nowhere."""
        rows = [self.constraints_of(segment) for segment in segments]
        return Constraints(rows, kinds(self.tokenizer)) if any(rows) else None

    def constraints_of(self, segment: Segment) -> list[Constraint]:
        text = self.tokenizer.decode(segment.ids, SOURCE) if segment.part else self.tokenizer.clean(segment.text)
        found = [constraint_of(self.tokenizer, match, text[:1].isupper()) for match in self.find(text)]
        return [constraint for constraint in found if constraint]

    def hinted(self, line: str) -> tuple[str, list[int]]:
        """A line with the first translation beside each term, and the word of `line` that each of its words is of."""
        text = self.tokenizer.clean(line)
        found = [(match, match.term.targets[0]) for match in self.find(text)]
        extra = [0] * (text.count(" ") + 1)
        for match, target in found:
            extra[text.count(" ", 0, match.end)] += target.count(" ") + 3
        raw = [n for n, word in enumerate(line.split()) for _ in self.tokenizer.clean(word).split()]
        return with_targets(text, found), [
            owner for owner, more in zip(raw, extra, strict=False) for _ in range(1 + more)
        ]


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
    found = [phrase for text in begins for phrase in phrases(tokenizer, text, BEGINS)]
    found += [phrase for where in (FOLLOWS, GLUED) for text in plain for phrase in phrases(tokenizer, text, where)]
    return tuple(dict.fromkeys(found))


CONTEXTS = {BEGINS: [""], FOLLOWS: ["x "], GLUED: ["x-", "x ("]}
"""What may stand before a phrase."""


@lru_cache(100_000)
def phrases(tokenizer: Tokenizer, text: str, where: int) -> list[Phrase]:
    """A text in tokens, behind such words; none where the vocabulary cannot spell it."""
    contexts = CONTEXTS[where] + ["\u3002"] * (where == FOLLOWS and bool(WITHOUT_BLANKS.match(text)))
    closed, found = bool(LETTER.match(text[-1])), []
    for context in contexts:
        before, both = tokenizer.encode([context.strip(), tokenizer.clean(context + text)], TARGET)
        tokens = tuple(both[len(before) :])
        if both[: len(before)] == before and tokens and UNK not in tokens:
            found.append(Phrase(tokens, where, closed))
    return found


def knows_hints(descriptions: Sequence[ModelDescription]) -> bool:
    """True if all models were trained on sources with terms."""
    data = [within(description.training, "config", "data") or {} for description in descriptions]
    each = [[own, *(own.get("sources") or [])] if isinstance(own, dict) else [] for own in data]
    return all(any(isinstance(one, dict) and within(one, "noise", "terms") for one in own) for own in each)


def lemmatiser(language: str) -> Lemmatiser | None:
    """The lemmas of a language's words, if simplemma is installed and knows it."""
    try:
        import simplemma

        simplemma.lemmatize("x", lang=language)
    except (ImportError, ValueError):
        return None
    return cache(lambda word: str(simplemma.lemmatize(word, lang=language)))


class TermReport:
    """Tells which terms translations use, and counts them in `counts`; what `finder` protects has none."""

    def __init__(self, glossary: Glossary, language: str, counts: dict[str, int], finder: Finder) -> None:
        self.glossary, self.counts, self.finder = glossary, counts, finder
        self.language, self.lemma = language, lemmatiser(language)

    def judged(self, source: str, translation: str) -> list[dict[str, Any]]:
        """The terms of a line, and what became of each."""
        found = self.glossary.find(self.finder.hidden(clean(source)))
        return [
            {"source": match.term.source, "targets": list(match.term.targets), "verdict": verdict}
            for match, verdict in zip(found, judge(found, translation, self.lemma), strict=True)
        ]

    def count(self, judged: list[dict[str, Any]]) -> None:
        for term in judged:
            key = f"{term['verdict']}\t{term['source']}"
            self.counts[key] = self.counts.get(key, 0) + 1

    def summary(self) -> str:
        """How many terms were used, and those that were missed most."""
        kinds, missed, every = dict.fromkeys(("used", "inflected", "missed"), 0), dict[str, int](), dict[str, int]()
        for key, count in self.counts.items():
            kind, tab, term = key.partition("\t")
            if tab:
                kinds[kind] += count
                every[term] = every.get(term, 0) + count
                missed[term] = missed.get(term, 0) + count * (kind == "missed")
        worst = sorted((term for term in missed if missed[term]), key=lambda term: (-missed[term], term))[:WORST]
        total = sum(kinds.values())
        words = f"terms: {total:,} in the lines, {kinds['used']:,} used, {kinds['inflected']:,} inflected, "
        words += f"{kinds['missed']:,} missed"
        if worst:
            words += ": " + ", ".join(f"{term} ({missed[term]:,} of {every[term]:,})" for term in worst)
        if kinds["missed"] and not self.lemma:
            words += f" (simplemma would find inflected forms of {self.language}; {how_to_install('terms')})"
        return words
