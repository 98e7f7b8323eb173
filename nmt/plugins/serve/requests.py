"""What clients send: the key, and fields that are read under limits and checked."""

import asyncio
import hashlib
import os
import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import Request, UploadFile
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from starlette.formparsers import MultiPartException, MultiPartParser

from nmt.config import require
from nmt.errors import NMTError
from nmt.files import parse_json, read_text
from nmt.plugins.serve.worker import Failed, log_client

MOST_FIELDS = 1000
KEY_NAME = re.compile(r"[\w-][\w.@+-]*")
KEY_LINE = re.compile(r"(\S+)\s+([0-9a-f]{64})")


def encodable(text: str) -> str:
    """The text; ValueError for half a surrogate pair, which JSON can spell."""
    text.encode()
    return text


def from_json(value: Any) -> Any:
    """The value of JSON, as a form has it; any other value, and damaged JSON, as it is."""
    if isinstance(value, str):
        with suppress(ValueError):
            return parse_json(value)
    return value


Text = Annotated[str, AfterValidator(encodable)]
Term = Annotated[Text, Field(min_length=1, max_length=200)]
Terms = Annotated[dict[Term, Term], Field(max_length=200)] | Annotated[list[tuple[Term, Term]], Field(max_length=200)]


class KeyForm(BaseModel):
    api_key: str | None = Field(None, description="The key, where the server wants one.")


class DetectRequest(KeyForm):
    """A text of an unknown language."""

    q: Text | list[Text] = Field(description="The text, or a list of texts.", examples=["Open the file."])

    @property
    def texts(self) -> list[str]:
        return self.q if isinstance(self.q, list) else [self.q]


class LanguagesForm(KeyForm):
    source: Text = Field(description="The language of the text, or auto.", examples=["en"])
    target: Text = Field(description="The language to translate into.", examples=["de"])


class GlossaryForm(LanguagesForm):
    glossary: Annotated[Terms, BeforeValidator(from_json)] = Field(
        [], description="Terms and their translations, which are used; in a form as JSON."
    )

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        return tuple(self.glossary.items() if isinstance(self.glossary, dict) else self.glossary)


class FileRequest(GlossaryForm):
    """A file to translate, as multipart/form-data."""

    file: UploadFile = Field(description="The file; the suffix of its name tells the format.")


class TranslateRequest(GlossaryForm, DetectRequest):
    """Text to translate."""

    format: Text = Field("text", description="text, whose lines are translated one by one, or html.")
    alternatives: Annotated[int, AfterValidator(lambda number: max(0, number))] = Field(
        0, description="Other translations to give beside the best."
    )
    stream: bool = Field(False, description="Answer line by line as soon as each is translated, as NDJSON.")
    details: bool = Field(False, description="Tell the alignment of words, and the probability of each.")


class AlternativesRequest(LanguagesForm):
    """What could stand in a translation instead of a word."""

    q: Text = Field(description="The line that was translated.", examples=["Open the file."])
    before: Text = Field("", description="Its translation up to that word.")
    count: int = Field(5, ge=1, description="The most alternatives to give.")


AnyForm = TypeVar("AnyForm", bound=KeyForm)


def check(form: type[AnyForm], fields: dict[str, Any]) -> AnyForm:
    """The fields that are not empty as a form; Failed for the first wrong one, in LibreTranslate's words."""
    try:
        return form.model_validate({name: value for name, value in fields.items() if value not in (None, "", [])})
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name = first["loc"][0]
        problems = {
            "missing": f"Invalid request: missing {name} parameter",
            "int_parsing": f"Invalid request: {name} parameter is not a number",
        }
        raise Failed(400, problems.get(first["type"], f"{name}: {first['msg']}")) from error


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """The body; Failed for one of more bytes than `most`, or that does not arrive in time."""
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
    return bytes(body)


async def read_fields(request: Request, most: int, seconds: float) -> dict[str, Any]:
    """The fields of the address and of a body in JSON or as a form; Failed for anything else.

    A text that a form has several times is a list of texts.
    """
    address, items, content = request.query_params.multi_items(), list[tuple[str, Any]](), dict[str, Any]()
    body = await read_body(request, most, seconds)
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body

    try:
        if body and kind == "multipart/form-data":
            parser = MultiPartParser(
                request.headers, stream(), max_files=1, max_fields=MOST_FIELDS, max_part_size=len(body)
            )
            parser.spool_max_size = len(body) + 1  # no file goes to the disk
            items = (await parser.parse()).multi_items()
        elif body and kind in ("", "application/json"):
            content = parse_json(body)
            require(isinstance(content, dict), "not a JSON object")
        else:
            items = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except (ValueError, MultiPartException, KeyError, NMTError) as error:
        raise Failed(400, "the request cannot be read: neither JSON nor a form, or damaged") from error
    texts = [[value for name, value in pairs if name == "q"] for pairs in (items, address)]
    several = next((values for values in texts if values), [])
    return dict(address) | dict(items) | ({"q": several} if len(several) > 1 else {}) | content


def digest(key: str) -> str:
    # Keys are random and long: unlike passwords, they cannot be found by trying, so one fast hash is enough.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> dict[str, str]:
    """The names of API keys by SHA-256, from lines of both; NMTError for a file that holds anything else."""
    names = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            match = KEY_LINE.fullmatch(line.strip())
            if not match:
                raise NMTError(f"{path}, line {number}: not the name and the SHA-256 of a key, as new_key=NAME writes")
            names[match[2]] = match[1]
    return names


def name_of_key(path: Path, key: str) -> str | None:
    """The name of a key as the file is now; None for an unknown key, and while the file is damaged or missing."""
    try:
        return read_keys(path).get(digest(key))
    except NMTError as error:
        log_client("no key is let in", f": {error}")
        return None


def add_key(path: Path, name: str) -> str:
    """Make a key, and add its hash to a file that nobody else may read; NMTError for a name in use."""
    if not KEY_NAME.fullmatch(name) or (path.exists() and name in read_keys(path).values()):
        raise NMTError(f"new_key={name}: needs a new name of letters and digits; {path} lists those in use")
    key = secrets.token_urlsafe(32)
    try:
        with open(path, "a", encoding="utf-8", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
            file.write(f"{name} {digest(key)}\n")
    except OSError as error:
        raise NMTError(f"keys={path}: cannot be written ({error.strerror})") from error
    return key
