"""The routes: LibreTranslate's (https://docs.libretranslate.com/api), and a few beside them."""

import asyncio
import json
import math
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.middleware.cors import CORSMiddleware

from nmt import __version__
from nmt.plugins.documents import SUFFIXES
from nmt.plugins.protection.glossary import read_glossary
from nmt.plugins.serve import requests as forms
from nmt.plugins.serve.config import ServeConfig, is_loopback
from nmt.plugins.serve.detect import detect, in_thread
from nmt.plugins.serve.files import Downloads, Parsers, safe_name
from nmt.plugins.serve.guard import Guard
from nmt.plugins.serve.keys import Keys
from nmt.plugins.serve.metrics import Metrics
from nmt.plugins.serve.models import Models
from nmt.plugins.serve.process import NotLoaded
from nmt.plugins.serve.rate import Rate
from nmt.plugins.serve.requests import AlternativesRequest, DetectRequest, FileRequest, Form, TranslateRequest
from nmt.plugins.serve.tasks import Failure, WordAlternatives
from nmt.plugins.serve.translation import (
    failed,
    find_route,
    stream_text,
    translate_document,
    translate_texts,
)
from nmt.plugins.serve.worker import log
from nmt.text import language_name

MOST_BYTES_OF_CHARACTER = 12
"""As JSON writes an emoji in ASCII."""
BYTES_OF_FIELDS = 2**16
"""Room for all other fields."""
PAGE = Path(__file__).parent / "page"
FILES = {"/": "index.html", "/docs": "docs.html"} | {
    f"/{path.name}": path.name for path in PAGE.iterdir() if path.suffix != ".html"
}
Found = TypeVar("Found")


def in_json(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


def answer(content: Any) -> Response:
    return Response(in_json(content), media_type="application/json")


def takes(form: type[BaseModel], kind: str = "application/json") -> dict[str, Any]:
    """The description of a request's body for OpenAPI: the body is read under limits, and not by FastAPI."""
    return {"requestBody": {"required": True, "content": {kind: {"schema": form.model_json_schema()}}}}


class Server:
    """What the routes share; NMTError where models, glossaries or keys cannot be used."""

    def __init__(self, config: ServeConfig) -> None:
        self.config, self.limits, self.metrics = config, config.limits, Metrics()
        self.keys = Keys(Path(config.keys)) if config.keys else None
        self.rate = Rate(self.limits.requests_per_minute) if self.limits.requests_per_minute else None
        self.downloads, self.parsers = Downloads(), Parsers(config.limits.seconds)
        self.models = Models(config, self.metrics)
        for name in config.glossary if isinstance(config.glossary, list) else [config.glossary]:
            if name:
                read_glossary(str(name), log)
        self.metrics.watch(lambda: self.models.models)

    async def admit(self, request: Request, form: type[Form]) -> tuple[Form, dict[str, Any]]:
        """Read a request and check its key and rate; HTTPException where it may not, or is wrong."""
        # To parse JSON of some megabytes would keep all other clients waiting: only files may be so large.
        most = self.limits.file_bytes
        if form is not FileRequest:
            most = min(most, MOST_BYTES_OF_CHARACTER * self.limits.characters + BYTES_OF_FIELDS)
        fields = forms.fields_of(request.query_params.multi_items()) | await forms.read_fields(
            request, most, self.limits.upload_seconds
        )
        self.check_client(request, fields.get("api_key"))
        return forms.check(form, fields), fields

    def check_client(self, request: Request, key: Any) -> None:
        """HTTPException for a client without a key where one is needed, and for one that asks too often."""
        host = request.client.host if request.client else ""
        if self.keys:
            scheme, _, given = request.headers.get("authorization", "").partition(" ")
            key = key or (given.strip() if scheme.lower() == "bearer" else "")
            name = self.keys.name_of(str(key)) if key else None
            if name is None:
                self.check_rate(host)  # keys cannot be tried out at any speed
                raise HTTPException(403, "wrong API key" if key else "this server needs an API key")
            host = f"key {name}"
        if self.keys or not is_loopback(host):
            self.check_rate(host)

    def check_rate(self, client: str) -> None:
        """HTTPException for a client that asks too often."""
        if self.rate and (seconds := self.rate.wait(client)):
            again = {"Retry-After": str(math.ceil(seconds))}
            raise HTTPException(429, f"too many requests: wait {math.ceil(seconds)} s", again)

    def check_length(self, texts: list[str]) -> None:
        """HTTPException for texts that are too long together; each counts as a character at least."""
        size, limit = sum(max(1, len(text)) for text in texts), self.limits.characters
        if size > limit:
            raise HTTPException(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")


async def unless_gone(request: Request, work: Awaitable[Found]) -> Found:
    """What `work` gives, unless the client goes away: nobody would read it. HTTPException then."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HTTPException(499, "the client has gone")
    finally:
        task.cancel()
        gone.cancel()


def make_app(config: ServeConfig) -> FastAPI:
    """The application; NMTError where its models or keys cannot be used."""
    server = Server(config)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        server.models.begin()
        yield
        server.models.end()
        server.parsers.end()

    app = FastAPI(
        title="nmt",
        version=__version__,
        summary="Translation by models of nmt; the routes are those of LibreTranslate.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.server, app.state.connections = server, list
    add_translation(app)
    add_information(app)
    add_pages(app)
    if config.cors:
        app.add_middleware(CORSMiddleware, allow_origins=config.cors, allow_headers=["content-type", "authorization"])
    app.add_middleware(Guard, config=config, metrics=server.metrics)
    app.exception_handler(AnyHTTPException)(tell)
    return app


async def tell(request: Request, error: Any) -> Response:
    """An error as LibreTranslate tells it."""
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def server_of(request: Request) -> Server:
    server: Server = request.app.state.server
    return server


def add_pages(app: FastAPI) -> None:
    """The page, and what it loads."""
    for path, name in FILES.items():

        def page(name: str = name) -> FileResponse:
            return FileResponse(PAGE / name)

        app.add_api_route(path, page, include_in_schema=False)


def add_information(app: FastAPI) -> None:
    """Routes that tell about the server."""

    @app.get("/languages")
    async def languages(request: Request) -> Response:
        """The languages, and what each can be translated into."""
        models = server_of(request).models
        targets = {code: list(models.pairs().get(code, {})) for code in models.languages()}
        return answer([{"code": code, "name": language_name(code), "targets": own} for code, own in targets.items()])

    app.add_api_route("/spec", lambda: JSONResponse(app.openapi()), include_in_schema=False)

    @app.get("/frontend/settings", include_in_schema=False)
    async def settings(request: Request) -> Response:
        server = server_of(request)
        source, targets = next(iter(server.models.pairs().items()))
        named = [{"code": code, "name": language_name(code)} for code in (source, next(iter(targets)))]
        return answer(
            {
                "charLimit": server.limits.characters,
                "apiKeys": server.keys is not None,
                "keyRequired": server.keys is not None,
                "suggestions": False,
                "filesTranslation": True,
                "supportedFilesFormat": list(SUFFIXES),
                "language": dict(zip(("source", "target"), named, strict=True)),
            }
        )

    @app.get("/health")
    async def health() -> Response:
        """Says ok while the server answers."""
        return answer({"status": "ok"})

    @app.get("/metrics", response_class=PlainTextResponse)
    async def metrics(request: Request) -> Response:
        """Counters for Prometheus; with keys, as Bearer token."""
        server = server_of(request)
        server.check_client(request, request.query_params.get("api_key"))
        return Response(generate_latest(server.metrics.registry), media_type=CONTENT_TYPE_LATEST)

    @app.post("/detect", openapi_extra=takes(DetectRequest))
    async def detect_language(request: Request) -> Response:
        """The likeliest languages of a text, of those that the server has."""
        server = server_of(request)
        asked, _ = await server.admit(request, DetectRequest)
        texts = asked.q if isinstance(asked.q, list) else [asked.q]
        server.check_length(texts)
        found = (await in_thread(detect, "\n".join(texts), server.models.languages()))[:3]
        # As LibreTranslate answers where nothing can be told.
        return answer(
            [{"confidence": round(100 * p), "language": code} for code, p in found]
            or [{"confidence": 0, "language": "en"}]
        )


def add_translation(app: FastAPI) -> None:
    """Routes that translate."""

    @app.post("/translate", openapi_extra=takes(TranslateRequest))
    async def translate(request: Request) -> Response:
        """Translate a text, or a list of texts."""
        server = server_of(request)
        asked, _ = await server.admit(request, TranslateRequest)
        texts = asked.q if isinstance(asked.q, list) else [asked.q]
        server.check_length(texts)
        if asked.alternatives > server.limits.alternatives:
            most = server.limits.alternatives
            raise HTTPException(400, f"Invalid request: alternatives parameter must be <= {most}")
        if server.config.log_text:
            log(f"{asked.source}-{asked.target}: {json.dumps(texts, ensure_ascii=False)}")
        if asked.format not in ("text", "html"):
            raise HTTPException(400, f"{asked.format[:20]} format is not supported")
        if asked.stream:
            if asked.format != "text":
                raise HTTPException(400, "stream: only plain text is streamed; send format=text")
            return await streamed(server, asked, "\n".join(texts))
        return answer(await unless_gone(request, translate_texts(server.models, asked, server.limits, server.parsers)))

    @app.post("/alternatives", openapi_extra=takes(AlternativesRequest))
    async def alternatives(request: Request) -> Response:
        """Translations of a line that begin alike, and go on with another word."""
        server = server_of(request)
        asked, _ = await server.admit(request, AlternativesRequest)
        server.check_length([asked.q, asked.before])
        route = await find_route(server.models, asked.source, asked.target, asked.q)
        if route.model is None or not asked.q.strip():
            return answer({"alternatives": []})
        task = WordAlternatives(asked.q, asked.before, min(asked.count, server.limits.alternatives))
        try:
            found = await unless_gone(request, route.model.alternatives(route.target, task))
        except NotLoaded as error:
            raise failed(Failure(f"the model cannot be loaded: {error}", broken=True)) from error
        if isinstance(found, Failure):
            raise failed(found)
        lines = [each for each in found if not isinstance(each, Failure)]
        return answer({"alternatives": [{**each.words, "translation": each.texts[0]} for each in lines]})

    @app.post("/translate_file", openapi_extra=takes(FileRequest, "multipart/form-data"))
    async def translate_file(request: Request) -> Response:
        """Translate a file; the answer says where to fetch the translation, within ten minutes."""
        server = server_of(request)
        async with server.parsers.uploads:
            asked, fields = await server.admit(request, FileRequest)
            name, content = await forms.file_of(fields)
            work = translate_document(server.models, asked, name, content, server.limits, server.parsers)
            target, translation = await unless_gone(request, work)
        token = server.downloads.add(safe_name(name, target), translation)
        return answer({"translatedFileUrl": str(request.url_for("download", token=token))})

    @app.get("/download_file/{token}")
    async def download(request: Request, token: str) -> Response:
        """A translated file."""
        found = server_of(request).downloads.find(token)
        if found is None:
            raise HTTPException(404, "no such file, or no longer: translate it again")
        headers = {"Content-Disposition": f'attachment; filename="{found[0]}"'}
        return Response(found[1], media_type="application/octet-stream", headers=headers)


async def streamed(server: Server, asked: TranslateRequest, text: str) -> Response:
    """An answer of which each line is an object in JSON; one that begins cannot fail but by a last object `error`."""
    parts = stream_text(server.models, asked, text, server.limits)
    first = await anext(parts)

    async def lines() -> AsyncIterator[bytes]:
        try:
            if first:
                yield in_json(first) + b"\n"
            async for part in parts:
                yield in_json(part) + b"\n"
        except HTTPException as error:
            yield in_json({"error": error.detail}) + b"\n"
        finally:
            await parts.aclose()

    return StreamingResponse(lines(), media_type="application/x-ndjson")
