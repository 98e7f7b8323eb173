"""Splitting of lines into sentences, which are translated one by one."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("splitter", "sentencex", "nmt.plugins.sentences.sentences:split_sentences")
