"""From a checked request to its answer: which model, which lines, and what clients of LibreTranslate expect."""

import asyncio
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from anyio import BrokenWorkerProcess, CapacityLimiter, to_process

from nmt.errors import NMTError
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.models import Request, ServedModel
from nmt.plugins.serve.requests import FileForm, TranslateForm
from nmt.plugins.serve.worker import Failed, Line, Search, SentDocument, read_lines, write

T = TypeVar("T")
MOST_CHARACTERS = 2000
"""The language of a text is detected from its beginning."""
SURE = 0.8
"""A text stays as it is from this probability on that it is in the target language rather than in a source language."""
SMALL_BYTES = 2**15
"""Documents of at most this size have a process of their own, so that they do not wait for large ones."""
PARSING_LIMITS = 2**30, 10
"""Bytes of memory and seconds of processor time in which a document must be read or written."""


@cache
def language_name(code: str) -> str:
    """The English name of a language, such as German for de; its code where Babel, an extra, does not know it."""
    try:
        from babel import Locale, UnknownLocaleError
    except ImportError:
        return code
    try:
        return Locale.parse(code.replace("-", "_")).get_display_name("en") or code
    except (UnknownLocaleError, ValueError):
        return code


@cache
def identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(Path(MODEL_FILE), norm_probs=True)


def detect(text: str, languages: list[str]) -> list[tuple[str, float]]:
    """Those of some languages that can be detected, the most probable first; none for a text without letters.

    A code such as pt-BR stands for its language. The probabilities are those among all languages of the world.
    """
    text = text[:MOST_CHARACTERS]
    if not any(map(str.isalpha, text)):
        return []
    codes = {code.replace("_", "-").partition("-")[0].lower(): code for code in reversed(languages)}
    ranked = ((str(language), float(probability)) for language, probability in identifier().rank(text))
    return [(codes[language], probability) for language, probability in ranked if language in codes]


def choose(text: str, sources: list[str], target: str) -> tuple[str, float]:
    """The language of a text, which is one of the sources or surely the target, and its probability."""
    probabilities = dict(detect(text, [*sources, target]))
    source = max(sources, key=lambda language: probabilities.get(language, 0.0))
    of_target, of_source = probabilities.get(target, 0.0), probabilities.get(source, 0.0)
    return (target, of_target) if of_target > SURE * (of_target + of_source) else (source, of_source)


class PlainText:
    """Lines of text; line ends, blank lines and white space around a line stay as they are."""

    def __init__(self, text: str) -> None:
        stripped = [(line, line.strip()) for line in text.split("\n")]
        self.parts = [line.partition(inner) if inner else (line, "", "") for line, inner in stripped]
        """Of each line: white space, the text to translate, white space."""
        self.lines = [inner for _, inner, _ in self.parts if inner]

    def join(self, lines: list[Line], rank: int = 0) -> str:
        """The text with the translations of that rank, or the last one of a line that has fewer."""
        texts = iter([line.texts[min(rank, len(line.texts) - 1)] for line in lines])
        return "\n".join(before + (next(texts) if inner else "") + after for before, inner, after in self.parts)


class Route(NamedTuple):
    """The model for a request: None where source and target are one language, and texts stay as they are."""

    model: ServedModel | None
    target: str
    detected: dict[str, Any]
    """The part `detectedLanguage` of the answer, where the source was auto."""


class Service:
    """Translates texts and documents by the models; two processes parse, one of them small documents alone.

    Of two models for the same languages, the first is used. NMTError where one of them cannot be served.
    """

    def __init__(self, config: ServeConfig) -> None:
        self.limits, self.models = config.limits, [ServedModel(name, config) for name in config.run]
        self.pairs: dict[str, dict[str, ServedModel]] = {}
        for model in self.models:
            for target in model.tags:
                self.pairs.setdefault(model.source, {}).setdefault(target, model)
        self.languages = list(dict.fromkeys(chain(self.pairs, *self.pairs.values())))
        self.most_lines = max(1, self.limits.waiting_lines // 2)
        """Lines of one request, so that one client alone does not shut out all others."""
        self.small, self.large = CapacityLimiter(1), CapacityLimiter(1)

    async def parse(self, function: Callable[..., T], document: SentDocument, *arguments: Any) -> T:
        """What a function makes of a document, in a process that ends when the client goes; Failed where it cannot."""
        turn, limits = self.small if len(document.content) <= SMALL_BYTES else self.large, PARSING_LIMITS
        try:
            return await to_process.run_sync(function, limits, document, *arguments, cancellable=True, limiter=turn)
        except NMTError as error:
            raise Failed(400, f"file: {error}") from error
        except (BrokenWorkerProcess, MemoryError) as error:
            most = f"{limits[0] // 2**20:,} MiB of memory or {limits[1]} seconds"
            raise Failed(400, f"file: it takes more than {most}; divide it") from error

    async def find_route(self, source: str, target: str, text: str) -> Route:
        """The model for two languages, in capitals or not; Failed where there is none."""
        codes = {code.lower(): code for code in self.languages}
        for language in [target] if source == "auto" else [source, target]:
            if language.lower() not in codes:
                raise Failed(400, f"{language[:40]} is not supported")
        target, detected = codes[target.lower()], dict[str, Any]()
        if source == "auto":
            sources = [language for language, targets in self.pairs.items() if target in targets] or [*self.pairs]
            source, probability = await asyncio.to_thread(choose, text, sources, target)
            detected = {"detectedLanguage": {"confidence": round(100 * probability), "language": source}}
        source = codes[source.lower()]
        if source != target and target not in self.pairs.get(source, {}):
            names = [f"{language_name(code)} ({code})" for code in (target, source)]
            raise Failed(400, f"{names[0]} is not available as a target language from {names[1]}")
        return Route(None if source == target else self.pairs[source][target], target, detected)

    async def translate_lines(self, route: Route, lines: list[str], n_best: int, aligned: bool) -> list[Line]:
        """Have lines translated; those that still wait when one has no answer, or nobody waits, are forgotten."""
        model, most = route.model, self.limits.characters
        if model is None:
            return [Line([line]) for line in lines]
        if len(lines) > self.most_lines:
            raise Failed(413, f"more than {self.most_lines:,} lines; send fewer at once")
        if (longest := max(map(len, lines), default=0)) > most:
            raise Failed(400, f"a line ({longest}) exceeds text limit ({most}); divide it")
        if model.queue.lines + len(lines) > self.limits.waiting_lines:
            raise Failed(503, "too many lines wait for this model; try again later")
        request = Request(Search(n_best, aligned, model.tags[route.target]), lines)
        model.queue.add(request)
        try:
            return [await answer for answer in request.answers]
        finally:
            model.queue.remove(request)

    async def translate_texts(self, form: TranslateForm) -> dict[str, Any]:
        """The answer to a request with a text, or with a list of texts, each of whose values is then a list."""
        html, documents = form.format == "html", [SentDocument(text.encode(), "a.html") for text in form.texts]
        plain = [PlainText(text) for text in form.texts]
        rows = [text.lines for text in plain]
        if html:
            rows = [(await self.parse(read_lines, document, self.most_lines))[0] for document in documents]
        lines = [*chain(*rows)]
        route = await self.find_route(form.source, form.target, "\n".join(lines))
        ranks = range(1, 1 if html else form.alternatives + 1)
        translations = iter(await self.translate_lines(route, lines, len(ranks) + 1, html))
        answers = list[dict[str, Any]]()
        for text, document, row in zip(plain, documents, rows, strict=True):
            translated = [next(translations) for _ in row]
            best = text.join(translated)
            if html:
                content = await self.parse(write, document, translated) if route.model else document.content
                best = content.decode()
            others = dict.fromkeys(text.join(translated, rank) for rank in ranks)
            alternatives = {"alternatives": [other for other in others if other != best]} if form.alternatives else {}
            answers.append({"translatedText": best, **alternatives, **route.detected})
        return {key: [answer[key] for answer in answers] for key in answers[0]} if form.q == form.texts else answers[0]

    async def translate_document(self, form: FileForm) -> tuple[str, bytes]:
        """The language and the content of the translation of a file."""
        source = "" if form.source == "auto" else form.source
        document = SentDocument(await form.file.read(), form.file.filename or "", source, form.target)
        lines, marked_up = await self.parse(read_lines, document, self.most_lines)
        route = await self.find_route(form.source, form.target, "\n".join(lines[:20]))
        translated = await self.translate_lines(route, lines, 1, marked_up)
        content = await self.parse(write, document, translated) if route.model else document.content
        return route.target, content
