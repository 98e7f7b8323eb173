"""Translation over HTTP: one process answers clients and translates, others parse documents."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    summary = "Translate over HTTP, with a page for browsers."
    add("command", "serve", "nmt.plugins.serve.command:COMMAND", summary=summary)
