"""Datasets on the Hugging Face hub as corpora."""

from dataclasses import dataclass

from nmt.extensions import Add, CorpusEntry, OptionsEntry


@dataclass
class HubConfig:
    """A dataset on the Hugging Face hub."""

    hub: str | None = None
    """hub: the dataset's name on the Hugging Face hub."""
    subset: str | None = None
    """hub: the dataset's configuration, such as de-en."""


def register(add: Add) -> None:
    entry = CorpusEntry("hub", "nmt.plugins.hub.corpus:Hub", group="wmt14_en_de", dataset="hub")
    add(entry)
    add(OptionsEntry("data.hub", "nmt.plugins.hub.plugin:HubConfig", is_inline=True))
