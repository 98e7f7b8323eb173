"""Bundles of a model's translations and scores that readers of a paper can verify."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    summary = "Write a bundle of translations and scores that others can verify."
    add("command", "cite", "nmt.plugins.cite.command:CITE", summary=summary)
    summary = "Check a bundle that `nmt cite` wrote: its files, scores and translations."
    add("command", "verify", "nmt.plugins.cite.command:VERIFY", summary=summary)
