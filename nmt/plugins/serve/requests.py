"""What clients send: the key, and fields that are read under limits and checked."""

import asyncio
import hashlib
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

from pydantic import AfterValidator, BaseModel, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from nmt.config import require
from nmt.errors import NMTError
from nmt.files import parse_json, read_text
from nmt.plugins.serve.worker import Failed, log_client

MOST_FIELDS = 1000
MOST_ALTERNATIVES = 10
KEY_LINE = re.compile(r"^(\S+)\s+([0-9a-f]{64})\b", re.MULTILINE)


def encodable(text: str) -> str:
    """The text; ValueError for half a surrogate pair, which JSON can spell."""
    text.encode()
    return text


Text = Annotated[str, AfterValidator(encodable)]


class TextForm(BaseModel):
    """A text, or a list of texts."""

    q: Text | list[Text]

    @property
    def texts(self) -> list[str]:
        return self.q if isinstance(self.q, list) else [self.q]


class TranslateForm(TextForm):
    """Text to translate; `source` may be auto."""

    source: Text
    target: Text
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Field(le=MOST_ALTERNATIVES), AfterValidator(lambda count: max(0, count))] = 0


class FileForm(BaseModel, arbitrary_types_allowed=True):
    """A file to translate; the suffix of its name tells the format."""

    file: UploadFile
    source: Text
    target: Text


AnyForm = TypeVar("AnyForm", bound=BaseModel)


def check(form: type[AnyForm], fields: dict[str, Any]) -> AnyForm:
    """The fields that are not empty as a form; Failed for the first wrong one, in LibreTranslate's words."""
    try:
        return form.model_validate({name: value for name, value in fields.items() if value not in (None, "", [])})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name, missing = first["loc"][0], first["type"] == "missing"
        problem = f"Invalid request: missing {name} parameter" if missing else f"{name}: {first['msg']}"
        raise Failed(400, problem) from error


async def read_fields(request: Request, most: int, seconds: float) -> dict[str, Any]:
    """The fields of the address and of a body in JSON or as a form.

    A text that a form has several times is a list of texts. Failed for anything else, for a body of more bytes than
    `most`, and for one that does not arrive in time.
    """
    address, items, content = request.query_params.multi_items(), list[tuple[str, Any]](), dict[str, Any]()
    body, size = bytearray(), 0
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():  # to its end, since most clients read no answer before
                size += len(part)
                body += part if size <= most else b""
    except TimeoutError as error:
        raise Failed(408, f"the request did not arrive within {seconds:g} seconds") from error
    if size > most:
        raise Failed(413, f"the request has more than {most:,} bytes")
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def stream() -> AsyncGenerator[bytes, None]:
        yield bytes(body)

    try:
        if body and kind == "multipart/form-data":
            limits = {"max_files": 1, "max_fields": MOST_FIELDS, "max_part_size": len(body)}
            parser = MultiPartParser(request.headers, stream(), **limits)
            parser.spool_max_size = len(body) + 1  # no file goes to the disk
            items = (await parser.parse()).multi_items()
        elif body and kind in ("", "application/json"):
            content = parse_json(bytes(body))
            require(isinstance(content, dict), "not a JSON object")
        else:
            items = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except (ValueError, MultiPartException, KeyError, NMTError) as error:
        raise Failed(400, "the request cannot be read: neither JSON nor a form, or damaged") from error
    texts = [value for name, value in items if name == "q"] or [value for name, value in address if name == "q"]
    return dict(address) | dict(items) | ({"q": texts} if len(texts) > 1 else {}) | content


def read_keys(path: Path) -> dict[str, str]:
    """The names of API keys by SHA-256, from the lines that have both; NMTError for a file that cannot be read."""
    return {line[2]: line[1] for line in KEY_LINE.finditer(read_text(path))}


def name_of_key(path: Path, key: str) -> str | None:
    """The name of a key as the file is now; None for an unknown key, and while the file is missing."""
    # Keys are random and long: unlike passwords, they cannot be found by trying, so one fast hash is enough.
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    try:
        return read_keys(path).get(digest)
    except NMTError as error:
        log_client("no key is let in", f": {error}")
        return None
