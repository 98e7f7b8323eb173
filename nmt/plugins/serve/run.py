"""Run the server until a signal ends it."""

import asyncio
import os
import socket
import sys
import webbrowser
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from nmt.errors import NMTError
from nmt.plugins.serve.app import make_app
from nmt.plugins.serve.config import ServeConfig
from nmt.plugins.serve.worker import log, log_places

BACKLOG = 2048
"""Connections that wait to be accepted."""


class ImpatientProtocol(HttpToolsProtocol):
    """uvicorn's protocol, but a client that does not finish the head of a request is cut off."""

    head_seconds = 20.0
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.wait_for_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.timer is None and (self.cycle is None or self.cycle.response_complete):
            self.wait_for_head()

    def on_headers_complete(self) -> None:
        if self.timer:
            self.timer.cancel()
            self.timer = None
        super().on_headers_complete()

    def wait_for_head(self) -> None:
        """Close the connection later, unless a request has begun by then."""
        self.timer = self.loop.call_later(self.head_seconds, self.transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.timer:
            self.timer.cancel()
        super().connection_lost(exc)


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
    ImpatientProtocol.head_seconds = config.limits.upload_seconds
    settings: dict[str, Any] = {
        "http": ImpatientProtocol,
        "ws": "none",
        "access_log": False,
        "log_config": None,
        "log_level": "error",  # else whoever sends garbage could fill the log
        "server_header": False,
        "timeout_graceful_shutdown": int(config.limits.seconds) + 1,
    }
    server = uvicorn.Server(uvicorn.Config(app, **settings))
    app.state.connections = lambda: server.server_state.connections
    log_places()
    log(f"serving {', '.join(config.run)} at {address} (Ctrl-C ends)")
    if config.open and (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY") or sys.platform != "linux"):
        webbrowser.open(address)  # never one in this terminal
    server.run(sockets=[listener])
