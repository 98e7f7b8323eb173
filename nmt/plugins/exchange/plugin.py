"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "export",
        "nmt.plugins.exchange.export:COMMAND",
        summary="Write a model for another program, and compare their translations.",
    )
    add(
        "command",
        "import",
        "nmt.plugins.exchange.import_model:COMMAND",
        summary="Make a model of Marian, OPUS-MT or CTranslate2 one of nmt's, to use and to train on.",
    )
    add(
        "engine",
        "ctranslate2",
        "nmt.plugins.exchange.ctranslate2_load:load",
        precisions=("float32", "int8"),
        module="ctranslate2",
        suits="nmt.plugins.exchange.ctranslate2_load:why_not_automatic",
        describe="nmt.plugins.exchange.ctranslate2_load:describe",
    )
