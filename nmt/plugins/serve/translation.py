"""From a checked request to its answer: which model, which lines, and what clients of LibreTranslate expect."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.models import CHARACTERS, LINES, Models, Request, ServedModel
from nmt.plugins.serve.requests import FileRequest, TranslateRequest
from nmt.plugins.serve.worker import Failed, Line, Parser, Search, SentDocument
from nmt.text import language_name

MOST_CHARACTERS = 2000
"""The language of a text is detected from its beginning."""
SURE = 0.8
"""A text stays as it is from this probability on that it is in the target language rather than in a source language."""
SMALL_BYTES = 2**15
"""Documents of at most this size together have a process of their own, so that they do not wait for large ones."""
PARSING_BYTES = 2**30
"""Memory of a process that parses."""
PARSING_SECONDS = 10
"""Processor time in which documents must be read, or written."""
TranslatedLine = tuple[str, list[tuple[int, int]] | None]
"""A text, and the pairs of a source word and a target word; None: unknown."""


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
        self.numbers = [number for number, (_, inner, _) in enumerate(self.parts) if inner]
        self.lines = [self.parts[number][1] for number in self.numbers]

    def join(self, translations: list[TranslatedLine]) -> str:
        texts = iter(translations)
        return "\n".join(before + (next(texts)[0] if inner else "") + after for before, inner, after in self.parts)


def variants_of(lines: list[Line]) -> list[list[TranslatedLine]]:
    """The best translation of a document's lines, and its alternatives; the alignment is known of the best one."""
    rows = [
        [(text, None if n else line.details.get("alignment")) for n, text in enumerate(line.texts)] for line in lines
    ]
    return [[row[min(n, len(row) - 1)] for row in rows] for n in range(max(map(len, rows), default=1))]


def details_of(source: str, line: Line) -> dict[str, Any]:
    return {"source": source, "translation": line.texts[0], **line.details}


class Route(NamedTuple):
    """The model for a request: None where source and target are one language, and texts stay as they are."""

    model: ServedModel | None
    source: str
    target: str
    detected: dict[str, Any]
    """The part `detectedLanguage` of the answer, where the source was auto."""


class Service:
    """Translates texts and documents by the models, and by two processes that parse, one for small documents."""

    def __init__(self, config: ServeConfig) -> None:
        self.models, self.limits = Models(config), config.limits
        self.most_lines = max(1, self.limits.waiting_lines // 2)
        """Lines of one request, so that one client alone does not shut out all others."""
        self.small, self.large = (Parser(PARSING_BYTES, PARSING_SECONDS, self.limits.seconds) for _ in range(2))

    async def end(self) -> None:
        for work in (self.models, self.small, self.large):
            await work.end()

    async def parse(self, method: str, documents: list[SentDocument], *arguments: Any) -> Any:
        """The result of a method of DocumentTasks; Failed where there is none."""
        size = sum(len(document.content) for document in documents)
        try:
            return await (self.small if size <= SMALL_BYTES else self.large).call(size, method, documents, *arguments)
        except Failed as failure:
            most = f"{PARSING_SECONDS} seconds or {PARSING_BYTES // 2**20:,} MiB of memory"
            problem = f"it takes more than {most}; divide it" if failure.lost else failure.detail
            raise Failed(400 if failure.lost else failure.status_code, f"file: {problem}") from failure

    async def find_route(self, source: str, target: str, text: str) -> Route:
        """The model for two languages, in capitals or not; Failed where there is none."""
        pairs, codes = self.models.pairs(), {code.lower(): code for code in self.models.languages()}
        for language in [target] if source == "auto" else [source, target]:
            if language.lower() not in codes:
                raise Failed(400, f"{language[:40]} is not supported")
        target, detected = codes[target.lower()], dict[str, Any]()
        if source == "auto":
            sources = [language for language, targets in pairs.items() if target in targets] or list(pairs)
            source, probability = await asyncio.to_thread(choose, text, sources, target)
            detected = {"detectedLanguage": {"confidence": round(100 * probability), "language": source}}
        source = codes[source.lower()]
        if source == target:
            return Route(None, source, target, detected)
        if target not in pairs.get(source, {}):
            names = [f"{language_name(code)} ({code})" for code in (target, source)]
            raise Failed(400, f"{names[0]} is not available as a target language from {names[1]}")
        return Route(pairs[source][target], source, target, detected)

    @contextmanager
    def translating(self, route: Route, lines: list[str], search: Search) -> Iterator[AsyncIterator[Line]]:
        """Have lines translated; those that still wait at the end of the block are forgotten.

        Failed for too many lines, and for one that is too long; while iterating, for one without an answer.
        """
        request, model, most = Request(search, lines, route.source, route.target), route.model, self.limits.characters
        if model is None:
            for line in request.lines:
                line.give(Line([line.text]))
            yield request.answered()
            return
        if len(lines) > self.most_lines:
            raise Failed(413, f"more than {self.most_lines:,} lines; send fewer at once")
        if (longest := max(map(len, lines), default=0)) > most:
            raise Failed(400, f"a line ({longest}) exceeds text limit ({most}); divide it")
        if model.queue.lines + len(lines) > self.limits.waiting_lines:
            raise Failed(503, "too many lines wait for this model; try again later")
        LINES.labels(model.name).inc(len(lines))
        CHARACTERS.labels(model.name).inc(sum(map(len, lines)))
        model.queue.add(request)
        try:
            yield request.answered()
        finally:
            model.queue.remove(request)

    async def translate_lines(self, route: Route, lines: list[str], search: Search) -> list[Line]:
        with self.translating(route, lines, search) as translations:
            return [line async for line in translations]

    async def translate_texts(self, request: TranslateRequest) -> dict[str, Any]:
        """The answer to a request with a text, or with a list of texts, each of whose values is then a list."""
        texts, html = request.texts, request.format == "html"
        documents = [SentDocument(text.encode(), format="html") for text in texts]
        plain = [] if html else [PlainText(text) for text in texts]
        if html:
            rows = [list(enumerate(lines)) for lines, _ in await self.parse("read", documents, self.most_lines)]
        else:
            rows = [list(zip(text.numbers, text.lines, strict=True)) for text in plain]
        lines = [line for row in rows for _, line in row]
        route = await self.find_route(request.source, request.target, "\n".join(lines))
        search = Search(request.alternatives + 1, request.details or html, request.terms)
        translations = iter(await self.translate_lines(route, lines, search))
        translated = [[next(translations) for _ in row] for row in rows]
        variants = [variants_of(row) for row in translated]
        if not html:
            written = [[text.join(lines) for lines in several] for text, several in zip(plain, variants, strict=True)]
        elif route.model:
            contents = await self.parse("write", documents, variants)
            written = [[content.decode() for content in row] for row in contents]
        else:
            written = [[text] for text in texts]
        answers = list[dict[str, Any]]()
        for row, lines_of_text, (best, *others) in zip(rows, translated, written, strict=True):
            answer: dict[str, Any] = {"translatedText": best}
            numbered = [(number, text, line) for (number, text), line in zip(row, lines_of_text, strict=True)]
            if request.alternatives:
                answer["alternatives"] = [text for text in dict.fromkeys(others) if text != best]
            if request.details:
                answer["details"] = [{"line": number, **details_of(text, line)} for number, text, line in numbered]
            if flags := [{"line": number, "flags": line.flags} for number, _, line in numbered if line.flags]:
                answer["flags"] = flags
            answers.append(answer | route.detected)
        if not isinstance(request.q, list):
            return answers[0]
        return {key: [answer.get(key, []) for answer in answers] for key in dict.fromkeys(chain(*answers))}

    async def stream_text(self, request: TranslateRequest) -> AsyncGenerator[dict[str, Any], None]:
        """The parts of a streamed answer: the detected language, then each line of the text, blank ones too, in order.

        Failed before the first part where the request itself is wrong.
        """
        text = "\n".join(request.texts)
        route, document = await self.find_route(request.source, request.target, text), PlainText(text)
        search = Search(details=request.details, glossary=request.terms)
        with self.translating(route, document.lines, search) as translations:
            yield route.detected
            for number, (before, inner, after) in enumerate(document.parts):
                part: dict[str, Any] = {"line": number, "translatedText": before + after}
                if inner:
                    line = await anext(translations)
                    part["translatedText"] = before + line.texts[0] + after
                    part |= {"flags": line.flags} if line.flags else {}
                    part |= {"details": details_of(inner, line)} if request.details else {}
                yield part

    async def translate_document(self, request: FileRequest) -> tuple[str, bytes]:
        """The language and the content of the translation of a file."""
        content, name = await request.file.read(), request.file.filename or ""
        sources = [language for language, targets in self.models.pairs().items() if request.target in targets]
        source = request.source if request.source != "auto" else sources[0] if len(sources) == 1 else ""
        document = SentDocument(content, name, "", source, request.target)
        [(lines, marked_up)] = await self.parse("read", [document], self.most_lines)
        route = await self.find_route(request.source, request.target, "\n".join(lines[:20]))
        search = Search(details=marked_up, glossary=request.terms)
        translations = await self.translate_lines(route, lines, search)
        if route.model:
            [[content]] = await self.parse("write", [document], [variants_of(translations)[:1]])
        return route.target, content
