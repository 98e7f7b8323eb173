"""A server that most tests of `nmt serve` share, and its expected translations."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.serve.serving import LINES, Server, by_command, serving


@pytest.fixture(scope="module")
def suggestions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of suggestions of `server`."""
    return tmp_path_factory.mktemp("suggestions") / "a.tsv"


@pytest.fixture(scope="module")
def server(word_model: Path, suggestions: Path) -> Iterator[Server]:
    limits = ("limits.characters=2000", "limits.file_bytes=20000")
    with serving(word_model, *limits, f"suggestions={suggestions}") as server:
        server.translated("ka")
        yield server


@pytest.fixture(scope="module")
def expected(word_model: Path) -> list[str]:
    """The translations of LINES."""
    return by_command(word_model, LINES)
