"""The server: LibreTranslate's routes (https://docs.libretranslate.com/api) and a few more, behind a guard."""

import asyncio
import json
import logging
import math
import os
import re
import secrets
import socket
import sys
import time
import webbrowser
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path, PurePath
from typing import Any, TypeVar

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, Counter, Histogram, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt import __version__
from nmt.errors import NMTError
from nmt.plugins.serve import requests as forms
from nmt.plugins.serve.command import ServeConfig, is_loopback
from nmt.plugins.serve.translation import Service, detect
from nmt.plugins.serve.worker import (
    Failed,
    PlaceHandler,
    Rate,
    Search,
    formats_of_documents,
    log,
    log_client,
    log_error,
)
from nmt.text import language_name
from nmt.translation import stages_of

T = TypeVar("T")
MOST_BYTES_OF_CHARACTER = 12
"""As JSON writes an emoji in ASCII."""
BYTES_OF_FIELDS = 2**16
"""Room for all other fields."""
UPLOADS = 16
"""Files that are held in memory at the same time; further uploads wait."""
KEPT_SECONDS = 600
KEPT_BYTES = 64 * 2**20
"""Bytes of all translated files together; the oldest ones make room."""
PAGE = Path(__file__).parent / "page"
PAGES = {"/": "index.html", "/docs": "docs.html"} | {
    f"/{path.name}": path.name for path in PAGE.iterdir() if path.suffix != ".html"
}
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
LOCAL = ("localhost", "127.0.0.1", "[::1]", "")
"""Names of this machine; no browser leaves the name out."""
UNFINISHED = (408, 413, 503, 504)
"""After these answers, more of the request may come, which nobody reads: the connection is closed."""
PREFIX = re.compile(r"(/[\w.~-]+)+", re.ASCII)
"""What a proxy may cut off the paths that it passes on."""
REQUESTS = Counter("nmt_requests", "Requests, by path and status.", ["path", "status"])
SECONDS = Histogram(
    "nmt_request_seconds",
    "Seconds from request to answer.",
    ["path"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120),
)


class Guard:
    """Around the whole application: time limit, headers, hosts, metrics, and errors without traces (plain ASGI)."""

    def __init__(self, inner: ASGIApp, config: ServeConfig) -> None:
        self.inner, self.config = inner, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        status, begun = 0, time.monotonic()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if status in UNFINISHED:
                    headers["connection"] = "close"
            await send(message)

        try:
            await self.run(scope, receive, send_with_headers)
        except Failed as failure:
            if not status:  # an answer that has begun cannot be taken back: its connection is closed
                await (await error_answer(Request(scope), failure))(scope, receive, send_with_headers)
        route = getattr(scope.get("route"), "path", "other")
        seconds = time.monotonic() - begun
        REQUESTS.labels(route, status).inc()
        SECONDS.labels(route).observe(seconds)
        if status >= 500:
            log_client(f"{scope['method']} {route}: {status}", f" after {seconds:.2f} s")

    async def run(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer within the time limit; Failed where it may not or cannot."""
        headers, limits = Headers(scope=scope), self.config.limits
        self.check_origin(headers)
        if len(scope["app"].state.connections()) > limits.connections:
            raise Failed(503, "too many connections; try again later")
        prefix = headers.get("x-forwarded-prefix", "").rstrip("/")
        if PREFIX.fullmatch(prefix) and is_loopback(scope["client"][0]):
            scope["root_path"], scope["path"] = prefix, prefix + scope["path"]
        try:
            async with asyncio.timeout(limits.seconds):
                await self.inner(scope, receive, send)
        except TimeoutError as error:
            raise Failed(504, f"not answered within {limits.seconds:g} seconds; send less text at once") from error
        except ClientDisconnect as error:
            raise Failed(499, "the client has gone") from error
        except Exception as error:
            log_error(error)
            raise Failed(500, "internal error, which the server's log names") from error

    def check_origin(self, headers: Headers) -> None:
        """Failed for a request of a page from elsewhere, in a browser that can reach this server."""
        host = headers.get("host", "").lower()
        name = (host if host.endswith("]") else host.rsplit(":", 1)[0]).rstrip(".")
        ours = (*LOCAL, self.config.host, *self.config.hosts)
        if self.config.is_local and not self.config.keys and name not in ours:  # which may lead to this machine
            raise Failed(421, "this server is called by another name than its own; hosts=[NAME] allows it")
        scheme, _, origin = headers.get("origin", "").partition("://")
        allowed = origin == headers.get("host", "") or f"{scheme}://{origin}" in self.config.cors
        if scheme in ("http", "https", "null") and not allowed:  # extensions of a browser have other schemes
            raise Failed(403, "a page from elsewhere may not ask; cors=[https://ITS.NAME] allows it")


async def error_answer(request: Request, error: Any) -> Response:
    """An error as LibreTranslate answers it."""
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def send_file(file: Path, request: Request) -> Response:
    return FileResponse(file)


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """What `work` gives, unless the client goes away: nobody would read it. Failed then."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Failed(499, "the client has gone")
    finally:
        task.cancel()
        gone.cancel()


def safe_name(name: str, target: str) -> str:
    """The name of the translation of a file: letters, digits, dots and dashes alone."""
    path = PurePath(name.replace("\\", "/"))
    stem = re.sub(r"[^\w.-]+", "_", path.stem, flags=re.ASCII).strip("._")[:80]
    return f"{stem or 'file'}_{target}{path.suffix.lower()}"


class Server:
    """The routes, and what they share; NMTError where models, glossaries or keys cannot be used."""

    def __init__(self, config: ServeConfig) -> None:
        self.config, self.limits = config, config.limits
        self.keys = Path(config.keys) if config.keys else None
        if self.keys:
            forms.read_keys(self.keys)
        for run in config.run:
            stages_of(config.options_for(run, None))  # which reads glossaries
        self.rate = Rate(self.limits.requests_per_minute) if self.limits.requests_per_minute else None
        self.files, self.uploads = dict[str, bytes](), asyncio.Semaphore(UPLOADS)
        self.service = Service(config)

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        self.service.models.begin()
        yield
        await self.service.end()

    async def admit(self, request: Request, form: type[forms.AnyForm]) -> forms.AnyForm:
        """Read a request and check its key and rate; Failed where it is refused."""
        # To parse JSON of some megabytes would keep all other clients waiting: only files may be so large.
        most = self.limits.file_bytes
        if form is not forms.FileRequest:
            most = min(most, MOST_BYTES_OF_CHARACTER * self.limits.characters + BYTES_OF_FIELDS)
        fields = await forms.read_fields(request, most, self.limits.upload_seconds)
        self.check_client(request, fields.get("api_key"))
        return forms.check(form, fields)

    def check_client(self, request: Request, key: Any) -> None:
        """Failed for a client without a key where one is needed, and for one that asks too often."""
        client, problem = request.client.host if request.client else "", ""
        limited = bool(self.keys) or not is_loopback(client)
        if self.keys:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            key = key or (given.strip() if scheme.lower() == "bearer" else "")
            name = forms.name_of_key(self.keys, str(key)) if key else None
            problem = "" if name else "wrong API key" if key else "this server needs an API key"
            client = f"key {name}" if name else client
        # Keys cannot be tried out at any speed.
        if limited and self.rate and (seconds := math.ceil(self.rate.wait(client))):
            raise Failed(429, f"too many requests: wait {seconds} s", seconds)
        if problem:
            raise Failed(403, problem)

    def check_length(self, texts: list[str]) -> None:
        """Failed for texts that are too long together; each counts as a character at least."""
        size, limit = sum(max(1, len(text)) for text in texts), self.limits.characters
        if size > limit:
            raise Failed(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")

    async def translate(self, request: Request) -> Response:
        """Translate a text, or a list of texts."""
        asked, most = await self.admit(request, forms.TranslateRequest), self.limits.alternatives
        self.check_length(asked.texts)
        if asked.alternatives > most:
            raise Failed(400, f"Invalid request: alternatives parameter must be <= {most}")
        if self.config.log_text:
            log(f"{asked.source}-{asked.target}: {json.dumps(asked.texts, ensure_ascii=False)}")
        if asked.format not in ("text", "html"):
            raise Failed(400, f"{asked.format[:20]} format is not supported")
        if not asked.stream:
            return JSONResponse(await unless_gone(request, self.service.translate_texts(asked)))
        if asked.format != "text":
            raise Failed(400, "stream: only plain text is streamed; send format=text")
        parts = self.service.stream_text(asked)
        first = await anext(parts)  # once begun, the answer can only fail by a last object `error`

        async def lines() -> AsyncIterator[bytes]:
            try:
                if first:
                    yield bytes(JSONResponse(first).body) + b"\n"
                async for part in parts:
                    yield bytes(JSONResponse(part).body) + b"\n"
            except Failed as failure:
                yield bytes(JSONResponse({"error": failure.detail}).body) + b"\n"
            finally:
                await parts.aclose()

        return StreamingResponse(lines(), media_type="application/x-ndjson")

    async def alternatives(self, request: Request) -> Response:
        """Translations of a line that begin alike, and go on with another word."""
        asked = await self.admit(request, forms.AlternativesRequest)
        self.check_length([asked.q, asked.before])
        route = await self.service.find_route(asked.source, asked.target, asked.q)
        if route.model is None or not asked.q.strip():
            return JSONResponse({"alternatives": []})
        search = Search(alternatives=(asked.before, min(asked.count, self.limits.alternatives)))
        work = self.service.translate_lines(route, [asked.q], search)
        return JSONResponse((await unless_gone(request, work))[0].details)

    async def translate_file(self, request: Request) -> Response:
        """Translate a file; the answer says where to fetch the translation, within ten minutes."""
        async with self.uploads:
            asked = await self.admit(request, forms.FileRequest)
            target, content = await unless_gone(request, self.service.translate_document(asked))
        token = self.keep(safe_name(asked.file.filename or "", target), content)
        return JSONResponse({"translatedFileUrl": str(request.url_for("download", token=token))})

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file in memory for a while; the name to fetch it by, which nobody can guess."""
        token = f"{secrets.token_urlsafe(16)}.{name}"
        self.files[token] = content
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self.files.pop, token, None)
        while sum(map(len, self.files.values())) > KEPT_BYTES:
            self.files.pop(next(iter(self.files)))
        return token

    async def download(self, token: str) -> Response:
        """A translated file."""
        if token not in self.files:
            raise Failed(404, "no such file, or no longer: translate it again")
        headers = {"Content-Disposition": f'attachment; filename="{token.partition(".")[2]}"'}
        return Response(self.files[token], media_type="application/octet-stream", headers=headers)

    async def detect(self, request: Request) -> Response:
        """The likeliest languages of a text, of those that the server has."""
        asked = await self.admit(request, forms.DetectRequest)
        self.check_length(asked.texts)
        ranked = await asyncio.to_thread(detect, "\n".join(asked.texts), self.service.models.languages())
        # LibreTranslate, too, says English where nothing can be detected.
        ranked = ranked[:3] or [("en", 0.0)]
        return JSONResponse([{"confidence": round(100 * p), "language": code} for code, p in ranked])

    async def languages(self) -> Response:
        """The languages, and what each can be translated into."""
        pairs, codes = self.service.models.pairs(), self.service.models.languages()
        return JSONResponse([{"code": c, "name": language_name(c), "targets": list(pairs.get(c, {}))} for c in codes])

    async def settings(self) -> Response:
        """What LibreTranslate's page asks for."""
        source, (target, *_) = next(iter(self.service.models.pairs().items()))
        first = {"source": source, "target": target}
        return JSONResponse(
            {
                "charLimit": self.limits.characters,
                **dict.fromkeys(("apiKeys", "keyRequired"), self.keys is not None),
                "suggestions": False,
                "filesTranslation": True,
                "supportedFilesFormat": list(formats_of_documents()),
                "language": {side: {"code": code, "name": language_name(code)} for side, code in first.items()},
            }
        )

    async def health(self) -> Response:
        """Says ok while the server answers."""
        return JSONResponse({"status": "ok"})

    async def metrics(self, request: Request) -> Response:
        """Counters for Prometheus; with keys, as Bearer token."""
        self.check_client(request, request.query_params.get("api_key"))
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)


def make_app(config: ServeConfig) -> FastAPI:
    """The application; NMTError where its models or keys cannot be used."""
    server = Server(config)
    summary = "Translation by models of nmt; the routes are those of LibreTranslate."
    app = FastAPI(
        title="nmt", version=__version__, summary=summary, lifespan=server.lifespan, docs_url=None, redoc_url=None
    )
    app.state.connections = list
    for endpoint, form in (
        (server.translate, forms.TranslateRequest),
        (server.alternatives, forms.AlternativesRequest),
        (server.translate_file, forms.FileRequest),
        (server.detect, forms.DetectRequest),
    ):
        # The body is described here, because it is read under limits, and not by FastAPI.
        kind = "multipart/form-data" if form is forms.FileRequest else "application/json"
        body = {"required": True, "content": {kind: {"schema": form.model_json_schema()}}}
        app.add_api_route(f"/{endpoint.__name__}", endpoint, methods=["POST"], openapi_extra={"requestBody": body})
    for route in (server.languages, server.health, server.metrics):
        app.add_api_route(f"/{route.__name__}", route)
    app.add_api_route("/download_file/{token}", server.download)
    app.add_api_route("/frontend/settings", server.settings, include_in_schema=False)
    app.add_api_route("/spec", lambda: JSONResponse(app.openapi()), include_in_schema=False)
    for path, name in PAGES.items():
        # Not an API route: FastAPI would take a parameter of the function from the address.
        app.add_route(path, partial(send_file, PAGE / name), include_in_schema=False)
    if config.cors:
        app.add_middleware(CORSMiddleware, allow_origins=config.cors, allow_headers=["content-type", "authorization"])
    app.add_middleware(Guard, config=config)
    app.add_exception_handler(HTTPException, error_answer)
    return app


def serve(config: ServeConfig) -> None:
    """Serve until SIGTERM or Ctrl-C, and answer what was accepted before it ends; NMTError where that cannot begin."""
    app, family = make_app(config), socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:  # from now on, clients are accepted, though they may have to wait a moment
        listener = socket.create_server((config.host, config.port), family=family, backlog=2048)
    except OSError as error:
        reason = f"{error.strerror}; take another port, or end what listens there"
        raise NMTError(f"host={config.host} port={config.port}: {reason}") from error
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = f"http://{host}:{listener.getsockname()[1]}"
    options: dict[str, Any] = {"ws": "none", "access_log": False, "log_config": None, "server_header": False}
    seconds = int(config.limits.seconds) + 1
    # With a lower level, whoever sends garbage could fill the log.
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=seconds, **options))
    app.state.connections = lambda: server.server_state.connections
    logging.lastResort = PlaceHandler(logging.ERROR)
    log(f"serving {', '.join(config.run)} at {address} (Ctrl-C ends)")
    if config.open and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform != "linux"):
        webbrowser.open(address)  # never one in this terminal
    server.run(sockets=[listener])
