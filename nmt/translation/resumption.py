"""An output file that is whole or not there, and a command that goes on where it was killed.

Lines go to `.NAME.nmt-partial`, which at the end gets the file's own name. Beside it `.NAME.nmt-partial.json` records
the input, model and options that it is for, and how far it is certain to be on the disk.
"""

import fcntl
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from nmt.config import TranslateConfig
from nmt.errors import NMTError
from nmt.model_directory.description import find_model_directory
from nmt.storage.foreign import build, parse_json, read_mapping, sha256
from nmt.storage.whole import cannot_write, sync, write_file

SAVE_SECONDS = 5.0
"""Seconds between two times that what is written is brought to the disk."""


def what_decides(config: TranslateConfig) -> dict[str, Any]:
    """Models and keys that decide what lines become, by name; not the input."""
    settings = asdict(config)
    decode = {key: value for key, value in settings["decode"].items() if key != "batch_tokens"}
    keys = ("engine", "precision", "source_prefix", "target_prefix", "split")
    return {
        "model": [model_hash(find_model_directory(name)) for name in config.run],
        **{key: settings[key] for key in keys},
        "decode": decode,
    }


def model_hash(folder: Path) -> str:
    """The SHA-256 of a model's weights, its own or those that were exported."""
    weights = folder / "model.safetensors"
    return sha256(weights if weights.exists() else folder / "model.bin")


@dataclass
class Output:
    """A file or stream for lines; `done` lines of the input were written before, by the same command."""

    name: str
    file: BinaryIO
    done: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    """For the summary at the end, of those lines too."""

    def write(self, text: str, done: int) -> None:
        """Write the output for the input up to line `done`, at once; NMTError where the disk is full."""
        try:
            self.file.write(text.encode())
            self.file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(Path(self.name), error) from error
        self.done = done


@dataclass
class Notes:
    """The extent to which a partial file is certain to be on the disk."""

    identity: str
    """SHA-256 of all that decides what the file holds; empty where the input cannot be read a second time."""
    lines: int = 0
    """Of the input."""
    bytes: int = 0
    """Of the file."""
    counts: dict[str, int] = field(default_factory=dict)


class Partial(Output):
    """An output file that is not whole yet."""

    def __init__(self, path: Path, identity: dict[str, Any] | None) -> None:
        self.path = path
        self.partial = path.with_name(f".{path.name}.nmt-partial")
        self.notes_file = path.with_name(f".{path.name}.nmt-partial.json")
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest() if identity else ""
        self.notes, self.saved = Notes(digest), 0.0
        super().__init__(str(path), self.open())
        self.go_on()

    def open(self) -> BinaryIO:
        """The partial file; NMTError where it is a link, or another process writes it."""
        try:
            file = os.fdopen(os.open(self.partial, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666), "r+b")
        except OSError as error:
            raise NMTError(f"{self.path}: {error.strerror}") from error
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise NMTError(f"output={self.path}: another nmt is writing it; name another file") from error
        return file

    def go_on(self) -> None:
        """Find the end of what was certainly written for the same input, model and options; start anew without."""
        with suppress(NMTError):
            found = build(Notes, read_mapping(self.notes_file, parse_json), str(self.notes_file))
            if self.notes.identity == found.identity != "" and found.lines > 0 and self.ends_line(found.bytes):
                self.notes, self.done, self.counts = found, found.lines, Counter(found.counts)
        self.file.truncate(self.notes.bytes)
        self.file.seek(self.notes.bytes)

    def ends_line(self, size: int) -> bool:
        """True if the file has so many bytes, and they end with a line."""
        self.file.seek(max(size - 1, 0))
        return size > 0 and self.file.read(1) == b"\n"

    def write(self, text: str, done: int) -> None:
        super().write(text, done)
        self.notes.lines, self.notes.counts = done, dict(self.counts)
        self.notes.bytes += len(text.encode())
        if self.notes.identity and time.monotonic() - self.saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        """Bring what was written to the disk, and note how far that is."""
        sync(self.partial)
        write_file(self.notes_file, json.dumps(asdict(self.notes)) + "\n")
        self.saved = time.monotonic()

    def finish(self) -> None:
        """Give the file its own name."""
        try:
            sync(self.partial)
            self.partial.replace(self.path)
            sync(self.path.parent)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self.notes_file.unlink(missing_ok=True)

    def leave(self) -> None:
        """Keep what the same command can go on with."""
        if self.notes.identity and self.done:
            self.save()
        else:
            self.partial.unlink(missing_ok=True)
            self.notes_file.unlink(missing_ok=True)


@contextmanager
def output_file(path: Path, identity: dict[str, Any] | None) -> Iterator[Partial]:
    """A file that is whole at the end; after an error the same command goes on, where there is an identity."""
    partial = Partial(path, identity)
    try:
        yield partial
        partial.finish()
    except BaseException:
        with suppress(NMTError):  # where the disk is full, what was saved before counts
            partial.leave()
        raise
    finally:
        close(partial.file)


def close(file: BinaryIO) -> None:
    """Close a file, whatever could not be written to it: that was reported already."""
    with suppress(OSError):
        file.close()
