"""Overview: the runs and corpora of a folder, the plugins, and shell completion."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "runs",
        "nmt.plugins.overview.commands:RUNS",
        summary="List or delete runs and prepared corpora.",
    )
    add(
        "command",
        "plugins",
        "nmt.plugins.overview.commands:PLUGINS",
        summary="List the plugins and what each adds.",
    )
    add("option", "--complete", "nmt.plugins.overview.completion:complete")
    add(
        "option",
        "--install-completion",
        "nmt.plugins.overview.completion:install",
        summary="Complete commands, keys and values with Tab in bash, zsh or fish.",
    )
