"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("command", "parse", "nmt.plugins.parse.command:COMMAND")
    add("metric", "brackets", "nmt.plugins.parse.brackets:bracket_scores")
