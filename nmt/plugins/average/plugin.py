"""`nmt average`: average other checkpoints than training does."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "average",
        "nmt.plugins.average.average:COMMAND",
        summary="Average checkpoints into a model.",
    )
