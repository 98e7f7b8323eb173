"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "cite",
        "nmt.plugins.cite.cite_command:COMMAND",
        summary="Write a bundle of translations and scores, which others can verify.",
    )
    add(
        "command",
        "verify",
        "nmt.plugins.cite.verify_command:COMMAND",
        summary="Check a bundle that `nmt cite` wrote: its files, its scores, its translations.",
    )
