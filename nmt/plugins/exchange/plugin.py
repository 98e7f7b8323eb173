"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("command", "export", "nmt.plugins.exchange.export:COMMAND")
    add("command", "import", "nmt.plugins.exchange.import_model:COMMAND")
    add(
        "engine",
        "ctranslate2",
        "nmt.plugins.exchange.ctranslate2_load:load",
        precisions=("float32", "int8"),
        module="ctranslate2",
        suits="nmt.plugins.exchange.ctranslate2_load:why_not_automatic",
    )
