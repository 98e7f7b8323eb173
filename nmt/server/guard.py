"""Around the whole application: time limits, headers, hosts, the log, and errors without traces.

Plain ASGI (https://asgi.readthedocs.io), as it is in the way of every request.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from nmt.config.serving import ServeConfig
from nmt.server.metrics import Metrics
from nmt.server.worker import log, log_error

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
LOCAL = ("localhost", "127.0.0.1", "[::1]")


def host_of(scope: Any) -> str:
    """The name by which a client calls this server, without the port."""
    host = Headers(scope=scope).get("host", "")
    return host.rsplit(":", 1)[0] if not host.endswith("]") else host


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
            await send(message)

        problem = await self.run(scope, receive, send_with_headers)
        if problem and not status:
            await JSONResponse({"error": problem[1]}, problem[0])(scope, receive, send_with_headers)
        route = getattr(scope.get("route"), "path", "other")
        seconds = time.monotonic() - begun
        self.metrics.requests.labels(route, status).inc()
        self.metrics.seconds.labels(route).observe(seconds)
        if status >= 500:
            log(f"{scope['method']} {route}: {status} after {seconds:.2f} s")

    async def run(self, scope: Any, receive: Receive, send: Send) -> tuple[int, str] | None:
        """Let the application answer within the time limit; else the status and the words of the answer.

        An answer that has begun cannot be taken back: its connection is closed.
        """
        names = (*LOCAL, self.config.host, *self.config.hosts)
        if self.config.is_local and not self.config.keys and host_of(scope) not in names:
            # The page of a stranger, whose name now leads to this machine, could ask without a key.
            return 421, "this server is called by another name than its own; hosts=[NAME] allows it"
        try:
            async with asyncio.timeout(self.config.limits.seconds):
                await self.inner(scope, receive, send)
        except TimeoutError:
            return 504, f"not answered within {self.config.limits.seconds:g} seconds; send less text at once"
        except Exception as error:
            log_error(error)
            return 500, "internal error, which the server's log names"
        return None
