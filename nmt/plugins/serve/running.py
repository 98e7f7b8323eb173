"""Runs the server: loads the models, listens, and answers until it is stopped."""

import gc
import logging
import os
import resource
import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn

from nmt.config import NMTError
from nmt.plugins.serve.app import Server, make_app
from nmt.plugins.serve.command import ServeConfig
from nmt.plugins.serve.detection import identified, identifier
from nmt.plugins.serve.failures import PlaceHandler, log
from nmt.plugins.serve.protocol import SPARE_CONNECTIONS, Connection
from nmt.text import MOST_LISTED, subtags

HEADER_SECONDS = 30.0
"""The time limit for receiving the headers of a request."""
OTHER_FILES = 256
"""The number of open files to allow besides connections."""
BACKLOG = 2048
"""Connections that may wait until the server accepts them."""


def serve(config: ServeConfig) -> None:
    """Serve until SIGTERM or Ctrl-C, then finish all accepted requests.

    Raises NMTError if the server cannot start.
    """
    # Fast checks come first: models, keys and glossaries, then the port, then the weights.
    server = Server(config)
    # Before the models are loaded, which takes long, so that a port in use is reported at once.
    listener = listen(config)
    host = f"[{config.host}]" if ":" in config.host else config.host
    address = f"http://{host}:{listener.getsockname()[1]}"
    allow_connections(config.limits.connections)
    # Otherwise, the first clients would wait for it.
    loading = threading.Thread(target=identifier, daemon=True)
    loading.start()
    for model in server.service.models:
        model.load()
    loading.join()
    log_undetected(server.service.routes.languages)
    gc.freeze()  # garbage collections need not visit objects that live as long as the server
    # Libraries report problems to the root logger, which has no handler; Python's last resort
    # would print their messages.
    logging.lastResort = PlaceHandler(logging.ERROR)
    options = uvicorn_config(server, config)
    if config.suggestions:
        # The page does not show the path, and the owner must find the file.
        log(f"suggestions are appended to {Path(config.suggestions).absolute()}")
    log(f"serving {', '.join(config.run)} at {address} (press Ctrl-C to stop)")
    if config.open and has_display():
        webbrowser.open(address)
    uvicorn.Server(options).run(sockets=[listener])


def log_undetected(languages: Sequence[str]) -> None:
    """Log how many of many languages source=auto cannot detect."""
    unknown = [code for code in languages if subtags(code).language not in identified()]
    if unknown and len(languages) > MOST_LISTED:
        known = len(languages) - len(unknown)
        log(
            f"source=auto recognizes {known} of {len(languages)} languages; texts in others count "
            "as a similar language, so clients should name them"
        )


def listen(config: ServeConfig) -> socket.socket:
    """A socket for clients, which can connect from now on, but wait until the server is running."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    address = (config.host, config.port)
    try:
        # The socket is ours, because uvicorn would only listen after the models have been loaded.
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        reason = f"{error.strerror}; choose another port, or stop the program that uses this one"
        raise NMTError(f"host={config.host} port={config.port}: {reason}") from error


def allow_connections(most: int) -> None:
    """Raise the limit on open files so that connections leave some for other files.

    It is often about 1,000.
    """
    most += SPARE_CONNECTIONS + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    # Never lowered: the user may have raised it.
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def has_display() -> bool:
    """Whether a browser can open a window; on Linux, it could also be one in the terminal."""
    if sys.platform != "linux":
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def uvicorn_config(server: Server, config: ServeConfig) -> uvicorn.Config:
    header_seconds = min(HEADER_SECONDS, config.limits.seconds)
    # uvicorn calls it like a class, which its type requires.
    connection: Any = partial(Connection, header_seconds=header_seconds)
    return uvicorn.Config(
        make_app(server, config),
        http=connection,
        ws="none",
        limit_concurrency=config.limits.connections,
        # Long enough for every accepted request, whose time is limited.
        timeout_graceful_shutdown=int(config.limits.seconds) + 1,
        # Clients need not know the software. The log must not have addresses, which may contain
        # texts (?q=TEXT).
        server_header=False,
        access_log=False,
        log_config=None,
        log_level="error",  # at a more verbose level, clients could fill the log with garbage
    )
