"""From a request to its answer: which model, which lines, and what clients of LibreTranslate expect."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from fastapi import HTTPException

from nmt.plugins.documents import PlainText, Translated
from nmt.plugins.serve.config import LimitsConfig
from nmt.plugins.serve.detect import choose, in_thread
from nmt.plugins.serve.files import Parsers
from nmt.plugins.serve.model import ServedModel
from nmt.plugins.serve.models import Models
from nmt.plugins.serve.requests import FileRequest, TranslateRequest
from nmt.plugins.serve.tasks import Failure, Line, Lines, Read, Search, SentDocument, Write
from nmt.plugins.serve.waiting import Request
from nmt.text import language_name


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
    """The model for two languages, in capitals or not; HTTPException where there is none."""
    pairs, detected, codes = models.pairs(), None, {code.lower(): code for code in models.languages()}
    for language in [target] if source == "auto" else [source, target]:
        if language.lower() not in codes:
            raise HTTPException(400, f"{language[:40]} is not supported")
    target = codes[target.lower()]
    if source == "auto":
        able = [language for language, targets in pairs.items() if target in targets] or list(pairs)
        source, probability = await in_thread(choose, text, able, target)
        detected = {"confidence": round(100 * probability), "language": source}
    source = codes[source.lower()]
    if source == target:
        return Route(None, source, target, detected)
    model = pairs.get(source, {}).get(target)
    if model is None:
        names = [f"{language_name(code)} ({code})" for code in (target, source)]
        raise HTTPException(400, f"{names[0]} is not available as a target language from {names[1]}")
    return Route(model, source, target, detected)


def failed(failure: Failure) -> HTTPException:
    """The answer to a request that failed: 503 if it may succeed later, else 400."""
    if failure.broken:
        return HTTPException(503, failure.problem, {"Retry-After": "1"})
    return HTTPException(400, failure.problem)


def most_lines(limits: LimitsConfig) -> int:
    """The most lines of one request, so that one client alone does not shut out all others."""
    return max(1, limits.waiting_lines // 2)


@contextmanager
def waiting(
    route: Route, lines: list[str], search: Search, limits: LimitsConfig
) -> Iterator[list["asyncio.Future[Line | Failure]"]]:
    """Have lines translated; what still waits at the end of the block is forgotten.

    HTTPException for too many lines, and for one that is too long.
    """
    if route.model is None:
        loop = asyncio.get_running_loop()
        futures = [loop.create_future() for _ in lines]
        for future, line in zip(futures, lines, strict=True):
            future.set_result(Line([line]))
        yield futures
        return
    queue, most = route.model.waiting, limits.waiting_lines
    if len(lines) > most_lines(limits):
        raise HTTPException(413, f"more than {most_lines(limits):,} lines; send fewer at once")
    if (longest := max(map(len, lines), default=0)) > limits.characters:
        raise HTTPException(400, f"a line ({longest}) exceeds text limit ({limits.characters}); divide it")
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


async def translate_lines(route: Route, lines: list[str], search: Search, limits: LimitsConfig) -> list[Line]:
    """The translations of lines; HTTPException for the first that failed."""
    with waiting(route, lines, search, limits) as futures:
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


def variants_of(lines: list[Line]) -> list[list[Translated]]:
    """The best translation of a document's lines, and its alternatives."""
    return [nth(lines, n) for n in range(max((len(line.texts) for line in lines), default=1))]


def answer_to(
    asked: TranslateRequest, numbers: list[int], sources: list[str], lines: list[Line], texts: list[str]
) -> dict[str, Any]:
    """The translation of a text, with what was asked for beside it; `texts`: the whole text in each variant."""
    best, *others = texts
    found: dict[str, Any] = {"translatedText": best}
    if asked.alternatives:
        found["alternatives"] = [text for text in dict.fromkeys(others) if text != best]
    rows = list(zip(numbers, sources, lines, strict=True))
    if asked.details:
        found["details"] = [
            {"line": number, "source": source, "translation": line.texts[0], **line.words}
            for number, source, line in rows
        ]
    # Clients of LibreTranslate pass over keys that they do not know.
    flags = [{"line": number, "flags": line.flags} for number, _, line in rows if line.flags]
    return found | {"flags": flags} if flags else found


async def translate_texts(
    models: Models, asked: TranslateRequest, limits: LimitsConfig, parsers: Parsers
) -> dict[str, Any]:
    """The answer to a request with a text, or with a list of texts, each of whose values is then a list."""
    texts = asked.q if isinstance(asked.q, list) else [asked.q]
    plain = [PlainText(text) for text in texts] if asked.format == "text" else []
    sent = [SentDocument(text.encode(), format=asked.format) for text in texts] if not plain else []
    rows = [document.lines for document in plain]
    if sent:
        rows = [row.lines for row in await parsers.answer(Read(sent, most_lines(limits)))]
    lines = [line for row in rows for line in row]
    route = await find_route(models, asked.source, asked.target, "\n".join(lines))
    search = Search(asked.alternatives + 1, asked.details or not plain, asked.terms)
    found = iter(await translate_lines(route, lines, search, limits))
    translations = [[next(found) for _ in row] for row in rows]
    variants = [variants_of(row) for row in translations]
    if sent:
        written = await parsers.answer(Write(sent, variants)) if route.model else [[each.content] for each in sent]
    else:
        written = [[document.join(row) for row in own] for document, own in zip(plain, variants, strict=True)]
    numbers = [document.numbers() for document in plain] or [list(range(len(row))) for row in rows]
    answers = [
        answer_to(asked, number, row, own, [text.decode() for text in content])
        for number, row, own, content in zip(numbers, rows, translations, written, strict=True)
    ]
    if route.detected:
        for answer in answers:
            answer["detectedLanguage"] = route.detected
    if not isinstance(asked.q, list):
        return answers[0]
    keys = dict.fromkeys(key for answer in answers for key in answer) or ["translatedText"]
    return {key: [answer.get(key, []) for answer in answers] for key in keys}


async def stream_text(
    models: Models, asked: TranslateRequest, text: str, limits: LimitsConfig
) -> AsyncGenerator[dict[str, Any], None]:
    """The parts of a streamed answer: the detected language, then each line of the text, blank ones too, in order.

    HTTPException before the first part where the request itself is wrong.
    """
    route, document = await find_route(models, asked.source, asked.target, text), PlainText(text)
    with waiting(route, document.lines, Search(1, asked.details, glossary=asked.terms), limits) as futures:
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


async def translate_document(
    models: Models, asked: FileRequest, name: str, content: bytes, limits: LimitsConfig, parsers: Parsers
) -> tuple[str, bytes]:
    """The language and the content of the translation of a file."""
    able = [language for language, targets in models.pairs().items() if asked.target in targets]
    source = asked.source if asked.source != "auto" else able[0] if len(able) == 1 else ""
    sent = SentDocument(content, name, "", source, asked.target)
    document: Lines = (await parsers.answer(Read([sent], most_lines(limits))))[0]
    route = await find_route(models, asked.source, asked.target, "\n".join(document.lines[:20]))
    search = Search(details=document.marked_up, glossary=asked.terms)
    lines = await translate_lines(route, document.lines, search, limits)
    if route.model:
        content = (await parsers.answer(Write([sent], [[nth(lines, 0)]])))[0][0]
    return route.target, content
