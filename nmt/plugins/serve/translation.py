"""Translation of texts and documents: finds the model for each text and puts the answers together."""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from nmt.plugins.documents import plain_text
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.fields import FileForm, TranslateForm
from nmt.plugins.serve.languages import Unserved, choose
from nmt.plugins.serve.models import Request, Search, ServedModel
from nmt.plugins.serve.parsing import Line, SentDocument, Written, read_lines, write
from nmt.plugins.serve.processes import Parsers
from nmt.text import did_you_mean, match_language, with_code, word_spans
from nmt.translation import Translated, Translation

AUTO = "auto"


class Route(NamedTuple):
    """How a text is translated."""

    model: ServedModel | None  # None if the text is already in the target language
    source: str
    target: str
    detected: dict[str, Any]  # the answer's `detectedLanguage` if the source is "auto"


class Text(NamedTuple):
    """A text of a request, as lines."""

    lines: list[str]
    text: str
    document: SentDocument | None = None  # if the text is HTML


def in_words(codes: Iterable[str]) -> str:
    """Languages for messages, such as English (en), German (de)."""
    return ", ".join(with_code(code) for code in codes)


def indents_of(text: str) -> list[int]:
    """The number of blanks before each line of a text that is not blank."""
    parts = plain_text(text).parts
    return [part.begin - (text.rfind("\n", 0, part.begin) + 1) for part in parts]


def spans_in_line(text: str, indent: int) -> list[list[int]]:
    """The spans of a text's words in a line that has this many blanks before the text."""
    return [[begin + indent, end + indent] for begin, end in word_spans(text)]


class Service:
    """Translates texts and documents; raises NMTError if a model cannot be served."""

    def __init__(self, config: ServeConfig) -> None:
        self.limits, self.models = config.limits, [ServedModel(name, config) for name in config.run]
        self.pairs: dict[str, dict[str, ServedModel]] = {}
        for model in self.models:
            for target in model.tags:  # of several models for a language pair, the first is used
                self.pairs.setdefault(model.source, {}).setdefault(target, model)
        self.languages = list(dict.fromkeys(chain(self.pairs, *self.pairs.values())))
        self.most_lines = max(
            1, self.limits.waiting_lines // 2
        )  # so that no single request fills the queue
        self.parsers = Parsers(self.limits.seconds / 2)

    def code_of(self, language: str, *preferred: Iterable[str]) -> str:
        """The served code for a client's code, such as pt-BR for pt; raise Failed if there is none."""
        for codes in (*preferred, self.languages):
            if (code := match_language(language, codes)) is not None:
                return code
        name = with_code(language[:40])
        problem = f"{name} is not supported"
        hint = did_you_mean(language, self.languages)
        if hint:
            problem += f"; {hint}"
        if (
            name != language[:40]
        ):  # for what is no language, LibreTranslate's own tests expect only the first words
            problem += f"; supported languages: {in_words(self.languages)}"
        raise Failed(400, problem, languages=self.languages)

    def sources_of(self, target: str) -> list[str]:
        """The languages with a model into a language."""
        return [source for source, targets in self.pairs.items() if target in targets]

    def no_route(self, source: str, target: str, is_detected: bool = False) -> Failed:
        """The failure if no model translates from a language into another one."""
        sources = in_words(self.sources_of(target))
        advice = (
            f"models into {with_code(target)} translate from: {sources}"
            if sources
            else "see /languages"
        )
        if is_detected and source:
            return Failed(
                400,
                f"{with_code(source)} was detected, but no model translates it to {with_code(target)}; {advice}",
            )
        if is_detected:
            return Failed(400, f"no model translates to {with_code(target)}; {advice}")
        # The beginning is LibreTranslate's.
        problem = (
            f"{with_code(target)} is not available as a target language from {with_code(source)}"
        )
        return Failed(400, f"{problem}; {advice}")

    def route_to(self, source: str, target: str) -> Route:
        """The route for two language codes of a client, in any case and form; raise Failed if there is none."""
        source = self.code_of(source, self.pairs)
        targets = self.pairs.get(source, {})
        target = self.code_of(target, targets)
        if source != target and target not in targets:
            raise self.no_route(source, target)
        return Route(None if source == target else targets[target], source, target, {})

    def detected_route(self, text: str, target: str) -> Route:
        """The route for a text in an unknown language; raise Failed if no model translates its language."""
        target = self.code_of(target, chain.from_iterable(self.pairs.values()))
        try:
            source, probability = choose(text, self.sources_of(target), target, self.languages)
        except Unserved as error:
            raise self.no_route(error.language, target, is_detected=True) from error
        detected = {
            "detectedLanguage": {"confidence": round(100 * probability), "language": source}
        }
        return Route(
            self.pairs[source][target] if source != target else None, source, target, detected
        )

    def routes_of(self, source: str, target: str, texts: list[str]) -> list[Route]:
        """The route of each text; with "auto", each text has its own language."""
        if source.lower() != AUTO:
            return [self.route_to(source, target)] * len(texts)
        routes = dict[str, Route]()
        for number, text in enumerate(texts, 1):
            try:
                routes[text] = routes.get(text) or self.detected_route(text, target)
            except Failed as error:
                where = f"text {number}: " if len(texts) > 1 else ""
                raise Failed(error.status_code, f"{where}{error.detail}", **error.more) from error
        return [routes[text] for text in texts]

    async def find_routes(self, source: str, target: str, texts: list[str]) -> list[Route]:
        """As `routes_of`, without delaying other requests while languages are detected."""
        if source.lower() != AUTO:
            return self.routes_of(source, target, texts)
        return await asyncio.to_thread(self.routes_of, source, target, texts)

    def queue(self, model: ServedModel, request: Request) -> None:
        """Queue lines for a model; raise Failed if a line is too long or too many lines are waiting."""
        most = self.limits.characters
        if (longest := max((len(line.text) for line in request.lines), default=0)) > most:
            raise Failed(400, f"a line ({longest}) exceeds text limit ({most}); split the line")
        if model.queue.lines + len(request.lines) > self.limits.waiting_lines:
            raise Failed(503, "too many lines are queued for this model; try again later")
        model.queue.add(request)
        model.schedule()

    async def translate_lines(
        self, rows: list[tuple[Route, list[str]]], *search: Any
    ) -> list[list[Line]]:
        """Translate the lines of texts, each on its route, with further fields of `Search`.

        Failures and cancellation drop the lines still queued.
        """
        if sum(len(lines) for _, lines in rows) > self.most_lines:
            raise Failed(413, f"more than {self.most_lines:,} lines; send fewer lines per request")
        requests = dict[tuple[ServedModel, str], Request]()
        for route, lines in rows:
            if route.model:
                key = route.model, route.target
                request = requests.setdefault(
                    key, Request(Search(route.model.tags[route.target], *search))
                )
                request.extend(lines)
        try:
            for (model, _), request in requests.items():
                self.queue(model, request)
            answers = {
                key: [await answer for answer in request.answers]
                for key, request in requests.items()
            }
        finally:
            for (model, _), request in requests.items():
                model.queue.remove(request)
        iterators = {key: iter(lines) for key, lines in answers.items()}
        return [self.lines_of(route, lines, iterators) for route, lines in rows]

    @staticmethod
    def lines_of(
        route: Route, lines: list[str], answers: dict[tuple[ServedModel, str], Iterator[Line]]
    ) -> list[Line]:
        """The next answers for a text's lines; a text without a model stays as it is."""
        if route.model is None:
            return [[Translated(line)] for line in lines]
        return [next(answers[route.model, route.target]) for _ in lines]

    async def read_text(self, text: str, is_html: bool, client: str) -> Text:
        if not is_html:
            return Text(plain_text(text).lines, text)
        document = SentDocument(text.encode(), "q.html")
        lines, _ = await self.parsers.run(client, read_lines, document, self.most_lines)
        return Text(lines, text, document)

    async def translate_texts(self, form: TranslateForm, client: str) -> dict[str, Any]:
        """Answer a request; if `q` is a list, each value in the answer is a list."""
        is_html = form.format == "html"
        texts = [await self.read_text(text, is_html, client) for text in form.texts]
        routes = await self.find_routes(
            form.source, form.target, ["\n".join(text.lines) for text in texts]
        )
        n_best = 1 if is_html else form.alternatives + 1
        search = 1 if form.prefix else n_best, is_html or form.details, form.prefix, form.rest
        rows = [(route, text.lines) for route, text in zip(routes, texts, strict=True)]
        translations = await self.translate_lines(rows, *search)
        answers = list[dict[str, Any]]()
        for text, route, lines in zip(texts, routes, translations, strict=True):
            ranked = await self.write_text(text, route, lines, n_best, client)
            answer: dict[str, Any] = {"translatedText": ranked[0]}
            if form.alternatives:
                answer["alternatives"] = ranked[1:]
            if form.details:
                answer["details"] = self.details_of(text, route, lines)
            answers.append(answer | route.detected)
        return (
            {key: [answer[key] for answer in answers] for key in answers[0]}
            if form.q == form.texts
            else answers[0]
        )

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
        # A line with fewer translations repeats its last one.
        ranks = ([line[min(rank, len(line) - 1)] for line in lines] for rank in range(n_best))
        return list(dict.fromkeys(map(plain_text(text.text).render, ranks)))

    @staticmethod
    def details_of(text: Text, route: Route, lines: list[Line]) -> list[dict[str, Any]]:
        """The words and their alignment, and the likely failures, of each line.

        The spans of words count from the beginning of the line as sent and as returned, or of HTML,
        from that of its text. Returns [] if the text stays as it is.
        """
        if route.model is None:
            return []
        indents = [0] * len(lines) if text.document else indents_of(text.text)
        details = list[dict[str, Any]]()
        for source, indent, (best, *_) in zip(text.lines, indents, lines, strict=True):
            flags = route.model.flags_of(source, Translation(best.text, 0.0, 0.0))
            details.append(
                {
                    "alignment": best.alignment,
                    "source_words": spans_in_line(source, indent),
                    "target_words": spans_in_line(best.text, indent),
                    "flags": flags,
                }
            )
        return details

    async def translate_document(self, form: FileForm, client: str) -> tuple[str, Written]:
        """The target language and the translated file."""
        source = "" if form.source.lower() == AUTO else self.code_of(form.source, self.pairs)
        target = self.code_of(form.target, self.pairs.get(source, {}), *self.pairs.values())
        document = SentDocument(await form.file.read(), form.file.filename or "", source, target)
        lines, marked_up = await self.parsers.run(client, read_lines, document, self.most_lines)
        [route] = await self.find_routes(form.source, form.target, ["\n".join(lines[:20])])
        [translated] = await self.translate_lines([(route, lines)], 1, marked_up)
        if not route.model:
            return route.target, Written(document.content)
        document = document._replace(source=route.source, target=route.target)
        return route.target, await self.parsers.run(client, write, document, translated)
