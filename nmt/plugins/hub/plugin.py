"""Datasets on the Hugging Face hub as corpora."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class HubConfig:
    """A dataset on the Hugging Face hub."""

    hub: str | None = None
    """hub: the dataset's name on the Hugging Face hub."""
    subset: str | None = None
    """hub: the dataset's configuration, such as de-en."""


def register(add: Callable[..., None]) -> None:
    add("corpus", "hub", "nmt.plugins.hub.corpus:Hub", default="wmt14_en_de")
    add("options", "data.hub", "nmt.plugins.hub.plugin:HubConfig", inline=True)
