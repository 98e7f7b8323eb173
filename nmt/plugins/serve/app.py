"""The application: LibreTranslate's routes (https://docs.libretranslate.com/api) and a web page."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from nmt.config import shown
from nmt.flags import is_placeholder_wrong
from nmt.plugins.serve.admission import Admission
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.detection import detect
from nmt.plugins.serve.downloads import Downloads, attachment, name_of_token, safe_name
from nmt.plugins.serve.facts import facts_of_languages, settings_of
from nmt.plugins.serve.failures import Failed
from nmt.plugins.serve.forms import FileForm, SuggestForm, TextForm, TranslateForm
from nmt.plugins.serve.guard import Guard, handle_error
from nmt.plugins.serve.reloading import Reloader
from nmt.plugins.serve.suggestions import collect, is_blank, pairs_of_lines
from nmt.plugins.serve.translation import Service
from nmt.text import match_language
from nmt.translation import warn

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
PAGE = Path(__file__).parent / "page"
MOST_DETECTED = 3
"""The maximum number of languages in an answer to /detect."""


class Server:
    """The routes and their shared state.

    Raises NMTError if the models, glossaries or keys cannot be used.
    """

    def __init__(self, config: ServeConfig) -> None:
        self.admission = Admission(config)
        self.downloads = Downloads()
        self.suggestions = config.suggestions
        # Fails now if the file cannot be written. Creates it before the memories are read, because
        # it may be one of them.
        collect(self.suggestions)
        # Reads the descriptions of models and the glossaries, so that mistakes end the start at
        # once; `load` reads the weights later.
        self.service = Service(config)

    async def translate(self, request: Request) -> Response:
        form = await self.admission.admit(request, TranslateForm)
        work = self.service.translate_texts(form, request.state.client)
        return JSONResponse(await unless_gone(request, work))

    async def translate_file(self, request: Request) -> Response:
        # Reserved before the body is read, because the body is what takes the memory.
        with self.admission.room_for_upload(request):
            form = await self.admission.admit(request, FileForm)
            work = self.service.translate_document(form, request.state.client)
            target, written = await unless_gone(request, work)
        # The name goes into a header and an address.
        name = safe_name(form.file.filename or "", target)
        token = self.downloads.keep(name, written.content)
        # Built from the Host header and the prefix of a proxy, so the link also works behind one.
        url = request.url_for("download", token=quote(token))
        answer = {"translatedFileUrl": str(url)}
        if written.notice:
            answer["notice"] = written.notice
        return JSONResponse(answer)

    async def download(self, request: Request) -> Response:
        token = request.path_params["token"]
        content = self.downloads.files.get(token)
        if content is None:
            raise Failed(404, "the file does not exist or has expired; translate it again")
        headers = {"Content-Disposition": attachment(name_of_token(token))}
        return Response(content, media_type="application/octet-stream", headers=headers)

    async def suggest(self, request: Request) -> Response:
        form = await self.admission.admit(request, SuggestForm)
        if not self.suggestions:
            advice = "to collect them, start the server with suggestions=FILE"
            raise Failed(403, f"suggestions are disabled; {advice}")
        pairs = suggested_pairs(form)
        text = "\n".join(form.texts)
        # A row names the detected language instead of "auto", so that rows can be selected by
        # language.
        [route] = await self.service.routes.find(form.source, form.target, [text])
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        rows = [(*pair, route.source, route.target, now) for pair in pairs]
        # A lock on the file may have to wait for another server.
        await asyncio.to_thread(collect, self.suggestions, rows)
        for source, suggestion in pairs:
            # The client has done nothing wrong: the suggestion is collected for a person to read.
            if is_placeholder_wrong(source, suggestion):
                problem = "has other placeholders than its text, so no translation memory uses it"
                warn(f"suggestion {shown(suggestion)!r}: {problem}")
        return JSONResponse({"success": True})

    async def detect(self, request: Request) -> Response:
        form = await self.admission.admit(request, TextForm)
        languages = self.service.routes.languages
        # Detection takes milliseconds, in which the event loop could not answer anybody.
        ranked = await asyncio.to_thread(detect, "\n".join(form.texts), languages)
        if not ranked:  # LibreTranslate's answer is English
            english = match_language("en", languages) or languages[0]
            ranked = [(english, 0.0)]
        answer = []
        for code, probability in ranked[:MOST_DETECTED]:
            answer.append({"confidence": round(100 * probability), "language": code})
        return JSONResponse(answer)


def suggested_pairs(form: SuggestForm) -> list[tuple[str, str]]:
    """The texts and their suggested translations; raises Failed if one of them contains no text."""
    if isinstance(form.s, list):
        if len(form.s) != len(form.texts):
            raise Failed(400, f"s: {len(form.s)} texts, but q has {len(form.texts)}")
        pairs = list(zip(form.texts, form.s, strict=True))
    else:
        pairs = [("\n".join(form.texts), form.s)]
    for pair in pairs:
        for name, value in zip(("q", "s"), pair, strict=True):
            if is_blank(value):
                raise Failed(400, f"{name}: contains no text")
    lines = list[tuple[str, str]]()
    for text, suggestion in pairs:
        lines += pairs_of_lines(text, suggestion)
    return lines


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Wait for `work`; if the client disconnects, cancel it and raise Failed."""
    # A search for a client that has left would delay all others.
    # After the body has been read, the next message can only be the disconnection.
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        # nginx's status for a request that the client closed; nobody receives it.
        raise Failed(499, "the client disconnected")
    finally:
        task.cancel()
        gone.cancel()


def compressed(answer: Response) -> Endpoint:
    """Sends a large answer that never changes, compressed once, to clients that can read it."""
    packed = Response(
        gzip.compress(answer.body),
        media_type=answer.media_type,
        headers={"Content-Encoding": "gzip", "Vary": "Accept-Encoding"},
    )

    async def send(request: Request) -> Response:
        accepted = request.headers.get("Accept-Encoding", "")
        return packed if "gzip" in accepted else answer

    return send


def make_app(server: Server, config: ServeConfig) -> Starlette:
    # These answers never change, so they are encoded once.
    languages = facts_of_languages(server.service.routes)
    settings = settings_of(config, server.service.routes)
    actions = {
        "/translate": server.translate,
        "/translate_file": server.translate_file,
        "/detect": server.detect,
        "/suggest": server.suggest,
    }
    answers: dict[str, Response | Endpoint] = {
        # With 200 languages, their pairs take half a megabyte, and 2% of that compressed.
        "/languages": compressed(JSONResponse(languages)),
        "/frontend/settings": JSONResponse(settings),
        "/health": JSONResponse({"status": "ok"}),
        "/spec": FileResponse(PAGE / "spec.json"),
    }
    routes = [Route(path, action, methods=["POST"]) for path, action in actions.items()]
    routes += [Route(path, answer, methods=["GET"]) for path, answer in answers.items()]
    routes.append(Route("/download_file/{token}", server.download, name="download"))
    reloader = Reloader(server.service, config.limits.seconds)
    app = Starlette(
        routes=routes,
        exception_handlers={HTTPException: handle_error},
        lifespan=reloader.running,
    )
    # Not mounted at "/": that would answer GET /detect, with 404 instead of 405.
    app.router.default = StaticFiles(directory=PAGE, html=True)
    if config.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=config.cors,
            # For requests with JSON or a key, a browser first asks whether POST is allowed.
            allow_methods=["GET", "POST"],
            allow_headers=["content-type", "authorization"],
        )
    # Added last, so it is outermost: errors of the middleware inside also pass through it.
    app.add_middleware(Guard, config=config)
    return app
