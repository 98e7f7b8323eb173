"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("command", "export", "nmt.plugins.exchange.export:COMMAND")
    add("command", "import", "nmt.plugins.exchange.import_model:COMMAND")
