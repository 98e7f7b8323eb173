"""Add languages and subwords to the vocabulary of a trained model."""

from nmt.extensions import Add, CommandEntry


def register(add: Add) -> None:
    command = CommandEntry(
        "extend",
        "nmt.plugins.extend.command:COMMAND",
        summary="Add languages and subwords to a model's vocabulary; old translations stay.",
    )
    add(command)
