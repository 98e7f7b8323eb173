"""`nmt plugins`: list the plugins."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("command", "plugins", "nmt.plugins.listing.listing:COMMAND", summary="List the plugins and what each adds.")
