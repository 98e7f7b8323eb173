"""What `nmt push` uploads: the files of a model directory, and of exports."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt import files
from nmt.config import shown
from nmt.plugins.exchange.hub_files import CARD
from nmt.plugins.exchange.hub_names import in_bytes

SIZE_WIDTH = 10
MOST_NAMES = 5
"""The maximum number of files that a notice names."""


@dataclass(frozen=True)
class Upload:
    """A file to upload."""

    name: str
    """Its path in the repository."""
    content: Path | bytes

    @property
    def size(self) -> int:
        if isinstance(self.content, bytes):
            return len(self.content)
        return self.content.stat().st_size

    def __str__(self) -> str:
        return f"{in_bytes(self.size):>{SIZE_WIDTH}}  {self.name}"


def uploads_of_model(folder: Path, card: str) -> list[Upload]:
    """The files of a model directory, with another text of README.md.

    NMTError if a file is missing, or is a link that could lead to a file that nobody means.
    """
    uploads = []
    for name in files.MODEL_FILES:
        path = folder / name
        files.check_regular(path)
        uploads.append(Upload(name, path))
    for name in files.added_files():
        path = folder / name
        if path.exists():
            files.check_regular(path)
            uploads.append(Upload(name, path))
    return [*uploads, Upload(CARD, card.encode())]


def uploads_of_export(folder: Path) -> list[Upload]:
    """The files of an export that has just been written, in a folder of the same name."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [Upload(path.relative_to(folder.parent).as_posix(), path) for path in paths]


def left_out(folder: Path) -> str:
    """The names of what else is in a model directory, which stays there."""
    uploaded = {*files.MODEL_FILES, *files.added_files(), CARD}
    names = sorted(path.name for path in folder.iterdir() if path.name not in uploaded)
    listed = [shown(name) for name in names[:MOST_NAMES]]
    if len(names) > MOST_NAMES:
        listed.append(f"{len(names) - MOST_NAMES} more")
    return ", ".join(listed)


def local_paths(tree: Any) -> Iterator[str]:
    """The absolute paths in a model's record, which says where its corpus was."""
    if isinstance(tree, dict):
        for value in tree.values():
            yield from local_paths(value)
    elif isinstance(tree, list):
        for value in tree:
            yield from local_paths(value)
    elif isinstance(tree, str) and tree.startswith(("/", "~")):
        yield tree
