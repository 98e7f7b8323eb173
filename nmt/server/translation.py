"""From a request to its answer: which model, which lines, and what clients of LibreTranslate expect."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException

from nmt.documents import Document, PlainText, Translated, read_document
from nmt.server.detect import detect_among
from nmt.server.model import ServedModel
from nmt.server.models import Models
from nmt.server.requests import FileRequest, TranslateRequest
from nmt.server.tasks import Failure, Line, Search
from nmt.server.waiting import Request


@dataclass
class Route:
    """The model for a request."""

    model: ServedModel | None
    """None where source and target are one language, and texts stay as they are."""
    source: str
    target: str
    detected: dict[str, Any] | None = None
    """The answer's detectedLanguage, where the source was auto."""


def find_route(models: Models, source: str, target: str, text: str) -> Route:
    """The model for two languages; HTTPException where there is none."""
    pairs, detected = models.pairs(), None
    if source == "auto":
        able = [language for language, targets in pairs.items() if target in targets] or list(pairs)
        source, probability = detect_among(text, able)
        detected = {"confidence": round(100 * probability), "language": source}
    targets = {language for own in pairs.values() for language in own}
    for language, known in ((source, targets | set(pairs)), (target, targets | {source})):
        if language not in known:
            raise HTTPException(400, f"{language[:40]} is not supported; {', '.join(sorted(known))} are")
    if source == target:
        return Route(None, source, target, detected)
    model = pairs.get(source, {}).get(target)
    if model is None:
        raise HTTPException(400, f"{target} is not available as a target language from {source}")
    return Route(model, source, target, detected)


def failed(failure: Failure) -> HTTPException:
    """The answer to a request that failed: 503 if it may succeed later, else 400."""
    if failure.broken:
        return HTTPException(503, failure.problem, {"Retry-After": "1"})
    return HTTPException(400, failure.problem)


@contextmanager
def waiting(
    route: Route, lines: list[str], search: Search, most: int
) -> Iterator[list["asyncio.Future[Line | Failure]"]]:
    """Have lines translated; what still waits at the end of the block is forgotten. HTTPException if too many wait."""
    if route.model is None:
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in lines]
        for future, line in zip(futures, lines, strict=True):
            future.set_result(Line([line]))
        yield futures
        return
    queue = route.model.waiting
    if len(lines) > most // 2:  # so that one client alone does not shut out all others
        raise HTTPException(413, f"{len(lines):,} lines; send at most {most // 2:,} at once")
    if queue.lines + len(lines) > most:
        raise HTTPException(503, "too many lines wait for this model; try again later", {"Retry-After": "5"})
    route.model.metrics.lines.labels(route.model.name).inc(len(lines))
    route.model.metrics.characters.labels(route.model.name).inc(sum(map(len, lines)))
    request = Request(search, lines, route.source, route.target)
    if lines:
        route.model.add(request)
    try:
        yield request.answers
    finally:
        queue.remove(request)


async def translate_lines(route: Route, lines: list[str], search: Search, most: int) -> list[Line]:
    """The translations of lines; HTTPException for the first that failed."""
    with waiting(route, lines, search, most) as futures:
        found = []
        for future in futures:
            answer = await future
            if isinstance(answer, Failure):
                raise failed(answer)
            found.append(answer)
        return found


def nth(lines: list[Line], n: int) -> list[Translated]:
    """The n-th translation of each line, or its last; the alignment is known of the first."""
    chosen = [min(n, len(line.texts) - 1) for line in lines]
    return [
        Translated(line.texts[which], None if which else line.words.get("alignment"))
        for line, which in zip(lines, chosen, strict=True)
    ]


def details_of(document: Document, lines: list[Line]) -> list[dict[str, Any]]:
    """What is known of each line of a text that was translated; of HTML, of each sentence."""
    return [
        {"line": number, "source": source, "translation": line.texts[0], **line.words}
        for number, source, line in zip(numbers(document), document.lines, lines, strict=True)
    ]


def numbers(document: Document) -> Iterable[int]:
    """The number of each line that is translated."""
    return document.numbers() if isinstance(document, PlainText) else range(len(document.lines))


def answer_to(document: Document, lines: list[Line], asked: TranslateRequest) -> dict[str, Any]:
    """The translation of a text, with what was asked for beside it."""
    best = document.join(nth(lines, 0)).decode()
    found: dict[str, Any] = {"translatedText": best}
    if asked.alternatives:
        most = max((len(line.texts) for line in lines), default=1)
        others = dict.fromkeys(document.join(nth(lines, n)).decode() for n in range(1, most))
        found["alternatives"] = [text for text in others if text != best]
    if asked.details:
        found["details"] = details_of(document, lines)
    # Clients of LibreTranslate pass over keys that they do not know.
    flags = [{"line": n, "flags": line.flags} for n, line in zip(numbers(document), lines, strict=True) if line.flags]
    return found | {"flags": flags} if flags else found


async def translate_texts(models: Models, asked: TranslateRequest, most: int) -> dict[str, Any]:
    """The answer to a request with a text, or with a list of texts, each of whose values is then a list."""
    texts = asked.q if isinstance(asked.q, list) else [asked.q]
    plain = asked.format == "text"
    documents = [PlainText(text) if plain else read_document(asked.format, text.encode()) for text in texts]
    lines = [line for document in documents for line in document.lines]
    route = find_route(models, asked.source, asked.target, "\n".join(lines))
    search = Search(asked.alternatives + 1, asked.details or not plain, asked.terms)
    found = iter(await translate_lines(route, lines, search, most))
    answers = [answer_to(each, [next(found) for _ in each.lines], asked) for each in documents]
    if route.detected:
        for answer in answers:
            answer["detectedLanguage"] = route.detected
    if not isinstance(asked.q, list):
        return answers[0]
    keys = dict.fromkeys(key for answer in answers for key in answer) or ["translatedText"]
    return {key: [answer.get(key, []) for answer in answers] for key in keys}


async def stream_text(
    models: Models, asked: TranslateRequest, text: str, most: int
) -> AsyncGenerator[dict[str, Any], None]:
    """The parts of a streamed answer: the detected language, then each line of the text, blank ones too, in order.

    HTTPException before the first part where the request itself is wrong.
    """
    route, document = find_route(models, asked.source, asked.target, text), PlainText(text)
    with waiting(route, document.lines, Search(1, asked.details, glossary=asked.terms), most) as futures:
        yield {"detectedLanguage": route.detected} if route.detected else {}
        answers = iter(zip(document.lines, futures, strict=True))
        for number, (before, own, after) in enumerate(document.parts):
            part: dict[str, Any] = {"line": number, "translatedText": before + after}
            if own:
                source, future = next(answers)
                answer = await future
                if isinstance(answer, Failure):
                    raise failed(answer)
                part["translatedText"] = before + answer.texts[0] + after
                part |= {"flags": answer.flags} if answer.flags else {}
                if asked.details:
                    part["details"] = {"source": source, "translation": answer.texts[0], **answer.words}
            yield part


async def translate_document(route: Route, document: Document, asked: FileRequest, most: int) -> bytes:
    """The translation of a file."""
    formatted = not isinstance(document, PlainText)
    search = Search(details=formatted, glossary=asked.terms)
    lines = await translate_lines(route, document.lines, search, most)
    return await asyncio.to_thread(document.join, nth(lines, 0))
