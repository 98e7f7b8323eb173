"""What clients send: read under limits, and checked."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import HTTPException, Request
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationError
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser

from nmt.files import parse_json
from nmt.text import is_text

MOST_FIELDS = 1000
TermText = Annotated[str, Field(min_length=1, max_length=200)]
Entries = Annotated[dict[TermText, TermText], Field(max_length=200)]
EntryList = Annotated[list[tuple[TermText, TermText]], Field(max_length=200)]
"""Terms of a request, with their translations."""
MOST_JSON = 2**20
"""Characters of JSON in a form; the longest terms have fewer in any spelling."""
WANTED = {
    "q": "a text, or a list of texts, is wanted",
    "glossary": "an object of terms and translations, or a list of pairs, is wanted; at most 200 of 200 characters",
}
"""What is told where a field of several types has none of them."""


def from_json(value: Any) -> Any:
    """The value of a text in JSON, as a form has it; any other value, and damaged JSON, as it is."""
    if isinstance(value, str) and len(value) <= MOST_JSON:
        with suppress(ValueError):
            return parse_json(value)
    return value


class WithGlossary(BaseModel):
    """What may bring terms."""

    glossary: Annotated[Entries | EntryList, BeforeValidator(from_json)] = Field(
        [], description="Terms and their translations, which are used; in a form as JSON."
    )

    @property
    def terms(self) -> tuple[tuple[str, str], ...]:
        return tuple(self.glossary.items() if isinstance(self.glossary, dict) else self.glossary)


class DetectRequest(BaseModel):
    """A text of an unknown language."""

    q: str | list[str] = Field(description="The text.", examples=["Open the file."])
    api_key: str | None = Field(None, description="The key, where the server wants one.")


class TranslateRequest(WithGlossary):
    """Text to translate."""

    q: str | list[str] = Field(description="The text, or a list of texts.", examples=["Open the file."])
    source: str = Field(description="Its language, or auto.", examples=["en"])
    target: str = Field(description="The language to translate into.", examples=["de"])
    format: str = Field("text", description="text, whose lines are translated one by one, or html.")
    alternatives: Annotated[int, AfterValidator(lambda number: max(0, number))] = Field(
        0, description="Other translations to give beside the best."
    )
    api_key: str | None = Field(None, description="The key, where the server wants one.")
    stream: bool = Field(False, description="Answer line by line as soon as each is translated, as NDJSON.")
    details: bool = Field(False, description="Tell the alignment of words, and the probability of each.")


class AlternativesRequest(BaseModel):
    """What could stand in a translation instead of a word."""

    q: str = Field(description="The line that was translated.", examples=["Open the file."])
    source: str = Field(description="Its language, or auto.", examples=["en"])
    target: str = Field(description="The language of the translation.", examples=["de"])
    before: str = Field("", description="Its translation up to that word.")
    count: int = Field(5, ge=1, description="The most alternatives to give.")
    api_key: str | None = Field(None, description="The key, where the server wants one.")


class FileRequest(WithGlossary):
    """A file to translate, as multipart/form-data with a part `file`."""

    source: str = Field(description="Its language, or auto.")
    target: str = Field(description="The language to translate into.")
    api_key: str | None = Field(None, description="The key, where the server wants one.")


Form = TypeVar("Form", bound=BaseModel)


async def read_body(request: Request, most: int, seconds: float) -> bytes:
    """The body of a request; HTTPException for one of more bytes than `most`, or that does not arrive in time."""
    parts, size = list[bytes](), 0
    announced, too_large = request.headers.get("content-length", ""), f"the request has more than {most:,} bytes"
    if announced.isdecimal() and int(announced) > most and "expect" in request.headers:
        raise HTTPException(413, too_large)
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                size += len(part)
                if size > most:  # read to its end, since most clients take no answer before
                    parts.clear()
                else:
                    parts.append(part)
    except TimeoutError as error:
        if size <= most:
            raise HTTPException(408, f"the request did not arrive within {seconds:g} seconds") from error
    if size > most:
        raise HTTPException(413, too_large)
    return b"".join(parts)


async def read_multipart(request: Request, body: bytes) -> dict[str, Any]:
    """The fields of multipart/form-data; files stay in memory."""

    async def stream() -> Any:
        yield body

    parser = MultiPartParser(request.headers, stream(), max_files=1, max_fields=MOST_FIELDS, max_part_size=len(body))
    parser.spool_max_size = len(body) + 1  # nothing goes to disk
    return fields_of((await parser.parse()).multi_items())


def fields_of(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The fields of a form; a text that is given several times is a list of texts."""
    items = list(items)
    texts = [value for name, value in items if name == "q"]
    return dict(items) | ({"q": texts} if len(texts) > 1 else {})


async def read_fields(request: Request, most: int, seconds: float) -> dict[str, Any]:
    """The fields of a request in JSON or as a form; HTTPException for anything else."""
    body = await read_body(request, most, seconds)
    if not body:
        return {}
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "multipart/form-data":
            return await read_multipart(request, body)
        if kind in ("", "application/json"):
            found = parse_json(body)
            if not isinstance(found, dict):
                raise ValueError("no JSON object")
            return found
        return fields_of(parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except (ValueError, MultiPartException, KeyError) as error:
        raise HTTPException(400, "the request cannot be read: neither JSON nor a form, or damaged") from error


def texts_of(value: Any) -> Iterator[str]:
    """The texts in a JSON value."""
    if isinstance(value, dict | list | tuple):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from texts_of(each)
    elif isinstance(value, str):
        yield value


def check(form: type[Form], fields: dict[str, Any]) -> Form:
    """The fields as a form; HTTPException that names the first wrong one. Empty fields are left out."""
    fields = {name: value for name, value in fields.items() if value not in (None, "", [])}
    try:
        found = form.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field, *inner = first["loc"] or ("the request",)
        if first["type"] == "missing":
            raise HTTPException(400, f"Invalid request: missing {field} parameter") from error
        if first["type"] == "int_parsing":
            raise HTTPException(400, f"Invalid request: {field} parameter is not a number") from error
        raise HTTPException(400, f"{field}: {WANTED[str(field)] if inner else first['msg']}") from error
    if not all(map(is_text, texts_of(fields))):
        raise HTTPException(400, "the request holds half a character (a lone surrogate)")
    return found


async def file_of(fields: dict[str, Any]) -> tuple[str, bytes]:
    """The name and the content of the file in a form; HTTPException where there is none."""
    file = fields.get("file")
    if not isinstance(file, UploadFile):
        raise HTTPException(400, "Invalid request: missing file parameter")
    return file.filename or "", await file.read()
