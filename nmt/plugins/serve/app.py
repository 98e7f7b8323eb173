"""The server: LibreTranslate's routes (https://docs.libretranslate.com/api) and a page, behind a guard."""

import asyncio
import logging
import math
import os
import re
import secrets
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path, PurePath
from typing import Any, TypeVar

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.config import require
from nmt.errors import NMTError
from nmt.plugins.serve import requests as forms
from nmt.plugins.serve.command import ServeConfig, is_loopback
from nmt.plugins.serve.translation import Service, detect, language_name
from nmt.plugins.serve.worker import Failed, PlaceHandler, Rate, formats_of_documents, log, log_client, log_error

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
PREFIX = re.compile(r"(/[\w.~-]+)+", re.ASCII)
"""A prefix that a proxy on this machine has removed from a path."""
UNFINISHED = (408, 413, 503, 504)
"""After these answers, more of the request may come, which nobody reads: the connection is closed."""


class Guard:
    """Around the whole application: time limit, headers, hosts, and errors without traces (plain ASGI)."""

    def __init__(self, inner: ASGIApp, config: ServeConfig) -> None:
        self.inner, self.config = inner, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        begun, seconds = False, self.config.limits.seconds

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                MutableHeaders(scope=message).update(
                    HEADERS | ({"connection": "close"} if message["status"] in UNFINISHED else {})
                )
            await send(message)

        headers = Headers(scope=scope)
        prefix = headers.get("x-forwarded-prefix", "").rstrip("/")
        if PREFIX.fullmatch(prefix) and is_loopback(scope["client"][0]):
            scope["root_path"], scope["path"] = prefix, prefix + scope["path"]
        try:
            self.check_origin(headers)
            async with asyncio.timeout(seconds):
                await self.inner(scope, receive, send_with_headers)
            return
        except Failed as error:
            failure = error
        except TimeoutError:
            failure = Failed(504, f"not answered within {seconds:g} seconds; send less text at once")
        except ClientDisconnect:
            failure = Failed(499, "the client has gone")
        except Exception as error:
            log_error(error)
            failure = Failed(500, "internal error, which the server's log names")
        if not begun:  # an answer that has begun cannot be taken back: its connection is closed
            await (await error_answer(Request(scope), failure))(scope, receive, send_with_headers)
        if failure.status_code >= 500:
            log_client(f"{scope['method']}: {failure.status_code}", f", {failure.detail}")

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
        self.limits, self.keys = config.limits, Path(config.keys) if config.keys else None
        require(
            not self.keys or bool(forms.read_keys(self.keys)), f"keys={self.keys}: no key in it; see docs/serving.md"
        )
        self.rate = Rate(self.limits.requests_per_minute) if self.limits.requests_per_minute else None
        self.files, self.uploads = dict[str, bytes](), asyncio.Semaphore(UPLOADS)
        self.service = Service(config)

    @asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(model.run()) for model in self.service.models]
        yield
        for task, model in zip(tasks, self.service.models, strict=True):
            task.cancel()
            if model.worker:
                await model.worker.end()

    async def admit(self, request: Request, form: type[forms.AnyForm]) -> forms.AnyForm:
        """Read a request and check its key, rate and length; Failed where it is refused."""
        # To parse JSON of some megabytes would keep all other clients waiting: only files may be so large.
        most, limit = self.limits.file_bytes, self.limits.characters
        if form is not forms.FileForm:
            most = min(most, MOST_BYTES_OF_CHARACTER * limit + BYTES_OF_FIELDS)
        fields = await forms.read_fields(request, most, self.limits.upload_seconds)
        self.check_client(request, fields.get("api_key"))
        asked = forms.check(form, fields)
        # Each text counts as a character at least.
        if isinstance(asked, forms.TextForm) and (size := sum(max(1, len(text)) for text in asked.texts)) > limit:
            raise Failed(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
        return asked

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

    async def translate(self, request: Request) -> Response:
        asked = await self.admit(request, forms.TranslateForm)
        return JSONResponse(await unless_gone(request, self.service.translate_texts(asked)))

    async def translate_file(self, request: Request) -> Response:
        """Translate a file; the answer says where to fetch the translation, within ten minutes."""
        async with self.uploads:
            asked = await self.admit(request, forms.FileForm)
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

    async def download(self, request: Request) -> Response:
        token = request.path_params["token"]
        if token not in self.files:
            raise Failed(404, "no such file, or no longer: translate it again")
        headers = {"Content-Disposition": f'attachment; filename="{token.partition(".")[2]}"'}
        return Response(self.files[token], media_type="application/octet-stream", headers=headers)

    async def detect(self, request: Request) -> Response:
        """The likeliest languages of a text, of those that the server has."""
        asked = await self.admit(request, forms.TextForm)
        ranked = await asyncio.to_thread(detect, "\n".join(asked.texts), self.service.languages)
        # LibreTranslate, too, says English where nothing can be detected.
        ranked = ranked[:3] or [("en", 0.0)]
        return JSONResponse([{"confidence": round(100 * p), "language": code} for code, p in ranked])

    async def languages(self, request: Request) -> Response:
        pairs, codes = self.service.pairs, self.service.languages
        return JSONResponse([{"code": c, "name": language_name(c), "targets": list(pairs.get(c, {}))} for c in codes])

    async def settings(self, request: Request) -> Response:
        """What LibreTranslate's page asks for."""
        source, (target, *_) = next(iter(self.service.pairs.items()))
        language = {
            side: {"code": code, "name": language_name(code)} for side, code in (("source", source), ("target", target))
        }
        keys, suffixes = dict.fromkeys(("apiKeys", "keyRequired"), self.keys is not None), [*formats_of_documents()]
        files = {"suggestions": False, "filesTranslation": True, "supportedFilesFormat": suffixes}
        return JSONResponse({"charLimit": self.limits.characters, "language": language, **keys, **files})

    async def health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok"})


def make_app(config: ServeConfig) -> Starlette:
    """The application; NMTError where its models or keys cannot be used."""
    server = Server(config)
    routes = [
        Route("/translate", server.translate, methods=["POST"]),
        Route("/translate_file", server.translate_file, methods=["POST"]),
        Route("/download_file/{token}", server.download, name="download"),
        Route("/detect", server.detect, methods=["POST"]),
        Route("/languages", server.languages),
        Route("/frontend/settings", server.settings),
        Route("/health", server.health),
        Mount("/", StaticFiles(directory=Path(__file__).parent / "page", html=True)),
    ]
    app = Starlette(routes=routes, lifespan=server.lifespan, exception_handlers={HTTPException: error_answer})
    if config.cors:
        app.add_middleware(CORSMiddleware, allow_origins=config.cors, allow_headers=["content-type", "authorization"])
    app.add_middleware(Guard, config=config)
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
    # With a lower level, whoever sends garbage could fill the log.
    options: dict[str, Any] = {"log_level": "error", "log_config": None, "access_log": False, "server_header": False}
    options |= {"ws": "none", "limit_concurrency": config.limits.connections}
    options |= {"timeout_graceful_shutdown": int(config.limits.seconds) + 1}
    server = uvicorn.Server(uvicorn.Config(app, **options))
    logging.lastResort = PlaceHandler(logging.ERROR)
    log(f"serving {', '.join(config.run)} at {address} (Ctrl-C ends)")
    if config.open and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform != "linux"):
        webbrowser.open(address)  # never one in this terminal
    server.run(sockets=[listener])
