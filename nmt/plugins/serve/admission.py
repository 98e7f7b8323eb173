"""Which requests the server accepts: by key, rate, size, and memory for uploads."""

import math
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.requests import Request

from nmt.config import NMTError
from nmt.plugins.serve.command import ServeConfig, is_loopback
from nmt.plugins.serve.failures import Failed, Rate
from nmt.plugins.serve.fields import read_fields
from nmt.plugins.serve.forms import AnyForm, FileForm, SuggestForm, TextForm, validated
from nmt.plugins.serve.keys import faulty_lines, name_of_key, read_keys

UPLOADS = 16
"""Files of the largest size that may be in memory at once, at most half from the same address."""
MOST_FAULTY = 10
"""The most lines of a file of keys that a notice lists."""
BYTES_PER_CHARACTER = 12
"""The size of an emoji in JSON that contains only ASCII."""
BYTES_OF_OTHER_FIELDS = 2**16
"""What all fields of a request besides its text may take."""


class Admission:
    """Reads and checks requests; raises NMTError if the keys cannot be used."""

    def __init__(self, config: ServeConfig) -> None:
        self.limits = config.limits
        self.keys = Path(config.keys) if config.keys else None
        if self.keys and not read_keys(self.keys):
            raise NMTError(f"keys={self.keys}: the file contains no keys; see docs/guides/serve.md")
        lines = faulty_lines(self.keys) if self.keys else []
        if lines:
            numbers = ", ".join(map(str, lines[:MOST_FAULTY]))
            problem = "not a name and a SHA-256 hash, so ignored"
            print(f"nmt: notice: keys={self.keys}: line {numbers}: {problem}", file=sys.stderr)
        self.rate: Rate | None = None
        if self.limits.requests_per_minute:
            self.rate = Rate(self.limits.requests_per_minute)
        self.uploads = Counter[str]()
        """Bytes that are being uploaded, by address."""

    async def admit(self, request: Request, form: type[AnyForm]) -> AnyForm:
        """Read a request; raise Failed if its key, rate, size or fields are unacceptable."""
        most_bytes = self.limits.file_bytes
        if form is not FileForm:
            # Parsing megabytes of JSON would delay all other clients.
            text_bytes = BYTES_PER_CHARACTER * self.limits.characters
            # The largest body that can hold as many characters as the limit allows.
            most_bytes = min(most_bytes, text_bytes + BYTES_OF_OTHER_FIELDS)
        # The key may be one of the fields, so they must be read first.
        fields = await read_fields(request, most_bytes)
        self.check_client(request, fields.get("api_key"))
        # After the check of the client, so that invalid requests count for its rate, too.
        valid_form = validated(form, fields)
        size = characters_of(valid_form)
        limit = self.limits.characters
        if size > limit:
            raise Failed(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
        return valid_form

    def check_client(self, request: Request, key: Any) -> None:
        """Raise Failed if the client lacks a required key or sends too many requests.

        Sets `request.state.client` to what identifies the client.
        """
        address = address_of(request)
        client = address
        problem = ""
        if self.keys:
            # The file is read for each request, so a key that is revoked stops working at once.
            key = key or bearer_token(request)
            name = name_of_key(self.keys, str(key)) if key else None
            if name:
                client = f"key {name}"
            elif key:
                problem = "invalid API key"
            else:
                problem = "this server requires an API key"
        request.state.client = client
        is_limited = self.keys is not None or not is_loopback(address)
        # Requests with a wrong key count as well, so that keys cannot be guessed quickly.
        if self.rate and is_limited:
            seconds = math.ceil(self.rate.wait(client))
            if seconds:
                raise Failed(429, f"too many requests; try again in {seconds} s", seconds)
        if problem:
            raise Failed(403, problem)

    @contextmanager
    def room_for_upload(self, request: Request) -> Iterator[None]:
        """Reserve memory for a file.

        Raises Failed if too many are in memory, or too many of the same address.
        """
        most = self.limits.file_bytes
        address = address_of(request)
        # The file has not been read yet. A size that is not declared counts as the largest one.
        declared = request.headers.get("content-length", "")
        size = min(int(declared), most) if declared.isdecimal() else most
        is_full = self.uploads.total() + size > UPLOADS * most
        has_too_many = self.uploads[address] + size > UPLOADS // 2 * most
        if is_full or has_too_many:
            raise Failed(503, "too many files are being uploaded; try again later")
        self.uploads[address] += size
        try:
            yield
        finally:
            self.uploads[address] -= size
            self.uploads += Counter()  # drops addresses without uploads


def address_of(request: Request) -> str:
    return request.client.host if request.client else ""


def bearer_token(request: Request) -> str:
    """The key in a request's Authorization header, or an empty string."""
    header = request.headers.get("authorization", "")
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def characters_of(form: Any) -> int:
    """The number of characters of all texts in a form; an empty text counts as one."""
    size = 0
    if isinstance(form, TextForm):
        size += sum(len(text) or 1 for text in form.texts)
    if isinstance(form, SuggestForm):
        size += sum(map(len, form.suggestions))
    return size
