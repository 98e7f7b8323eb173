"""Learning from corrections: a better model from translations that people have corrected."""

from nmt.extensions import Add, CommandEntry, FolderEntry


def register(add: Add) -> None:
    command = CommandEntry(
        "learn",
        "nmt.plugins.learn.command:COMMAND",
        summary="Learn from corrected translations, and deliver the model if it is better.",
    )
    folder = FolderEntry(
        "learned",
        "nmt.plugins.learn.attempts:learn",
        marker="learned.json",
        key="learned",
        files=r".*",
    )
    add(command)
    add(folder)
