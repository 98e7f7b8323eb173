"""Models that are named by the prefix of a plugin instead of by a folder."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from nmt import registry
from nmt.config import NMTError
from nmt.extensions import ModelsEntry
from nmt.files import NamedModel, named_model


@pytest.fixture
def shelf(checkpoint, monkeypatch) -> Iterator[list[str]]:
    """A plugin that knows shelf:mine; the names that it was asked for."""
    asked = []

    def find(name: str) -> NamedModel:
        asked.append(name)
        if name != "shelf:mine":
            raise NMTError(f"{name}: is not on the shelf")
        return NamedModel(Path(checkpoint), "shelf:mine@1", {"license": "mit"})

    module = ModuleType("shelf")
    module.find = find  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "shelf", module)
    entry = ModelsEntry("shelf:", "shelf:find")
    monkeypatch.setitem(registry.registry()[ModelsEntry], "shelf:", entry)
    named_model.cache_clear()
    yield asked
    named_model.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("words", [["shelf:mine"], ["run=shelf:mine"], ["run=[shelf:mine]"]])
def test_a_prefix_names_a_model(words, shelf, checkpoint, nmt):
    named = nmt("translate", "ka lo mi", *words)
    assert named.code == 0, named.err
    assert named.out == nmt("translate", "ka lo mi", checkpoint).out
    # Once, although a command looks for its model several times.
    assert shelf == ["shelf:mine"]


def test_a_name_that_the_plugin_refuses(shelf, nmt):
    nmt("translate", "ka lo mi", "shelf:yours").refused("shelf:yours: is not on the shelf")


def test_a_text_may_begin_with_a_prefix(shelf, checkpoint, nmt):
    assert nmt("translate", "shelf: ka lo", checkpoint).code == 0
    assert shelf == []


def test_without_the_plugin_it_is_a_folder(nmt):
    nmt("translate", "ka lo mi", "run=shelf:mine").refused("run=shelf:mine: no such folder")
