"""Translated text as training pairs: back-translation and distillation."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "synthesize",
        "nmt.plugins.synthesize.command:COMMAND",
        summary=(
            "Write synthetic pairs for training: back-translation, "
            "or distillation for a smaller model."
        ),
    )
    add(
        "folder",
        "synthetic",
        "nmt.plugins.synthesize.synthesis:synthesize",
        marker="identity.json",
        key="input",
        files=r"identity\.json|summary\.json|train\.[\w.-]+|\.?translations\.jsonl[^/]*|\.lock",
    )
