"""What is cited of a model, in a bundle that others can verify."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    summary = "Write a bundle of translations and scores, which others can verify."
    add("command", "cite", "nmt.plugins.cite.command:CITE", summary=summary)
    summary = "Check a bundle that `nmt cite` wrote: its files, its scores, its translations."
    add("command", "verify", "nmt.plugins.cite.command:VERIFY", summary=summary)
