"""Folders that are there as a whole or not at all."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_in_one_stroke(folder: Path) -> Iterator[Path]:
    """A temporary folder beside `folder` to write to, which takes its name, and its place, where all went well."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        yield temporary
        temporary.chmod(0o755)
        for path in temporary.iterdir():
            path.chmod(0o644)  # safetensors writes for the owner alone
        # So that a process killed here never leaves half a directory under that name.
        old = temporary.with_name(f"{temporary.name}-old")
        if folder.exists():
            folder.rename(old)
        temporary.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
