"""The fields of a request, read from its address and its body and validated."""

import codecs
import re
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl

from pydantic import AfterValidator, BaseModel, Field, ValidationError
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from nmt.config import NMTError, require
from nmt.files import parse_json
from nmt.plugins.serve.failures import Failed

Text = Annotated[
    str, AfterValidator(lambda text: text.encode().decode())
]  # rejects lone surrogates from JSON
Fields = list[tuple[str, Any]]
MOST_FIELDS, MOST_ALTERNATIVES = 1000, 10
MOST_PREFIX_CHARACTERS = 2000
CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([\w.:-]*)["']?""", re.IGNORECASE)
CHARSETS = ("utf-8", "utf-8-sig", "ascii", "iso8859-1", "cp1252")
"""The encodings of forms. Others are rare, and Python's include some that take quadratic time."""
MultiPartParser.spool_max_size = (
    2**30
)  # keeps files in memory; `limits.file_bytes` is at most as large


class TextForm(BaseModel):
    q: Text | list[Text]

    @property
    def texts(self) -> list[str]:
        return self.q if isinstance(self.q, list) else [self.q]


class TranslateForm(TextForm):
    source: Text
    target: Text
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[
        int, Field(le=MOST_ALTERNATIVES), AfterValidator(lambda count: max(0, count))
    ] = 0
    # Alternatives have another word after the prefix.
    prefix: Annotated[Text, Field(max_length=MOST_PREFIX_CHARACTERS)] | None = None
    rest: Text = ""  # the translation so far after the prefix; other sentences keep its words
    details: bool = False  # return each line's alignment and likely failures


class SuggestForm(TranslateForm):
    s: Text


class FileForm(BaseModel, arbitrary_types_allowed=True):
    file: UploadFile
    source: Text
    target: Text


AnyForm = TypeVar("AnyForm", bound=BaseModel)


def validated(form: type[AnyForm], fields: dict[str, Any]) -> AnyForm:
    """Validate all non-empty fields; for the first invalid one, raise Failed with LibreTranslate's wording."""
    try:
        return form.model_validate(
            {name: value for name, value in fields.items() if value not in (None, "", [])}
        )
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        name, missing = first["loc"][0], first["type"] == "missing"
        problem = (
            f"Invalid request: missing {name} parameter" if missing else f"{name}: {first['msg']}"
        )
        raise Failed(400, problem) from error


def charset_of(content_type: str) -> str:
    """The encoding that a content type declares, by default UTF-8; raise Failed if it is not supported."""
    declared = CHARSET.search(content_type)
    if declared is None or not declared[1]:
        return "utf-8"
    try:
        charset = codecs.lookup(declared[1]).name
    except LookupError:
        charset = ""
    if charset not in CHARSETS:
        raise Failed(400, f"charset={declared[1][:40]} is not supported; send text in UTF-8")
    return charset


def decode(text: str, charset: str) -> str:
    """Decode bytes that a parser decoded as Latin-1; raise UnicodeDecodeError."""
    return text.encode("latin-1").decode(charset)


def read_urlencoded(content: bytes, charset: str) -> Fields:
    """The fields of an address or a form; like curl, clients may send non-ASCII text with or without "%"."""
    pairs = parse_qsl(
        content.decode("latin-1"),
        keep_blank_values=True,
        encoding="latin-1",
        max_num_fields=MOST_FIELDS,
    )
    return [(decode(name, charset), decode(value, charset)) for name, value in pairs]


async def read_multipart(content: bytes, content_type: str) -> Fields:
    """The fields of a form with parts, at most one of them a file."""
    charset = charset_of(content_type)
    # Starlette replaces an encoding that does not fit by Latin-1 without an error, so Latin-1 comes first here.
    headers = Headers({"content-type": f"{CHARSET.sub('', content_type)}; charset=latin-1"})

    async def stream() -> AsyncGenerator[bytes, None]:
        yield content

    parser = MultiPartParser(
        headers, stream(), max_files=1, max_fields=MOST_FIELDS, max_part_size=len(content)
    )
    fields = Fields()
    for name, value in (await parser.parse()).multi_items():
        if isinstance(value, UploadFile):
            value.filename = file_name(value.filename or "", charset)
        else:
            value = decode(value, charset)
        fields.append((decode(name, charset), value))
    return fields


def file_name(name: str, charset: str) -> str:
    """Decode a file's name; invalid bytes are replaced, since only the name's suffix decides something."""
    try:
        return name.encode("latin-1").decode(charset, "replace")
    except UnicodeEncodeError:  # from `filename*`, which declares its own encoding
        return name


async def read_body(request: Request, most: int) -> bytes:
    """The whole body; raise Failed if it has more than `most` bytes."""
    size, body = 0, bytearray()
    async for (
        part
    ) in request.stream():  # all of it, even if too long: most clients read the answer only then
        size += len(part)
        if size <= most:
            body += part
    if size > most:
        raise Failed(413, f"the request has more than {most:,} bytes")
    return bytes(body)


async def read_items(request: Request, body: bytes) -> Fields:
    """The fields of a JSON or form body; raise ValueError, KeyError or NMTError if it is malformed."""
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if body and kind in ("", "application/json"):
        content = parse_json(body)
        require(isinstance(content, dict), "not a JSON object")
        return list(content.items())
    if kind == "application/x-www-form-urlencoded":
        return read_urlencoded(body, charset_of(content_type))
    if kind == "multipart/form-data":
        return await read_multipart(body, content_type)
    return []


def merged(address: Fields, items: Fields) -> dict[str, Any]:
    """All fields; those of the body replace those of the address, and several `q` become a list."""
    texts = [value for name, value in items if name == "q"] or [
        value for name, value in address if name == "q"
    ]
    fields = dict(address) | dict(items)
    if len(texts) > 1:
        fields["q"] = texts
    return fields


async def read_fields(request: Request, most: int) -> dict[str, Any]:
    """The fields of the query string and of a JSON or form body of at most `most` bytes; raise Failed."""
    body = await read_body(request, most)
    place = "address"
    try:
        address = read_urlencoded(request.scope["query_string"], "utf-8")
        place = "request body"
        items = await read_items(request, body)
    except UnicodeDecodeError as error:
        raise Failed(
            400, f"the {place} is not valid {error.encoding.upper()}; send text in UTF-8"
        ) from error
    except (ValueError, KeyError, MultiPartException, NMTError) as error:
        raise Failed(400, f"the {place} is neither valid JSON nor a valid form") from error
    return merged(address, items)
