"""Run the server until a signal ends it."""

import asyncio
import os
import socket
import sys
import webbrowser
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nmt.config.serving import ServeConfig
from nmt.errors import NMTError
from nmt.server.app import make_app
from nmt.server.worker import log

HEADER_SECONDS = 20
"""A connection whose first request has not begun by then is closed; uvicorn itself would wait for ever."""


BACKLOG = 2048
"""Connections that wait to be accepted."""


class ImpatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, but a client that connects and sends no whole head of a request is cut off."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(HEADER_SECONDS, self.close_if_silent)

    def close_if_silent(self) -> None:
        if self.cycle is None and not self.transport.is_closing():
            self.transport.close()


def listen(config: ServeConfig) -> socket.socket:
    """A socket at the address; NMTError where it cannot be had."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((config.host, config.port))
        found.listen(BACKLOG)  # from now on, clients are accepted, though they may have to wait a moment
    except OSError as error:
        found.close()
        reason = f"{error.strerror}; take another port, or end what listens there"
        raise NMTError(f"host={config.host} port={config.port}: {reason}") from error
    return found


def serve(config: ServeConfig) -> None:
    """Serve until SIGTERM or Ctrl-C, and answer what was accepted before it ends."""
    app, listener = make_app(config), listen(config)
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = f"http://{host}:{listener.getsockname()[1]}"
    settings: dict[str, Any] = {
        "http": ImpatientProtocol,
        "ws": "none",
        "access_log": False,
        "log_level": "error",  # else whoever sends garbage could fill the log
        "server_header": False,
        "limit_concurrency": config.limits.connections,
        "timeout_graceful_shutdown": int(config.limits.seconds) + 1,
    }
    server = uvicorn.Server(uvicorn.Config(app, **settings))
    log(f"serving {', '.join(config.run)} at {address} (Ctrl-C ends)")
    if config.open and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform != "linux"):
        webbrowser.open(address)  # never one in this terminal
    server.run(sockets=[listener])
