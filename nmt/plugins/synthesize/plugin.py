"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "synthesise",
        "nmt.plugins.synthesize.command:COMMAND",
        summary="Write synthetic pairs for training: back-translation, or distillation for a smaller model.",
    )
