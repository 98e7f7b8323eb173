"""The stage that makes translations contain the terms of a glossary: they constrain the search.

A translation that lacks the translation of a term is flagged.
"""

from collections.abc import Sequence
from typing import Any

from nmt.config import TranslatorOptions
from nmt.items import Finder, hidden
from nmt.plugins.protection.constraints import PhraseConstraints
from nmt.plugins.protection.glossary import Glossary
from nmt.plugins.protection.glossary_files import read_glossary
from nmt.plugins.protection.occurrences import Form
from nmt.plugins.protection.phrases import (
    BEGINS,
    FOLLOWS,
    GLUED,
    Constraint,
    Phrase,
    kinds_of_tokens,
    phrases_of,
)
from nmt.plugins.protection.terms import Casing, Match, judge, texts_of
from nmt.plugins.protection.written_terms import WrittenTerms
from nmt.text import SOURCE, Tokenizer, clean
from nmt.translation import Limits, Segment, Stage, Translation

MISSING = "the translation of a glossary term is missing"
"""The note for a translation; its value is the term."""


class Terms(Stage):
    """Requires the translations of glossary terms, and reports which are used.

    Protected items have no terms.
    """

    def __init__(self, glossary: Glossary, tokenizer: Tokenizer, finder: Finder) -> None:
        self.glossary = glossary
        self.tokenizer = tokenizer
        self.finder = finder

    def find(self, text: str) -> list[Match]:
        """The terms in a clean text, outside its protected items."""
        # `hidden` keeps the length of the text, so the places of matches stay valid.
        return self.glossary.find(hidden(text, self.finder.stretches(text)))

    def constraints(self, segments: Sequence[Segment]) -> PhraseConstraints | None:
        """The constraints of segments, or None if there are none.

        A term split across segments is ignored.
        """
        language = self.glossary.target
        rows = list[list[Constraint]]()
        forms = list[list[list[Form]]]()
        for segment in segments:
            text = self.text_of(segment)
            # By segment, because each segment begins or continues a separate sentence.
            capital = begins_with_capital(text)
            constraints_of_segment = list[Constraint]()
            forms_of_segment = list[list[Form]]()
            for match in self.find(text):
                constraint = constraint_of(self.tokenizer, match, capital, language)
                if constraint:  # otherwise, the vocabulary cannot spell the term
                    constraints_of_segment.append(constraint)
                    forms_of_segment.append(match.acceptable(language))
            rows.append(constraints_of_segment)
            forms.append(forms_of_segment)
        # None lets the engine search without constraints, which is faster.
        if not any(rows):
            return None
        kinds = kinds_of_tokens(self.tokenizer)
        return PhraseConstraints(rows, kinds, WrittenTerms(forms, self.tokenizer))

    def text_of(self, segment: Segment) -> str:
        """A segment as the model reads it."""
        # A part of a long sentence exists only as tokens, and is not a text of its own.
        if segment.sentence_tokens:
            return self.tokenizer.decode(segment.ids, SOURCE)
        return self.tokenizer.clean(segment.text)

    def report(self, line: str, best: Translation) -> dict[str, Any]:
        """A line's terms and whether their translations are used.

        A note names a term whose translation is missing.
        """
        # Found again, because a stage keeps nothing between a search and its report.
        matches = self.find(clean(line))
        fields = list[dict[str, Any]]()
        verdicts = judge(matches, best.text, self.glossary.target)
        for match, is_used in zip(matches, verdicts, strict=True):
            term = match.term
            if not is_used:
                best.notes[MISSING] = repr(term.source)
            fields.append(
                {
                    "source": term.source,
                    "targets": list(term.targets),
                    "verdict": "used" if is_used else "missed",
                }
            )
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

    The case follows the line: with `capital`, a term begins a translation with a capital.
    """
    begins, elsewhere = texts_of(match, capital, language)
    phrases = list[Phrase]()
    for text in begins:
        phrases += phrases_of(tokenizer, text, BEGINS)
    for where in (FOLLOWS, GLUED):
        for text in elsewhere:
            phrases += phrases_of(tokenizer, text, where)
    if not phrases and match.casing is Casing.IN_LINE_OF_CAPITALS:
        # A vocabulary may lack capitals, such as those of Georgian.
        listed = match._replace(casing=Casing.AS_LISTED)
        return constraint_of(tokenizer, listed, capital, language)
    # Contexts often give the same tokens; each phrase once keeps the tracker small.
    return tuple(dict.fromkeys(phrases))
