"""The fields of a request, read from its address and its body."""

import codecs
import re
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from nmt.config import NMTError, require
from nmt.files import parse_json
from nmt.plugins.serve.failures import Failed

Fields = list[tuple[str, Any]]
TEXTS = ("q", "texts", "s")
"""The fields that forms may repeat, for a list."""
MOST_FIELDS = 1000
"""The most fields of a form, each of which takes time and memory."""
CHARSET = re.compile(r""";\s*charset\s*=\s*["']?([\w.:-]*)["']?""", re.IGNORECASE)
CHARSETS = ("utf-8", "utf-8-sig", "ascii", "iso8859-1", "cp1252")
"""The encodings of forms. Others are rare, and Python's include some that take quadratic time."""
# Keeps files in memory: `limits.file_bytes` is at most as large.
MultiPartParser.spool_max_size = 2**30


def charset_of(content_type: str) -> str:
    """The encoding that a content type declares, by default UTF-8.

    Raises Failed if it is not supported.
    """
    declared = CHARSET.search(content_type)
    if declared is None or not declared[1]:
        return "utf-8"
    try:
        charset = codecs.lookup(declared[1]).name
    except LookupError:
        charset = ""
    # A client chooses the encoding, so it could choose a slow one on purpose.
    if charset not in CHARSETS:
        raise Failed(400, f"charset={declared[1][:40]} is not supported; send text in UTF-8")
    return charset


def decode(text: str, charset: str) -> str:
    """Decode bytes that a parser decoded as Latin-1; raises UnicodeDecodeError."""
    return text.encode("latin-1").decode(charset)


def read_urlencoded(content: bytes, charset: str) -> Fields:
    """The fields of an address or a form.

    Like curl, clients may send non-ASCII text with or without percent-encoding.
    """
    # Latin-1 maps each byte to one character and back, so bytes survive the parser, percent-encoded
    # or not. A body of separators alone would have hundreds of thousands of fields.
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
    # Where an encoding does not fit, Starlette uses Latin-1 without an error. So it always decodes
    # Latin-1 here, from which the bytes can be restored.
    without_charset = CHARSET.sub("", content_type)
    headers = Headers({"content-type": f"{without_charset}; charset=latin-1"})

    async def stream() -> AsyncGenerator[bytes, None]:
        yield content

    # A part may be as large as the body, whose size has been checked.
    parser = MultiPartParser(
        headers, stream(), max_files=1, max_fields=MOST_FIELDS, max_part_size=len(content)
    )
    form = await parser.parse()
    fields = Fields()
    for name, value in form.multi_items():
        if isinstance(value, UploadFile):
            value.filename = file_name(value.filename or "", charset)
        else:
            value = decode(value, charset)
        fields.append((decode(name, charset), value))
    return fields


def file_name(name: str, charset: str) -> str:
    """Decode a file's name.

    Invalid bytes are replaced, since only the suffix of the name matters.
    """
    try:
        return name.encode("latin-1").decode(charset, "replace")
    except UnicodeEncodeError:  # from `filename*`, which declares its own encoding
        return name


async def read_body(request: Request, most: int) -> bytes:
    """The whole body; raises Failed if it has more than `most` bytes."""
    size = 0
    body = bytearray()
    # All of it, even if too long: most clients read the answer only then.
    async for part in request.stream():
        size += len(part)
        # What is over the limit is read, but not kept.
        if size <= most:
            body += part
    if size > most:
        raise Failed(413, f"the request has more than {most:,} bytes")
    return bytes(body)


async def read_items(request: Request, body: bytes) -> Fields:
    """The fields of a JSON or form body.

    Raises ValueError, KeyError or NMTError if it is malformed.
    """
    content_type = request.headers.get("content-type", "")
    kind = content_type.partition(";")[0].strip().lower()
    if body and kind in ("", "application/json"):
        # Refuses JSON that is nested too deeply, which would end in a RecursionError.
        content = parse_json(body)
        require(isinstance(content, dict), "not a JSON object")
        return list(content.items())
    if kind == "application/x-www-form-urlencoded":
        return read_urlencoded(body, charset_of(content_type))
    if kind == "multipart/form-data":
        return await read_multipart(body, content_type)
    return []


def merged(address: Fields, items: Fields) -> dict[str, Any]:
    """All fields; those of the body replace those of the address, and repeated texts are a list."""
    fields = dict(address)
    fields.update(items)
    for name in TEXTS:
        texts = values_of(name, items)
        if not texts:
            texts = values_of(name, address)
        if len(texts) > 1:
            fields[name] = texts
    return fields


def values_of(name: str, fields: Fields) -> list[Any]:
    return [value for other, value in fields if other == name]


async def read_fields(request: Request, most: int) -> dict[str, Any]:
    """The fields of the query string, and of a JSON or form body of at most `most` bytes.

    Raises Failed if it cannot be read.
    """
    body = await read_body(request, most)
    place = "address"
    try:
        address = read_urlencoded(request.scope["query_string"], "utf-8")
        place = "request body"
        items = await read_items(request, body)
    # Before ValueError, of which it is a subclass.
    except UnicodeDecodeError as error:
        encoding = error.encoding.upper()
        raise Failed(400, f"the {place} is not valid {encoding}; send text in UTF-8") from error
    except (ValueError, KeyError, MultiPartException, NMTError) as error:
        raise Failed(400, f"the {place} is neither valid JSON nor a valid form") from error
    return merged(address, items)
