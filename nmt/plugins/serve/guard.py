"""The guard around the application: a time limit, headers, allowed sites, and answers to errors."""

import asyncio
import re
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.plugins.serve.command import ServeConfig, is_loopback
from nmt.plugins.serve.failures import Failed, failure_of, log_client

# The page loads nothing from elsewhere and cannot be framed, so text that it displays can neither
# run scripts nor send data to other sites. Translations are private, so nothing is stored.
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
LOCAL = ("localhost", "127.0.0.1", "[::1]", "")
"""Names of this machine; browsers never send an empty name."""
PREFIX = re.compile(r"(/[\w.~-]+)+", re.ASCII)
"""A path prefix removed by a proxy on this machine."""
UNFINISHED = (413, 503, 504)
"""Statuses that close the connection, since the client may still be sending."""
OF_SITES = ("http", "https", "null")
"""Schemes of the origins of sites; browser extensions have other schemes and are allowed."""


class Guard:
    """ASGI middleware around the whole application; its errors have no tracebacks."""

    def __init__(self, inner: ASGIApp, config: ServeConfig) -> None:
        self.inner = inner
        self.config = config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # "lifespan", which starts and stops the application.
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if message["status"] in UNFINISHED:
                    headers["connection"] = "close"
            await send(message)

        failure = await self.failure_of_answer(scope, receive, send_with_headers)
        if failure is None:
            return
        # After the status has been sent, an error can only cut the response off.
        # Through `send_with_headers`, because errors need the headers of the page's policy, too.
        if not has_begun:
            answer = error_response(failure)
            await answer(scope, receive, send_with_headers)
        # Other failures are the client's own and would fill the log.
        if failure.status_code >= 500:
            log_client(f"{scope['method']}: {failure.status_code}", f", {failure.detail}")

    async def failure_of_answer(self, scope: Scope, receive: Receive, send: Send) -> Failed | None:
        """Let the application answer a request; returns the failure if it does not succeed."""
        headers = Headers(scope=scope)
        # Only a proxy on this machine may set it: the addresses of downloads begin with it.
        prefix = headers.get("x-forwarded-prefix", "").rstrip("/")
        if PREFIX.fullmatch(prefix) and is_loopback(scope["client"][0]):
            # ASGI expects the prefix in both; Starlette takes it off again to find the route.
            scope["root_path"] = prefix
            scope["path"] = prefix + scope["path"]
        seconds = self.config.limits.seconds
        try:
            # Both checks come first, before a byte of the body is read.
            self.check_host(headers)
            self.check_origin(headers)
            # Includes reading the body, so a client that sends slowly does not hold a connection
            # for long.
            async with asyncio.timeout(seconds):
                await self.inner(scope, receive, send)
        except TimeoutError:
            advice = "send less text per request"
            return Failed(504, f"no answer within {seconds:g} seconds; {advice}")
        except Exception as error:
            return failure_of(error)
        return None

    def check_host(self, headers: Headers) -> None:
        """Raise Failed if a local server without keys is addressed by an unknown name.

        The names of other sites may resolve to 127.0.0.1 too, so that their pages could use it.
        """
        # Against DNS rebinding.
        host = headers.get("host", "").lower()
        # An IPv6 address in brackets has colons of its own.
        has_port = not host.endswith("]")
        name = host.rsplit(":", 1)[0] if has_port else host
        # A fully qualified name may end with a dot.
        is_ours = name.rstrip(".") in (*LOCAL, self.config.host, *self.config.hosts)
        if is_loopback(self.config.host) and not self.config.keys and not is_ours:
            raise Failed(421, "unknown host name; to allow it, start the server with hosts=[NAME]")

    def check_origin(self, headers: Headers) -> None:
        """Raise Failed if a page of another site sent this request through a user's browser."""
        # CORS alone only keeps a page from reading the answer: the browser still sends simple
        # requests, such as forms, which would use up the limits or write suggestions.
        origin = headers.get("origin", "")
        scheme, _, host = origin.partition("://")
        if scheme not in OF_SITES:
            return
        # Without the scheme, which a proxy changes if it speaks TLS.
        is_same_site = host == headers.get("host", "")
        if not is_same_site and f"{scheme}://{host}" not in self.config.cors:
            advice = "to allow one, pass cors=[https://SITE]"
            raise Failed(403, f"requests from other sites are forbidden; {advice}")


def error_response(error: Any) -> Response:
    """An error response in LibreTranslate's format, for an exception of Starlette."""
    more = error.more if isinstance(error, Failed) else {}
    content = {"error": error.detail, **more}
    return JSONResponse(content, error.status_code, error.headers)


async def handle_error(request: Request, error: Any) -> Response:
    """Starlette's handler of exceptions."""
    return error_response(error)
