"""The server: LibreTranslate's routes (https://docs.libretranslate.com/api) and a web page, behind a guard."""

import asyncio
import gc
import logging
import math
import os
import re
import resource
import secrets
import socket
import sys
import threading
import unicodedata
import webbrowser
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import regex
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.config import NMTError, require
from nmt.plugins.serve.command import ServeConfig, is_loopback
from nmt.plugins.serve.failures import Failed, PlaceHandler, Rate, failure_of, log, log_client
from nmt.plugins.serve.fields import (
    AnyForm,
    FileForm,
    SuggestForm,
    TextForm,
    TranslateForm,
    read_fields,
    validated,
)
from nmt.plugins.serve.keys import name_of_key, read_keys
from nmt.plugins.serve.languages import detect, identifier, language_facts
from nmt.plugins.serve.parsing import file_name, file_suffix, formats_of_documents
from nmt.plugins.serve.protocol import SPARE_CONNECTIONS, Connection
from nmt.plugins.serve.suggestions import collect, is_blank
from nmt.plugins.serve.translation import Service
from nmt.text import is_language, language_name, match_language, read_texts

T = TypeVar("T")
HEADER_SECONDS = 30.0  # for the headers of a request
OTHER_FILES = 256  # open files besides connections
UPLOADS = 16  # files of the largest size that may be in memory at a time, half of them of the same address
KEPT_SECONDS, KEPT_BYTES = (
    600,
    64 * 2**20,
)  # how long translated files are kept, and their maximum total size
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
LOCAL = (
    "localhost",
    "127.0.0.1",
    "[::1]",
    "",
)  # names of this machine; browsers never send an empty name
PREFIX = re.compile(r"(/[\w.~-]+)+", re.ASCII)  # a path prefix removed by a proxy on this machine
UNSAFE = regex.compile(r"[^\w\p{M} ().-]+")  # in file names
MOST_NAME_BYTES = 200  # of a file name without its suffix
PAGE = Path(__file__).parent / "page"
UNFINISHED = (
    413,
    503,
    504,
)  # statuses that close the connection, since the client may still be sending


class Guard:
    """ASGI middleware around the whole application: time limit, headers, host checks, and errors without tracebacks."""

    def __init__(self, inner: ASGIApp, config: ServeConfig) -> None:
        self.inner, self.config = inner, config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        begun, seconds, headers = False, self.config.limits.seconds, Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                closing = {"connection": "close"} if message["status"] in UNFINISHED else {}
                MutableHeaders(scope=message).update(HEADERS | closing)
            await send(message)

        prefix = headers.get("x-forwarded-prefix", "").rstrip("/")
        if PREFIX.fullmatch(prefix) and is_loopback(scope["client"][0]):
            scope["root_path"], scope["path"] = prefix, prefix + scope["path"]
        try:
            self.check_origin(headers)
            async with asyncio.timeout(seconds):
                await self.inner(scope, receive, send_with_headers)
            return
        except TimeoutError:
            failure = Failed(
                504, f"no answer within {seconds:g} seconds; send less text per request"
            )
        except Exception as error:
            failure = failure_of(error)
        if not begun:  # otherwise, the response has begun and is cut off
            await (await error_answer(Request(scope), failure))(scope, receive, send_with_headers)
        if failure.status_code >= 500:
            log_client(f"{scope['method']}: {failure.status_code}", f", {failure.detail}")

    def check_origin(self, headers: Headers) -> None:
        """Raise Failed if a page of another site sent this request through a browser that can reach this server."""
        host = headers.get("host", "").lower()
        name = (host if host.endswith("]") else host.rsplit(":", 1)[0]).rstrip(".")
        is_ours = name in (
            *LOCAL,
            self.config.host,
            *self.config.hosts,
        )  # other names may resolve to 127.0.0.1 too
        if is_loopback(self.config.host) and not (self.config.keys or is_ours):
            raise Failed(421, "unknown host name; to allow it, start the server with hosts=[NAME]")
        scheme, _, origin = headers.get("origin", "").partition("://")
        allowed = origin == headers.get("host", "") or f"{scheme}://{origin}" in self.config.cors
        if (
            scheme in ("http", "https", "null") and not allowed
        ):  # browser extensions have other schemes and are allowed
            raise Failed(
                403,
                "requests from other sites are forbidden; to allow one, pass cors=[https://SITE]",
            )


async def error_answer(request: Request, error: Any) -> Response:
    """An error response in LibreTranslate's format."""
    more = error.more if isinstance(error, Failed) else {}
    return JSONResponse({"error": error.detail, **more}, error.status_code, error.headers)


async def unless_gone(request: Request, work: Awaitable[T]) -> T:
    """Wait for `work`; if the client disconnects, cancel it and raise Failed."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Failed(499, "the client disconnected")
    finally:
        task.cancel()
        gone.cancel()


def safe_name(name: str, target: str) -> str:
    """The name for a translated file, with only letters, digits, blanks and a few signs.

    The target language replaces a suffix that names a language: `test.de` for `test.en`.
    """
    name = file_name(unicodedata.normalize("NFC", name))
    suffix = file_suffix(name)
    stem = name.removesuffix(suffix)
    stem = UNSAFE.sub("_", stem).strip("._ ")
    stem = stem.encode()[:MOST_NAME_BYTES].decode(errors="ignore") or "file"
    is_of_language = suffix not in formats_of_documents() and is_language(suffix[1:])
    return f"{stem}.{target}" if is_of_language else f"{stem}_{target}{suffix.lower()}"


def name_in_ascii(name: str) -> str:
    """A file's name without accents; if letters would be lost, "translation" replaces the stem."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    if sum(map(str.isalnum, ascii_name)) == sum(map(str.isalnum, name)):
        return ascii_name
    # In 設定_de.txt, the language code begins after the last underscore.
    _, underscore, ending = name.rpartition("_")
    if not underscore:
        ending = name.rpartition(".")[2]
    return f"translation{'_' if underscore else '.'}{ending}"


def attachment(name: str) -> str:
    """The header for a download, as RFC 6266 recommends: the name in ASCII for programs such as curl,
    and then in UTF-8, which browsers prefer."""
    ascii_name = name_in_ascii(name)
    header = f'attachment; filename="{ascii_name}"'
    return header if ascii_name == name else f"{header}; filename*=UTF-8''{quote(name)}"


class Server:
    """The routes and their shared state; raises NMTError if the models, glossaries or keys cannot be used."""

    def __init__(self, config: ServeConfig) -> None:
        self.limits, self.keys = config.limits, Path(config.keys) if config.keys else None
        problem = f"keys={self.keys}: the file contains no keys; see docs/guides/serve.md"
        require(self.keys is None or bool(read_keys(self.keys)), problem)
        self.rate = (
            Rate(self.limits.requests_per_minute) if self.limits.requests_per_minute else None
        )
        self.files, self.uploads = dict[str, bytes](), Counter[str]()
        self.service, self.suggestions = Service(config), config.suggestions
        collect(self.suggestions)  # fails now if the file cannot be written

    async def admit(self, request: Request, form: type[AnyForm]) -> AnyForm:
        """Read a request; raise Failed if its key, rate, size or fields are unacceptable."""
        most, limit = self.limits.file_bytes, self.limits.characters
        # Parsing megabytes of JSON would delay all other clients; an emoji in ASCII-only JSON takes 12 bytes.
        most = most if form is FileForm else min(most, 12 * limit + 2**16)
        fields = await read_fields(request, most)
        self.check_client(request, fields.get("api_key"))
        asked = validated(form, fields)
        texts = asked.texts if isinstance(asked, TextForm) else []
        if (size := sum(len(text) or 1 for text in texts) + len(getattr(asked, "s", ""))) > limit:
            raise Failed(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
        return asked

    def check_client(self, request: Request, key: Any) -> None:
        """Raise Failed if the client lacks a required key or sends too many requests."""
        client, problem = request.client.host if request.client else "", ""
        limited = bool(self.keys) or not is_loopback(client)
        if self.keys:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            key = key or (given.strip() if scheme.lower() == "bearer" else "")
            name = name_of_key(self.keys, str(key)) if key else None
            problem = (
                "" if name else "invalid API key" if key else "this server requires an API key"
            )
            client = f"key {name}" if name else client
        request.state.client = client
        if (
            limited and self.rate and (seconds := math.ceil(self.rate.wait(client)))
        ):  # also with a wrong key
            raise Failed(429, f"too many requests; try again in {seconds} s", seconds)
        if problem:
            raise Failed(403, problem)

    async def translate(self, request: Request) -> Response:
        asked = await self.admit(request, TranslateForm)
        return JSONResponse(
            await unless_gone(request, self.service.translate_texts(asked, request.state.client))
        )

    async def translate_file(self, request: Request) -> Response:
        with self.room_for_upload(request):
            asked = await self.admit(request, FileForm)
            work = self.service.translate_document(asked, request.state.client)
            target, written = await unless_gone(request, work)
        token = self.keep(safe_name(asked.file.filename or "", target), written.content)
        answer = {"translatedFileUrl": str(request.url_for("download", token=quote(token)))}
        if written.notice:
            answer["notice"] = written.notice
        return JSONResponse(answer)

    @contextmanager
    def room_for_upload(self, request: Request) -> Iterator[None]:
        """Reserve memory for a file; raise Failed if too many are in memory, or too many of the same address."""
        most, address = self.limits.file_bytes, request.client.host if request.client else ""
        declared = request.headers.get("content-length", "")
        size = min(int(declared), most) if declared.isdecimal() else most
        is_full = self.uploads.total() + size > UPLOADS * most
        if is_full or self.uploads[address] + size > UPLOADS // 2 * most:
            raise Failed(503, "too many files are being uploaded; try again later")
        self.uploads[address] += size
        try:
            yield
        finally:
            self.uploads[address] -= size
            self.uploads += Counter()  # drops addresses without uploads

    def keep(self, name: str, content: bytes) -> str:
        """Keep a file in memory for a while and return an unguessable token for it."""
        token = f"{secrets.token_urlsafe(16)}.{name}"
        self.files[token] = content
        asyncio.get_running_loop().call_later(KEPT_SECONDS, self.files.pop, token, None)
        while sum(map(len, self.files.values())) > KEPT_BYTES:
            self.files.pop(next(iter(self.files)))
        return token

    async def download(self, request: Request) -> Response:
        token = request.path_params["token"]
        if token not in self.files:
            raise Failed(404, "the file does not exist or has expired; translate it again")
        headers = {"Content-Disposition": attachment(token.partition(".")[2])}
        return Response(self.files[token], media_type="application/octet-stream", headers=headers)

    async def suggest(self, request: Request) -> Response:
        asked = await self.admit(request, SuggestForm)
        if not self.suggestions:
            raise Failed(
                403,
                "suggestions are disabled; to collect them, start the server with suggestions=FILE",
            )
        text = "\n".join(asked.texts)
        for name, value in (("q", text), ("s", asked.s)):
            if is_blank(value):
                raise Failed(400, f"{name}: contains no text")
        [route] = await self.service.find_routes(asked.source, asked.target, [text])
        cells = text, asked.s, route.source, route.target, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
        await asyncio.to_thread(collect, self.suggestions, *cells)
        return JSONResponse({"success": True})

    async def detect(self, request: Request) -> Response:
        asked = await self.admit(request, TextForm)
        ranked = await asyncio.to_thread(detect, "\n".join(asked.texts), self.service.languages)
        if not ranked:  # LibreTranslate's answer is English
            ranked = [
                (match_language("en", self.service.languages) or self.service.languages[0], 0.0)
            ]
        return JSONResponse(
            [{"confidence": round(100 * p), "language": code} for code, p in ranked[:3]]
        )


def glossary_of(config: ServeConfig) -> dict[str, Any] | None:
    """The name of the glossary that applies to all requests, and its number of terms."""
    options = config.translator.plugins.get("protection")
    if options is None or options.glossary is None:
        return None
    name = options.glossary
    terms = [line for line in read_texts(name) if line.strip() and not line.startswith("#")]
    return {"name": Path(name).name, "terms": len(terms)}


def make_app(server: Server, config: ServeConfig) -> Starlette:
    pairs = server.service.pairs
    codes = server.service.languages
    languages = [language_facts(code, list(pairs.get(code, {}))) for code in codes]
    source, (target, *_) = next(iter(pairs.items()))
    usual = {
        "source": {"code": source, "name": language_name(source)},
        "target": {"code": target, "name": language_name(target)},
    }
    settings: dict[str, Any] = {
        "charLimit": config.limits.characters,
        "language": usual,
        "frontendTimeout": 500,
    }
    settings |= {
        "suggestions": bool(server.suggestions),
        "models": [Path(name).name for name in config.run],
    }
    settings |= dict.fromkeys(("apiKeys", "keyRequired"), server.keys is not None)
    settings["glossary"] = glossary_of(config)
    settings |= {"filesTranslation": True, "supportedFilesFormat": [*formats_of_documents()]}
    posts = server.translate, server.translate_file, server.detect, server.suggest
    gets: dict[str, Response] = {
        "/languages": JSONResponse(languages),
        "/frontend/settings": JSONResponse(settings),
    }
    gets |= {"/health": JSONResponse({"status": "ok"}), "/spec": FileResponse(PAGE / "spec.json")}
    routes = [Route(f"/{action.__name__}", action, methods=["POST"]) for action in posts]
    routes += [Route(path, answer, methods=["GET"]) for path, answer in gets.items()]
    routes.append(Route("/download_file/{token}", server.download, name="download"))
    app = Starlette(routes=routes, exception_handlers={HTTPException: error_answer})
    app.router.default = StaticFiles(
        directory=PAGE, html=True
    )  # a mounted "/" would answer GET /detect, with 404
    if config.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=config.cors,
            allow_headers=["content-type", "authorization"],
        )
    app.add_middleware(Guard, config=config)
    return app


def allow_connections(most: int) -> None:
    """Raise the limit on open files, which is often about 1,000, so that connections leave some for other files."""
    most += SPARE_CONNECTIONS + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def serve(config: ServeConfig) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish all accepted requests; raise NMTError if the server cannot start."""
    server, family = Server(config), socket.AF_INET6 if ":" in config.host else socket.AF_INET
    try:  # clients can connect from now on, but wait until the server is running
        listener = socket.create_server((config.host, config.port), family=family, backlog=2048)
    except OSError as error:
        reason = f"{error.strerror}; choose another port, or stop the program that uses this one"
        raise NMTError(f"host={config.host} port={config.port}: {reason}") from error
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = f"http://{host}:{listener.getsockname()[1]}"
    options: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    options |= {
        "log_level": "error"
    }  # at a more verbose level, clients could fill the log with garbage
    options |= {"ws": "none", "limit_concurrency": config.limits.connections}
    header_seconds = min(HEADER_SECONDS, config.limits.seconds)
    options["http"] = partial(Connection, header_seconds=header_seconds)
    options |= {"timeout_graceful_shutdown": int(config.limits.seconds) + 1}
    allow_connections(config.limits.connections)
    loading = threading.Thread(
        target=identifier, daemon=True
    )  # else, the first clients would wait for it
    loading.start()
    for model in server.service.models:
        model.load()
    loading.join()
    gc.freeze()  # objects that live as long as the server need not be visited by garbage collections
    logging.lastResort = PlaceHandler(logging.ERROR)
    log(f"serving {', '.join(config.run)} at {address} (press Ctrl-C to stop)")
    if config.open and (
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform != "linux"
    ):
        webbrowser.open(
            address
        )  # without a display, this would open a text browser in the terminal
    uvicorn.Server(uvicorn.Config(make_app(server, config), **options)).run(sockets=[listener])
