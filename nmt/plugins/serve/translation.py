"""From a checked request to its answer: which model, which lines, and what clients of LibreTranslate expect."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from nmt.plugins.serve.command import LimitsConfig
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


@dataclass
class Route:
    """The model for a request."""

    model: ServedModel | None
    """None where source and target are one language, and texts stay as they are."""
    source: str
    target: str
    detected: dict[str, Any] | None = None
    """The answer's detectedLanguage, where the source was auto."""


async def find_route(models: Models, source: str, target: str, text: str) -> Route:
    """The model for two languages, in capitals or not; Failed where there is none."""
    pairs, detected, codes = models.pairs(), None, {code.lower(): code for code in models.languages()}
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


def most_lines(limits: LimitsConfig) -> int:
    """The most lines of one request, so that one client alone does not shut out all others."""
    return max(1, limits.waiting_lines // 2)


@contextmanager
def translating(
    route: Route, lines: list[str], search: Search, limits: LimitsConfig
) -> Iterator[list["asyncio.Future[Line | Failed]"]]:
    """Have lines translated; those that still wait at the end of the block are forgotten.

    Failed for too many lines, and for one that is too long.
    """
    request = Request(search, lines, route.source, route.target)
    if route.model is None:
        for line in request.lines:
            line.give(Line([line.text]))
        yield request.answers
        return
    if len(lines) > most_lines(limits):
        raise Failed(413, f"more than {most_lines(limits):,} lines; send fewer at once")
    if (longest := max(map(len, lines), default=0)) > limits.characters:
        raise Failed(400, f"a line ({longest}) exceeds text limit ({limits.characters}); divide it")
    if route.model.queue.lines + len(lines) > limits.waiting_lines:
        raise Failed(503, "too many lines wait for this model; try again later")
    LINES.labels(route.model.name).inc(len(lines))
    CHARACTERS.labels(route.model.name).inc(sum(map(len, lines)))
    route.model.queue.add(request)
    try:
        yield request.answers
    finally:
        route.model.queue.remove(request)


async def line_of(future: "asyncio.Future[Line | Failed]") -> Line:
    """The translation of a line; Failed where there is none."""
    line = await future
    if isinstance(line, Failed):
        raise line
    return line


async def translate_lines(route: Route, lines: list[str], search: Search, limits: LimitsConfig) -> list[Line]:
    with translating(route, lines, search, limits) as futures:
        return [await line_of(future) for future in futures]


def variants_of(lines: list[Line]) -> list[list[TranslatedLine]]:
    """The best translation of a document's lines, and its alternatives; the alignment is known of the best one."""

    def variant(n: int) -> Iterator[TranslatedLine]:
        for line in lines:
            index = min(n, len(line.texts) - 1)
            yield line.texts[index], None if index else line.details.get("alignment")

    return [list(variant(n)) for n in range(max((len(line.texts) for line in lines), default=1))]


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


class Parsers:
    """The processes that parse, each one task after the other."""

    def __init__(self, seconds: float) -> None:
        limits = (PARSING_BYTES, PARSING_SECONDS)
        self.small, self.large = (Worker("documents", limits, seconds, disposable=True) for _ in range(2))

    async def call(self, method: str, documents: list[SentDocument], *arguments: Any) -> Any:
        """The result of a method of DocumentTasks; Failed where there is none."""
        size = sum(len(document.content) for document in documents)
        try:
            return await (self.small if size <= SMALL_BYTES else self.large).call(method, documents, *arguments)
        except Failed as failure:
            most = f"{PARSING_SECONDS} seconds or {PARSING_BYTES // 2**20:,} MiB of memory"
            problem = f"it takes more than {most}; divide it" if failure.lost else failure.problem
            raise Failed(400 if failure.lost else failure.status, f"file: {problem}") from failure

    async def end(self) -> None:
        await self.small.end()
        await self.large.end()


def answer_to(
    request: TranslateRequest, numbers: list[int], sources: list[str], lines: list[Line], texts: list[str]
) -> dict[str, Any]:
    """The translation of a text, with what was asked for beside it; `texts`: the whole text in each variant."""
    best, *others = texts
    answer: dict[str, Any] = {"translatedText": best}
    if request.alternatives:
        answer["alternatives"] = [text for text in dict.fromkeys(others) if text != best]
    rows = list(zip(numbers, sources, lines, strict=True))
    if request.details:
        answer["details"] = [
            {"line": number, "source": source, "translation": line.texts[0], **line.details}
            for number, source, line in rows
        ]
    if flags := [{"line": number, "flags": line.flags} for number, _, line in rows if line.flags]:
        answer["flags"] = flags
    return answer


async def translate_texts(
    models: Models, request: TranslateRequest, limits: LimitsConfig, parsers: Parsers
) -> dict[str, Any]:
    """The answer to a request with a text, or with a list of texts, each of whose values is then a list."""
    plain = [PlainText(text) for text in request.texts] if request.format == "text" else []
    documents = [SentDocument(text.encode(), format=request.format) for text in request.texts] if not plain else []
    rows = [text.lines for text in plain]
    if documents:
        rows = [lines for lines, _ in await parsers.call("read", documents, most_lines(limits))]
    numbers = [text.numbers for text in plain] or [list(range(len(row))) for row in rows]
    lines = [line for row in rows for line in row]
    route = await find_route(models, request.source, request.target, "\n".join(lines))
    search = Search(request.alternatives + 1, request.details or not plain, request.terms)
    translations = iter(await translate_lines(route, lines, search, limits))
    translated = [[next(translations) for _ in row] for row in rows]
    variants = [variants_of(row) for row in translated]
    if plain:
        written = [[text.join(row) for row in own] for text, own in zip(plain, variants, strict=True)]
    elif route.model:
        contents = await parsers.call("write", documents, variants)
        written = [[content.decode() for content in row] for row in contents]
    else:
        written = [[text] for text in request.texts]
    answers = [answer_to(request, *row) for row in zip(numbers, rows, translated, written, strict=True)]
    if route.detected:
        for answer in answers:
            answer["detectedLanguage"] = route.detected
    if not isinstance(request.q, list):
        return answers[0]
    keys = dict.fromkeys(key for answer in answers for key in answer)
    return {key: [answer.get(key, []) for answer in answers] for key in keys}


async def stream_text(
    models: Models, request: TranslateRequest, limits: LimitsConfig
) -> AsyncGenerator[dict[str, Any], None]:
    """The parts of a streamed answer: the detected language, then each line of the text, blank ones too, in order.

    Failed before the first part where the request itself is wrong.
    """
    text = "\n".join(request.texts)
    route, document = await find_route(models, request.source, request.target, text), PlainText(text)
    search = Search(details=request.details, glossary=request.terms)
    with translating(route, document.lines, search, limits) as futures:
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


async def translate_document(
    models: Models, request: FileRequest, name: str, content: bytes, limits: LimitsConfig, parsers: Parsers
) -> tuple[str, bytes]:
    """The language and the content of the translation of a file."""
    sources = [language for language, targets in models.pairs().items() if request.target in targets]
    source = request.source if request.source != "auto" else sources[0] if len(sources) == 1 else ""
    document = SentDocument(content, name, "", source, request.target)
    [(lines, marked_up)] = await parsers.call("read", [document], most_lines(limits))
    route = await find_route(models, request.source, request.target, "\n".join(lines[:20]))
    search = Search(details=marked_up, glossary=request.terms)
    translations = await translate_lines(route, lines, search, limits)
    if route.model:
        [[content]] = await parsers.call("write", [document], [variants_of(translations)[:1]])
    return route.target, content
