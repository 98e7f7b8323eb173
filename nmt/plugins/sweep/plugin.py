"""Train one run for each combination of values."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("option", "train --sweep", "nmt.plugins.sweep.sweep:SWEEP")
