"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("command", "cite", "nmt.plugins.cite.cite_command:COMMAND")
    add("command", "verify", "nmt.plugins.cite.verify_command:COMMAND")
