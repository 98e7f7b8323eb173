"""The choice of the model for a text, by the languages that a client names or that are detected."""

import asyncio
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.models import ServedModel
from nmt.plugins.serve.source_language import Unserved, choose
from nmt.text import (
    MOST_LISTED,
    did_you_mean,
    match_language,
    near_in_words,
    subtags,
    usual_subtags,
    with_code,
)
from nmt.translation import UNKNOWN, Direction

AUTO = "auto"
MOST_OF_CODE = 40
"""The maximum number of characters of a client's language code in a message."""


class Served(NamedTuple):
    """A model that translates between two languages."""

    model: ServedModel
    direction: Direction
    """The languages by the model's own codes, such as eng_Latn; other models may call them en."""


class Route(NamedTuple):
    """The way in which a text is translated."""

    model: ServedModel | None
    """The model that translates; None if the text is already in the target language."""
    source: str
    target: str
    detected: dict[str, Any]
    """The answer's `detectedLanguage` if the source is "auto"."""
    direction: Direction = UNKNOWN
    """The languages by the model's own codes."""


def in_words(codes: Sequence[str], missing: str) -> str:
    """Languages for messages, such as English (en), German (de); of many, those near `missing`."""
    if len(codes) <= MOST_LISTED:
        return ", ".join(with_code(code) for code in codes)
    near = near_in_words(missing, codes)
    return f"{len(codes)}, listed by /languages{'; ' if near else ''}{near}"


def same_language(code: str, codes: Sequence[str], others: Sequence[str]) -> str | None:
    """The one of `others` that means the same as one of a model's `codes`: en for eng_Latn."""
    other = match_language(code, others)
    # Not pt_PT for por_Latn, between which a client may want to choose.
    if other is None or region_of(other) != region_of(code):
        return None
    # A model may have languages that match the same code, such as Akan and Twi; one matches best.
    return other if match_language(other, codes) == code else None


def region_of(code: str) -> str | None:
    """The region of a code, or the usual one of its language."""
    language, script, region, _ = subtags(code)
    usual = usual_subtags(f"{language}_{script}") or usual_subtags(language)
    return region or usual.get("region")


class Routes:
    """The languages of the served models, and the models between them."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self.pairs: dict[str, dict[str, Served]] = {}
        """Source language -> target language -> model."""
        self.languages = list[str]()
        """The codes of all languages."""
        for model in models:
            self.add(model)

    def add(self, model: ServedModel) -> None:
        """Add the languages of a model, with the codes of earlier models for the same languages."""
        directions = list(model.directions())
        codes = list(dict.fromkeys(chain.from_iterable(directions)))
        served = {code: same_language(code, codes, self.languages) or code for code in codes}
        for direction in directions:
            targets = self.pairs.setdefault(served[direction.source], {})
            # Of several models, the first is used.
            targets.setdefault(served[direction.target], Served(model, direction))
        self.languages = list(dict.fromkeys([*self.languages, *served.values()]))

    def code_of(self, language: str, *preferred: Iterable[str]) -> str:
        """The served code for a client's code, such as pt-BR for pt; raise Failed if there is none.

        Of several codes, one of the first of the preferred groups is chosen.
        """
        # A client's pt can mean pt-BR or pt-PT; one that fits the other language comes first.
        for codes in (*preferred, self.languages):
            code = match_language(language, codes)
            if code is not None:
                return code
        shown = language[:MOST_OF_CODE]
        name = with_code(shown)
        problem = f"{name} is not supported"
        hint = did_you_mean(language, self.languages)
        if hint:
            problem += f"; {hint}"
        # If the code is not a language, LibreTranslate's own tests expect only the first words.
        is_language = name != shown
        if is_language:
            problem += f"; supported languages: {in_words(self.languages, shown)}"
        raise Failed(400, problem, languages=self.languages)

    def sources_of(self, target: str) -> list[str]:
        """The languages with a model into a language."""
        return [source for source, targets in self.pairs.items() if target in targets]

    def advice(self, source: str, target: str) -> str:
        """The advice if no model translates from one language, "" if unknown, into another."""
        sources = self.sources_of(target)
        if not sources:
            return "see /languages"
        return f"models into {with_code(target)} translate from: {in_words(sources, source)}"

    def no_route(self, source: str, target: str) -> Failed:
        """The failure if no model translates from a language that the client named."""
        # The beginning is LibreTranslate's.
        problem = f"{with_code(target)} is not available as a target language"
        return Failed(400, f"{problem} from {with_code(source)}; {self.advice(source, target)}")

    def no_detected_route(self, source: str, target: str) -> Failed:
        """The failure if no model translates the language of a text, "" for an unknown one."""
        if source:
            problem = f"{with_code(source)} was detected, but no model translates it"
        else:
            problem = "no model translates"
        return Failed(400, f"{problem} to {with_code(target)}; {self.advice(source, target)}")

    def route_to(self, source: str, target: str) -> Route:
        """The route for two language codes of a client, in any case and form.

        Raises Failed if there is none.
        """
        source = self.code_of(source, self.pairs)
        # The target is chosen among those of the source: pt can mean pt-BR for one model and pt-PT
        # for another.
        targets = self.pairs.get(source, {})
        target = self.code_of(target, targets)
        if source == target:
            return Route(None, source, target, {})
        if target not in targets:
            raise self.no_route(source, target)
        model, direction = targets[target]
        return Route(model, source, target, {}, direction)

    def detected_route(self, text: str, target: str) -> Route:
        """The route for a text in an unknown language.

        Raises Failed if no model translates its language.
        """
        # A detected source is one with a model into the target, so the target must come first.
        target = self.code_of(target, chain.from_iterable(self.pairs.values()))
        try:
            source, probability = choose(text, self.sources_of(target), target, self.languages)
        except Unserved as error:
            raise self.no_detected_route(error.language, target) from error
        confidence = round(100 * probability)
        detected = {"detectedLanguage": {"confidence": confidence, "language": source}}
        if source == target:
            return Route(None, source, target, detected)
        model, direction = self.pairs[source][target]
        return Route(model, source, target, detected, direction)

    def routes_of(self, source: str, target: str, texts: Sequence[str]) -> list[Route]:
        """The route of each text; with "auto", each text has its own language."""
        if source.lower() != AUTO:
            return [self.route_to(source, target)] * len(texts)
        routes = dict[str, Route]()
        # Texts of a list may be in different languages.
        for number, text in enumerate(texts, 1):
            if text in routes:  # detection takes longer than the look-up
                continue
            try:
                routes[text] = self.detected_route(text, target)
            except Failed as error:
                where = f"text {number}: " if len(texts) > 1 else ""
                raise Failed(error.status_code, f"{where}{error.detail}", **error.more) from error
        return [routes[text] for text in texts]

    async def find(self, source: str, target: str, texts: Sequence[str]) -> list[Route]:
        """Like `routes_of`, but without delaying other requests while languages are detected."""
        if source.lower() != AUTO:
            # Without detection, a thread would cost more than the look-up.
            return self.routes_of(source, target, texts)
        return await asyncio.to_thread(self.routes_of, source, target, texts)
