"""The Muon optimizer, and `experiment=laptop`, which uses it."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("optimizer", "muon", "nmt.plugins.muon.muon:Muon")
