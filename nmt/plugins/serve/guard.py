"""Around the whole application: time limits, headers, hosts, the log, and errors without traces.

Plain ASGI (https://asgi.readthedocs.io), as it is in the way of every request.
"""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from nmt.plugins.serve.config import ServeConfig, is_loopback
from nmt.plugins.serve.metrics import Metrics
from nmt.plugins.serve.worker import log_client, log_error

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Any, Receive, Send], Awaitable[None]]

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
UNFINISHED = (408, 413, 503, 504)
"""After these answers, more of the request may come, which nobody reads: the connection is closed."""
PREFIX = re.compile(r"(/[\w.~-]+)+", re.ASCII)
"""What a proxy may cut off the paths that it passes on."""


def host_of(headers: Headers) -> str:
    """The name by which a client calls this server, without the port."""
    host = headers.get("host", "").lower()
    return (host if host.endswith("]") else host.rsplit(":", 1)[0]).rstrip(".")


class Guard:
    """Wraps the application."""

    def __init__(self, inner: Application, config: ServeConfig, metrics: Metrics) -> None:
        self.inner, self.config, self.metrics = inner, config, metrics

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        status, begun = 0, time.monotonic()

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if status in UNFINISHED:
                    headers["connection"] = "close"
            await send(message)

        problem = await self.run(scope, receive, send_with_headers)
        if problem and not status:
            again = {"Retry-After": "5"} if problem[0] == 503 else None
            await JSONResponse({"error": problem[1]}, problem[0], again)(scope, receive, send_with_headers)
        route = getattr(scope.get("route"), "path", "other")
        seconds = time.monotonic() - begun
        self.metrics.requests.labels(route, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if status >= 500:
            log_client(f"{scope['method']} {route}: {status}", f" after {seconds:.2f} s")

    async def run(self, scope: Any, receive: Receive, send: Send) -> tuple[int, str] | None:
        """Let the application answer within the time limit; else the status and the words of the answer.

        An answer that has begun cannot be taken back: its connection is closed.
        """
        headers = Headers(scope=scope)
        if problem := self.stranger(headers):
            return problem
        if len(scope["app"].state.connections()) > self.config.limits.connections:
            return 503, "too many connections; try again later"
        prefix = headers.get("x-forwarded-prefix", "").rstrip("/")
        if PREFIX.fullmatch(prefix) and is_loopback(scope["client"][0]):
            scope["root_path"], scope["path"] = prefix, prefix + scope["path"]
        try:
            async with asyncio.timeout(self.config.limits.seconds):
                await self.inner(scope, receive, send)
        except TimeoutError:
            return 504, f"not answered within {self.config.limits.seconds:g} seconds; send less text at once"
        except ClientDisconnect:
            return 499, "the client has gone"
        except Exception as error:
            log_error(error)
            return 500, "internal error, which the server's log names"
        return None

    def stranger(self, headers: Headers) -> tuple[int, str] | None:
        """What is wrong with a request that the page of a stranger makes, in a browser that can reach this server."""
        names = (*LOCAL, self.config.host, *self.config.hosts)
        if self.config.is_local and not self.config.keys and host_of(headers) not in names:
            # Its own name may lead to this machine.
            return 421, "this server is called by another name than its own; hosts=[NAME] allows it"
        scheme, _, origin = headers.get("origin", "").partition("://")
        own = origin == headers.get("host", "") or f"{scheme}://{origin}" in self.config.cors
        if scheme in ("http", "https", "null") and not own:  # extensions of a browser have other schemes
            return 403, "a page from elsewhere may not ask; cors=[https://ITS.NAME] allows it"
        return None
