"""From a request's bytes to its answer: keys, fields, languages, and translation of texts and documents."""

import asyncio
import fcntl
import hashlib
import os
import re
from collections.abc import Callable
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from anyio import BrokenWorkerProcess, CapacityLimiter, to_process
from babel import Locale

from nmt.config import NMTError, require
from nmt.files import printable, read_text
from nmt.plugins.documents import Translated, plain_text
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.failures import Failed, log_client
from nmt.plugins.serve.fields import FileForm, TranslateForm
from nmt.plugins.serve.models import Request, Search, ServedModel
from nmt.plugins.serve.parsing import Line, SentDocument, read_lines, write
from nmt.translation import Translation

T = TypeVar("T")
Route = tuple[ServedModel | None, str, dict[str, Any]]
"""The model (None if both languages are the same), the target, and `detectedLanguage` if the source is "auto"."""
KEY_LINE = re.compile(r"^(\S+)\s+([0-9a-f]{64})\b", re.MULTILINE)
MOST_CHARACTERS = 2000  # a text's language is detected from at most this many leading characters
SURE = 0.8  # text stays untranslated if its probability of being in the target language is higher than this
PARSING_LIMITS = 2**30, 10  # bytes of memory and seconds of CPU time to parse or write a document


def read_keys(path: Path) -> dict[str, str]:
    """Map the SHA-256 of each API key to the key's name; skip lines that lack either."""
    return {line[2]: line[1] for line in KEY_LINE.finditer(read_text(path))}


def name_of_key(path: Path, key: str) -> str | None:
    """A key's name; None if the key is unknown or the file cannot be read."""
    # Keys are long and random, so unlike passwords, they do not need a slow hash.
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    try:
        return read_keys(path).get(digest)
    except NMTError as error:
        log_client("all API keys are rejected", f": {error}")
        return None


def collect(path: str | None, *cells: str) -> None:
    """Append a row to a TSV file, as other servers may do at the same time; raise NMTError if that is impossible."""
    row = "\t".join(printable(" ".join(cell.split())) for cell in cells) + "\n" * bool(cells)
    try:
        with Path(path or os.devnull).open("ab") as file:  # the row is written at once, when the block ends
            fcntl.flock(file, fcntl.LOCK_EX)
            require(file.tell() < 2**28, f"suggestions={path}: has more than 256 MiB; pass another file")
            file.write(row.encode())
    except OSError as error:
        raise NMTError(f"suggestions={path}: {error.strerror}; pass a file that the server can write") from error


def language_name(code: str) -> str:
    """A language's English name, such as German for de; if unknown, its code."""
    return str(Locale("en").languages.get(code.replace("-", "_"), code))


@cache
def identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(Path(MODEL_FILE), norm_probs=True)


def detect(text: str, languages: list[str]) -> list[tuple[str, float]]:
    """Rank the detectable languages among `languages` by probability; return [] if the text has no letters."""
    text = text[:MOST_CHARACTERS]
    if not any(map(str.isalpha, text)):
        return []
    codes = {code.replace("_", "-").partition("-")[0].lower(): code for code in reversed(languages)}
    ranked = ((str(language), float(probability)) for language, probability in identifier().rank(text))
    return [(codes[language], probability) for language, probability in ranked if language in codes]


def choose(text: str, sources: list[str], target: str) -> tuple[str, float]:
    """A text's likeliest source language, or the target language if clearly more probable, and its probability."""
    probabilities = dict(detect(text, [*sources, target]))
    source = max(sources, key=lambda language: probabilities.get(language, 0.0))
    of_target, of_source = probabilities.get(target, 0.0), probabilities.get(source, 0.0)
    return (target, of_target) if of_target > SURE * (of_target + of_source) else (source, of_source)


class Service:
    """Translates texts and documents; raises NMTError if a model cannot be served."""

    def __init__(self, config: ServeConfig) -> None:
        self.limits, self.models = config.limits, [ServedModel(name, config) for name in config.run]
        self.pairs: dict[str, dict[str, ServedModel]] = {}
        for model in self.models:
            for target in model.tags:  # of several models for a language pair, the first is used
                self.pairs.setdefault(model.source, {}).setdefault(target, model)
        self.languages = list(dict.fromkeys(chain(self.pairs, *self.pairs.values())))
        self.most_lines = max(1, self.limits.waiting_lines // 2)  # so that no single request fills the queue
        self.parsing = CapacityLimiter(2)  # a short document need not wait for a long one

    async def parse(self, function: Callable[..., T], document: SentDocument, *arguments: Any) -> T:
        """Run a function on a document in a separate process, which is killed if the client disconnects."""
        arguments = PARSING_LIMITS, document, *arguments
        try:
            return await to_process.run_sync(function, *arguments, cancellable=True, limiter=self.parsing)
        except NMTError as error:
            raise Failed(400, f"file: {error}") from error
        except (BrokenWorkerProcess, MemoryError) as error:
            most = f"{PARSING_LIMITS[0] // 2**20:,} MiB of memory or {PARSING_LIMITS[1]} seconds"
            raise Failed(400, f"file: parsing takes more than {most}; split the file") from error

    async def find_route(self, source: str, target: str, text: str) -> Route:
        """Find the model for two language codes, ignoring case; raise Failed if there is none."""
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
        return None if source == target else self.pairs[source][target], target, detected

    async def translate_lines(self, route: Route, lines: list[str], *search: Any) -> list[Line]:
        """Translate lines, with further fields of `Search`; failures and cancellation drop the lines still queued."""
        (model, target, _), most = route, self.limits.characters
        if model is None:
            return [[Translated(line)] for line in lines]
        if len(lines) > self.most_lines:
            raise Failed(413, f"more than {self.most_lines:,} lines; send fewer lines per request")
        if (longest := max(map(len, lines), default=0)) > most:
            raise Failed(400, f"a line ({longest}) exceeds text limit ({most}); split the line")
        if model.queue.lines + len(lines) > self.limits.waiting_lines:
            raise Failed(503, "too many lines are queued for this model; try again later")
        request = Request(Search(model.tags[target], *search), lines)
        model.queue.add(request)
        model.schedule()
        try:
            return [await answer for answer in request.answers]
        finally:
            model.queue.remove(request)

    async def translate_texts(self, form: TranslateForm) -> dict[str, Any]:
        """Answer a request; if `q` is a list, each value in the answer is a list."""
        html, documents = form.format == "html", [SentDocument(text.encode(), "a.html") for text in form.texts]
        plain = [plain_text(text) for text in form.texts]
        rows = [text.lines for text in plain]
        if html:
            rows = [(await self.parse(read_lines, document, self.most_lines))[0] for document in documents]
        lines = [*chain(*rows)]
        model, _, detected = route = await self.find_route(form.source, form.target, "\n".join(lines))
        n_best = 1 if html else form.alternatives + 1
        search = 1 if form.prefix else n_best, html or form.details, form.prefix, form.rest
        translations = iter(await self.translate_lines(route, lines, *search))
        answers = list[dict[str, Any]]()
        for text, document, row in zip(plain, documents, rows, strict=True):
            translated = [next(translations) for _ in row]
            if html:
                content = await self.parse(write, document, translated) if model else document.content
                ranked = [content.decode()]
            else:  # a line with fewer translations repeats its last one
                ranks = ([line[min(rank, len(line) - 1)] for line in translated] for rank in range(n_best))
                ranked = list(dict.fromkeys(map(text.render, ranks)))
            more: dict[str, Any] = {"alternatives": ranked[1:]} if form.alternatives else {}
            if form.details and model:
                flags = map(model.flags_of, row, [Translation(line[0].text, 0.0, 0.0) for line in translated])
                alignments = [line[0].alignment for line in translated]
                more["details"] = [{"alignment": a, "flags": f} for a, f in zip(alignments, flags, strict=True)]
            answers.append({"translatedText": ranked[0], **more, **detected})
        return {key: [answer[key] for answer in answers] for key in answers[0]} if form.q == form.texts else answers[0]

    async def translate_document(self, form: FileForm) -> tuple[str, bytes]:
        """The target language and the translated file."""
        source = "" if form.source == "auto" else form.source
        document = SentDocument(await form.file.read(), form.file.filename or "", source, form.target)
        lines, marked_up = await self.parse(read_lines, document, self.most_lines)
        model, target, _ = route = await self.find_route(form.source, form.target, "\n".join(lines[:20]))
        translated = await self.translate_lines(route, lines, 1, marked_up)
        return target, await self.parse(write, document, translated) if model else document.content
