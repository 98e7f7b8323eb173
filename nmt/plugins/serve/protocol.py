"""HTTP connections with limits on what comes before a request, when no key has been checked yet."""

import asyncio
import json
import re
from typing import Any
from urllib.parse import quote_from_bytes

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

MOST_HEADER_BYTES = 2**16
"""The maximum size of a request line with headers, or of a separator of body chunks, in bytes."""
TOO_LARGE = f"the request's address and headers have more than {MOST_HEADER_BYTES:,} bytes"
SPARE_CONNECTIONS = 100
"""Connections above the limit that get an answer (503); further ones are cut off."""
NON_ASCII = re.compile(rb"[\x80-\xff]")


class Connection(HttpToolsProtocol):
    """uvicorn's protocol with limits.

    By itself, it keeps headers of any size in memory, and waits for them without end.
    """

    def __init__(self, *arguments: Any, header_seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.header_seconds = header_seconds
        self.unread = 0
        """Bytes since the last complete headers or piece of a body."""
        self.header_bytes = 0
        """Bytes of the address and the headers so far."""
        self.awaits_headers = True
        self.is_in_first_line = True
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.start_timer()
        # uvicorn answers 503 above its limit only when headers are complete, so a client could hold
        # any number of connections without sending headers.
        limit = self.limit_concurrency
        if limit is not None and len(self.connections) > limit + SPARE_CONNECTIONS:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        # After `refuse`, data that was already on its way still arrives.
        if self.transport.is_closing():
            return
        # Before the parser runs: its callbacks set it back when they have used the data.
        self.unread += len(data)
        super().data_received(self.with_ascii_address(data))
        if self.transport.is_closing():
            return
        if self.unread > MOST_HEADER_BYTES:
            self.refuse(431, TOO_LARGE)
        elif self.unread and self.awaits_headers and self.timer is None:
            self.start_timer()

    def with_ascii_address(self, data: bytes) -> bytes:
        """Percent-encode non-ASCII bytes in a request line, as `curl 'URL?q=für'` sends them."""
        if not self.is_in_first_line:
            return data
        # httptools rejects such bytes.
        line, newline, rest = data.partition(b"\n")
        # Line breaks may come before a request line.
        self.is_in_first_line = not newline or not line.strip()
        return NON_ASCII.sub(percent_encoded, line) + newline + rest

    def send_400_response(self, msg: str) -> None:
        if self.header_bytes > MOST_HEADER_BYTES:
            self.refuse(431, TOO_LARGE)
        else:
            super().send_400_response(msg)

    def count(self, size: int) -> None:
        """Count bytes of an address or headers; an error makes the parser reject the request."""
        self.header_bytes += size
        if self.header_bytes > MOST_HEADER_BYTES:
            # httptools turns an exception in a callback into a parser error, after which uvicorn
            # calls `send_400_response`.
            raise ValueError(TOO_LARGE)

    def on_message_begin(self) -> None:
        self.header_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self.count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self.count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self.unread = 0
        self.awaits_headers = False
        self.is_in_first_line = False
        self.stop_timer()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        # `read_body` limits the body itself; here, only what separates its pieces counts.
        self.unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self.unread = 0
        # A connection may carry another request, whose headers have their own time.
        self.awaits_headers = True
        self.is_in_first_line = True
        super().on_message_complete()

    def start_timer(self) -> None:
        self.timer = self.loop.call_later(self.header_seconds, self.headers_are_late)

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def headers_are_late(self) -> None:
        """End a connection that has not sent complete headers.

        Unless an earlier request is still being answered.
        """
        if self.transport.is_closing():
            return
        # With pipelining, the next request may arrive while an earlier one is being answered;
        # closing now would cut that answer off.
        if self.cycle is not None and not self.cycle.response_complete:
            self.start_timer()
        elif self.unread:
            self.refuse(408, f"no complete headers within {self.header_seconds:g} seconds")
        else:  # such as a browser's connection for later use
            self.transport.close()

    def refuse(self, status: int, problem: str) -> None:
        """Answer with an error and close the connection."""
        content = json.dumps({"error": problem}).encode()
        headers = (
            "content-type: application/json\r\n"
            "connection: close\r\n"
            f"content-length: {len(content)}\r\n"
            "\r\n"
        )
        # Written by hand, because the application does not exist for a request without headers.
        self.transport.write(STATUS_LINE[status] + headers.encode() + content)
        self.transport.close()


def percent_encoded(byte: re.Match[bytes]) -> bytes:
    return quote_from_bytes(byte[0]).encode()
