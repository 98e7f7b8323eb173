"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("command", "report", "nmt.plugins.report.command:COMMAND")
    add("command", "attention", "nmt.plugins.report.attention_command:COMMAND")
