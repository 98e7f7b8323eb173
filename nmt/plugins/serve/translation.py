"""Translation of clients' texts and documents."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from nmt.plugins.documents import plain_text
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.forms import FileForm, TranslateForm
from nmt.plugins.serve.models import ServedModel
from nmt.plugins.serve.parsing import Line, SentDocument, Written, read_lines, write
from nmt.plugins.serve.processes import Parsers
from nmt.plugins.serve.queues import QueuedRequest, Search
from nmt.plugins.serve.routes import AUTO, Route, Routes
from nmt.text import word_spans
from nmt.translation import EXACT_MATCH, Direction, Translated, Translation

DETECTED_LINES = 20
"""The number of lines of a document from which its language is detected."""


ModelAndDirection = tuple[ServedModel, Direction]


class Text(NamedTuple):
    """A text of a request, as lines."""

    lines: list[str]
    text: str
    document: SentDocument | None = None
    """The text as a document if it is HTML; otherwise None."""


@dataclass(frozen=True)
class SearchOptions:
    """The search options for all lines of a request: the fields of `Search` but the languages."""

    n_best: int = 1
    aligned: bool = False
    prefix: str | None = None
    rest: str = ""

    def search(self, route: Route) -> Search:
        return Search(route.direction, self.n_best, self.aligned, self.prefix, self.rest)


class Service:
    """Translates texts and documents; raises NMTError if a model cannot be served."""

    def __init__(self, config: ServeConfig) -> None:
        self.limits = config.limits
        self.options = config.document
        self.models = [ServedModel(name, config) for name in config.run]
        self.routes = Routes(self.models)
        # So that no single request fills the queue.
        self.most_lines = max(1, self.limits.waiting_lines // 2)
        self.parsers = Parsers(self.limits.seconds / 2)

    def replace(self, old: ServedModel, new: ServedModel) -> None:
        """Serve later requests with another model for the same languages."""
        self.models = [new if model is old else model for model in self.models]
        # Requests that have begun keep the routes, and thus the models, that they have found.
        self.routes = Routes(self.models)

    def queue(self, model: ServedModel, request: QueuedRequest) -> None:
        """Queue lines for a model.

        Raises Failed if a line is too long or too many lines are waiting.
        """
        most = self.limits.characters
        longest = max((len(line.text) for line in request.lines), default=0)
        # Files, too: the limit on the text of a request does not count the lines of files.
        if longest > most:
            raise Failed(400, f"a line ({longest}) exceeds text limit ({most}); split the line")
        if model.queue.lines + len(request.lines) > self.limits.waiting_lines:
            raise Failed(503, "too many lines are queued for this model; try again later")
        model.queue.add(request)
        model.schedule()

    async def translate_lines(
        self,
        routes: Sequence[Route],
        texts: Sequence[list[str]],
        options: SearchOptions,
    ) -> list[list[Line]]:
        """Translate the lines of texts, each on its route.

        Failures and cancellation drop the lines still queued.
        """
        if sum(map(len, texts)) > self.most_lines:
            raise Failed(413, f"more than {self.most_lines:,} lines; send fewer lines per request")
        # All lines with the same model and languages become one request. Otherwise, a client with a
        # list of texts would take more turns than a client with one long text.
        requests = requests_of(routes, texts, options)
        answers = dict[ModelAndDirection, Iterator[Line]]()
        try:
            for (model, _), request in requests.items():
                # All are queued before any is awaited, so that several models translate at the same
                # time.
                self.queue(model, request)
            for key, request in requests.items():
                answers[key] = iter([await answer for answer in request.answers])
        finally:
            for (model, _), request in requests.items():
                # Also after success, when there is nothing left to remove.
                model.queue.remove(request)
        # In the order of the texts, each takes its lines from the answers of its request.
        translations = list[list[Line]]()
        for route, lines in zip(routes, texts, strict=True):
            if route.model is None:  # the text stays as it is
                translations.append([[Translated(line)] for line in lines])
            else:
                next_answers = answers[route.model, route.direction]
                translations.append([next(next_answers) for _ in lines])
        return translations

    async def read_text(self, text: str, is_html: bool, client: str) -> Text:
        if not is_html:
            return Text(plain_text(text).lines, text)
        # A page can take long to parse, so it is parsed like a file.
        # The suffix selects the format.
        document = SentDocument(text.encode(), "q.html")
        lines, _ = await self.parsers.run(client, read_lines, document, self.most_lines)
        return Text(lines, text, document)

    async def translate_texts(self, form: TranslateForm, client: str) -> dict[str, Any]:
        """Answer a request; for a list of texts, each value in the answer is a list."""
        is_html = form.format == "html"
        texts = [await self.read_text(text, is_html, client) for text in form.texts]
        # Languages are detected in the text alone: the tags of HTML are English words.
        contents = ["\n".join(text.lines) for text in texts]
        routes = await self.routes.find(form.source, form.target, contents)
        lines_of_texts = [text.lines for text in texts]
        translations = await self.translate_lines(routes, lines_of_texts, options_of(form))
        n_best = number_of_translations(form)
        answers = list[dict[str, Any]]()
        for text, route, lines in zip(texts, routes, translations, strict=True):
            ranked = await self.write_text(text, route, lines, n_best, client)
            answer: dict[str, Any] = {form.key_of_answer: ranked[0]}
            if form.alternatives:
                answer["alternatives"] = ranked[1:]
            if form.details:
                answer["details"] = details_of(text, route, lines)
            answers.append(answer | route.detected)
        if not answers:
            return {form.key_of_answer: []}
        return merged(answers) if form.is_list else answers[0]

    async def write_text(
        self, text: Text, route: Route, lines: list[Line], n_best: int, client: str
    ) -> list[str]:
        """The different translations of a text, best first."""
        if route.model is None:
            return [text.text]
        if text.document:
            document = text.document._replace(source=route.source, target=route.target)
            written = await self.parsers.run(client, write, document, lines)
            return [written.content.decode()]
        document_of_text = plain_text(text.text)
        translations = list[str]()
        for rank in range(n_best):
            # A line with fewer translations repeats its last one.
            of_rank = [line[min(rank, len(line) - 1)] for line in lines]
            translations.append(document_of_text.render(of_rank))
        # Texts whose lines have no alternatives are equal.
        return list(dict.fromkeys(translations))

    async def translate_document(self, form: FileForm, client: str) -> tuple[str, Written]:
        """The target language and the translated file."""
        code_of = self.routes.code_of
        pairs = self.routes.pairs
        source = "" if form.source.lower() == AUTO else code_of(form.source, pairs)
        target = code_of(form.target, pairs.get(source, {}), *pairs.values())
        content = await form.file.read()
        name = form.file.filename or ""
        document = SentDocument(content, name, source, target, form.format, self.options)
        lines, marked_up = await self.parsers.run(client, read_lines, document, self.most_lines)
        # More lines would not help: detection reads a limited number of characters.
        beginning = "\n".join(lines[:DETECTED_LINES])
        [route] = await self.routes.find(form.source, form.target, [beginning])
        options = SearchOptions(aligned=marked_up)
        [translated] = await self.translate_lines([route], [lines], options)
        if not route.model:  # the document is already in the target language
            return route.target, Written(content)
        # Detection has found the source, and the codes are now those of the model.
        document = document._replace(source=route.source, target=route.target)
        written = await self.parsers.run(client, write, document, translated)
        return route.target, written


def requests_of(
    routes: Sequence[Route],
    texts: Sequence[list[str]],
    options: SearchOptions,
) -> dict[ModelAndDirection, QueuedRequest]:
    """The requests for texts: one for all lines with the same model and languages."""
    requests = dict[ModelAndDirection, QueuedRequest]()
    for route, lines in zip(routes, texts, strict=True):
        if route.model:
            key = route.model, route.direction
            if key not in requests:
                requests[key] = QueuedRequest(options.search(route))
            requests[key].extend(lines)
    return requests


def number_of_translations(form: TranslateForm) -> int:
    """The number of translations of each text that a client wants; HTML has no alternatives."""
    return 1 if form.format == "html" else form.alternatives + 1


def merged(answers: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One answer whose values are lists, with a value for each text."""
    merged_answer = dict[str, list[Any]]()
    for answer in answers:
        for key, value in answer.items():
            merged_answer.setdefault(key, []).append(value)
    return merged_answer


def options_of(form: TranslateForm) -> SearchOptions:
    """The search settings for a request."""
    # With a prefix, `OtherWordSearch` finds the alternatives; it needs only the best hypothesis of
    # each search.
    n_best = 1 if form.prefix else number_of_translations(form)
    # Markup is put around the words that are aligned to those inside it.
    aligned = form.format == "html" or form.details
    return SearchOptions(n_best, aligned, form.prefix, form.rest)


def details_of(text: Text, route: Route, lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The words and their alignment, likely failures, and translation memory of each line.

    The spans of words count from the beginning of the line as sent and as returned, or of HTML,
    from that of its text. Returns [] if the text stays as it is.
    """
    if route.model is None:
        return []
    indents = [0] * len(lines) if text.document else indents_of(text.text)
    details = list[dict[str, Any]]()
    flags_of = route.model.flags_of(route.direction)
    for source, indent, translations in zip(text.lines, indents, lines, strict=True):
        best = translations[0]
        details_of_line: dict[str, Any] = {
            "alignment": alignment_of(best),
            "source_words": spans_in_line(source, indent),
            "target_words": spans_in_line(best.text, indent),
            "flags": flags_of(source, Translation(best.text, 0.0, 0.0)),
        }
        # Only models that are calibrated have probabilities.
        if best.probability is not None:
            details_of_line["probability"] = best.probability
            details_of_line["probabilities"] = [line.probability for line in translations]
        if best.memory:
            details_of_line["memory"] = best.memory
        details.append(details_of_line)
    return details


def alignment_of(best: Translated) -> Sequence[tuple[int, int]]:
    """The pairs of words that a model has aligned."""
    # The words of a line from a translation memory are paired only by their places, for markup.
    is_from_memory = best.memory is not None and best.memory["match"] == EXACT_MATCH
    return [] if is_from_memory else best.alignment or []


def indents_of(text: str) -> list[int]:
    """The number of blanks before each line of a text that is not blank."""
    indents = list[int]()
    for part in plain_text(text).parts:
        begin_of_line = text.rfind("\n", 0, part.begin) + 1
        indents.append(part.begin - begin_of_line)
    return indents


def spans_in_line(text: str, indent: int) -> list[list[int]]:
    """The spans of a text's words in a line that has this many blanks before the text."""
    return [[begin + indent, end + indent] for begin, end in word_spans(text)]
