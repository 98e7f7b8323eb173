"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "serve",
        "nmt.plugins.serve.command:COMMAND",
        summary="Translate over HTTP, with a page for browsers.",
    )
