"""From a checked request to its answer: which model, which lines, and what clients of LibreTranslate expect."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.models import CHARACTERS, LINES, Models, Request, ServedModel
from nmt.plugins.serve.requests import FileRequest, TranslateRequest
from nmt.plugins.serve.worker import Failed, Line, Search, SentDocument, Worker
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


async def line_of(future: "asyncio.Future[Line | Failed]") -> Line:
    """The translation of a line; Failed where there is none."""
    line = await future
    if isinstance(line, Failed):
        raise line
    return line


def variants_of(lines: list[Line]) -> list[list[TranslatedLine]]:
    """The best translation of a document's lines, and its alternatives; the alignment is known of the best one."""

    def variant(n: int) -> Iterator[TranslatedLine]:
        for line in lines:
            index = min(n, len(line.texts) - 1)
            yield line.texts[index], None if index else line.details.get("alignment")

    return [list(variant(n)) for n in range(max((len(line.texts) for line in lines), default=1))]


def answer_to(
    request: TranslateRequest, numbers: list[int], sources: list[str], lines: list[Line], texts: list[str]
) -> dict[str, Any]:
    """The translation of a text, with what was asked for beside it; `texts`: the whole text in each variant."""
    best, *others = texts
    rows, answer = list(zip(numbers, sources, lines, strict=True)), dict[str, Any](translatedText=best)
    if request.alternatives:
        answer["alternatives"] = [text for text in dict.fromkeys(others) if text != best]
    if request.details:
        answer["details"] = [
            {"line": number, "source": source, "translation": line.texts[0], **line.details}
            for number, source, line in rows
        ]
    if flags := [{"line": number, "flags": line.flags} for number, _, line in rows if line.flags]:
        answer["flags"] = flags
    return answer


@dataclass
class Route:
    """The model for a request."""

    model: ServedModel | None
    """None where source and target are one language, and texts stay as they are."""
    source: str
    target: str
    detected: dict[str, Any] | None = None
    """The answer's detectedLanguage, where the source was auto."""


class Service:
    """Translates texts and documents by the models, and by two processes that parse, one for small documents."""

    def __init__(self, config: ServeConfig) -> None:
        self.models, self.limits = Models(config), config.limits
        self.most_lines = max(1, self.limits.waiting_lines // 2)
        """Lines of one request, so that one client alone does not shut out all others."""
        parsing = "documents", (PARSING_BYTES, PARSING_SECONDS), self.limits.seconds
        self.small, self.large = (Worker(*parsing, disposable=True) for _ in range(2))

    async def end(self) -> None:
        for work in (self.models, self.small, self.large):
            await work.end()

    async def parse(self, method: str, documents: list[SentDocument], *arguments: Any) -> Any:
        """The result of a method of DocumentTasks; Failed where there is none."""
        size = sum(len(document.content) for document in documents)
        try:
            return await (self.small if size <= SMALL_BYTES else self.large).call(method, documents, *arguments)
        except Failed as failure:
            most = f"{PARSING_SECONDS} seconds or {PARSING_BYTES // 2**20:,} MiB of memory"
            problem = f"it takes more than {most}; divide it" if failure.lost else failure.detail
            raise Failed(400 if failure.lost else failure.status_code, f"file: {problem}") from failure

    async def find_route(self, source: str, target: str, text: str) -> Route:
        """The model for two languages, in capitals or not; Failed where there is none."""
        pairs, codes, detected = self.models.pairs(), {code.lower(): code for code in self.models.languages()}, None
        for language in [target] if source == "auto" else [source, target]:
            if language.lower() not in codes:
                raise Failed(400, f"{language[:40]} is not supported")
        target = codes[target.lower()]
        if source == "auto":
            sources = [language for language, targets in pairs.items() if target in targets] or list(pairs)
            source, probability = await asyncio.to_thread(choose, text, sources, target)
            detected = {"confidence": round(100 * probability), "language": source}
        source = codes[source.lower()]
        model = pairs.get(source, {}).get(target) if source != target else None
        if model is None and source != target:
            names = [f"{language_name(code)} ({code})" for code in (target, source)]
            raise Failed(400, f"{names[0]} is not available as a target language from {names[1]}")
        return Route(model, source, target, detected)

    @contextmanager
    def translating(
        self, route: Route, lines: list[str], search: Search
    ) -> Iterator[list["asyncio.Future[Line | Failed]"]]:
        """Have lines translated; those that still wait at the end of the block are forgotten.

        Failed for too many lines, and for one that is too long.
        """
        request, model, most = Request(search, lines, route.source, route.target), route.model, self.limits.characters
        if model is None:
            for line in request.lines:
                line.give(Line([line.text]))
            yield request.answers
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
            yield request.answers
        finally:
            model.queue.remove(request)

    async def translate_lines(self, route: Route, lines: list[str], search: Search) -> list[Line]:
        with self.translating(route, lines, search) as futures:
            return [await line_of(future) for future in futures]

    async def translate_texts(self, request: TranslateRequest) -> dict[str, Any]:
        """The answer to a request with a text, or with a list of texts, each of whose values is then a list."""
        texts, html = request.texts, request.format == "html"
        plain = [] if html else [PlainText(text) for text in texts]
        documents = [SentDocument(text.encode(), format="html") for text in texts]
        if html:
            rows = [lines for lines, _ in await self.parse("read", documents, self.most_lines)]
        else:
            rows = [text.lines for text in plain]
        lines = [line for row in rows for line in row]
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
        numbers = [list(range(len(row))) for row in rows] if html else [text.numbers for text in plain]
        answers = [answer_to(request, *row) for row in zip(numbers, rows, translated, written, strict=True)]
        if route.detected:
            for answer in answers:
                answer["detectedLanguage"] = route.detected
        if not isinstance(request.q, list):
            return answers[0]
        keys = dict.fromkeys(key for answer in answers for key in answer)
        return {key: [answer.get(key, []) for answer in answers] for key in keys}

    async def stream_text(self, request: TranslateRequest) -> AsyncGenerator[dict[str, Any], None]:
        """The parts of a streamed answer: the detected language, then each line of the text, blank ones too, in order.

        Failed before the first part where the request itself is wrong.
        """
        text = "\n".join(request.texts)
        route, document = await self.find_route(request.source, request.target, text), PlainText(text)
        search = Search(details=request.details, glossary=request.terms)
        with self.translating(route, document.lines, search) as futures:
            yield {"detectedLanguage": route.detected} if route.detected else {}
            answers = iter(futures)
            for number, (before, inner, after) in enumerate(document.parts):
                part: dict[str, Any] = {"line": number, "translatedText": before + after}
                if inner:
                    line = await line_of(next(answers))
                    part["translatedText"] = before + line.texts[0] + after
                    part |= {"flags": line.flags} if line.flags else {}
                    if request.details:
                        part["details"] = {"source": inner, "translation": line.texts[0], **line.details}
                yield part

    async def translate_document(self, request: FileRequest, name: str, content: bytes) -> tuple[str, bytes]:
        """The language and the content of the translation of a file."""
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
