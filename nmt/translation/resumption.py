"""An output file that is whole or not there, and a command that resumes after it was killed.

Lines go to `.NAME.nmt-partial`, which is renamed at the end. `.NAME.nmt-partial.json` beside it says which input, model
and options it is for, and how much of it is safely on the disk.
"""

import fcntl
import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from nmt.config import JobConfig, TranslatorOptions, build, to_tree
from nmt.errors import NMTError
from nmt.files import cannot_write, find_model_directory, parse_json, read_mapping, sha256, sync, write_file

UNDECISIVE = ("run", "input", "output", "text", "format", "buffer", "device", "devices", "threads", "ray", "decode")
"""Keys that decide nothing, or are looked at in another way. A key that is new decides."""
SAVE_SECONDS = 5.0
"""Seconds between saves, which bring the file to the disk."""


def what_decides(config: JobConfig | TranslatorOptions) -> dict[str, Any]:
    """The models and keys, by name, that decide what lines become; without the input."""
    settings = to_tree(config)
    if settings.get("glossary"):
        settings["glossary"] = sha256(Path(settings["glossary"]).resolve())
    decode = {key: value for key, value in settings["decode"].items() if key != "batch_tokens"}
    return {
        "model": [model_hash(find_model_directory(name)) for name in config.run],
        **{key: value for key, value in settings.items() if key not in UNDECISIVE},
        "decode": decode,
    }


def model_hash(folder: Path) -> str:
    """The SHA-256 of a model's weights, ours or exported ones."""
    weights = folder / "model.safetensors"
    return sha256(weights if weights.exists() else folder / "model.bin")


@dataclass
class Notes:
    """The content of an output."""

    identity: str = ""
    """SHA-256 of all that decides what a file will hold; empty if the command cannot go on with it."""
    lines: int = 0
    """Lines of the input that are done."""
    bytes: int = 0
    """Bytes written for them."""
    counts: dict[str, int] = field(default_factory=Counter)
    """Lines of each kind, for the summary at the end."""


class Output:
    """A file or stream for lines, with notes of what was written to it, also by an earlier command."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name, self.file, self.notes = name, file, Notes()

    def write(self, text: str | bytes, lines: int) -> None:
        """Write the output for the input up to line `lines`, at once; NMTError if the disk is full."""
        content = text.encode() if isinstance(text, str) else text
        try:
            self.file.write(content)
            self.file.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(Path(self.name), error) from error
        self.notes.lines, self.notes.bytes = lines, self.notes.bytes + len(content)


class Partial(Output):
    """An output file that is not whole yet."""

    def __init__(self, path: Path, identity: dict[str, Any] | None) -> None:
        self.path, self.saved = path, 0.0
        self.partial = path.with_name(f".{path.name}.nmt-partial")
        self.notes_file = path.with_name(f".{path.name}.nmt-partial.json")
        super().__init__(str(path), self.open())
        if identity:
            self.notes.identity = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
            self.go_on()
        self.file.truncate(self.notes.bytes)
        self.file.seek(self.notes.bytes)

    def open(self) -> BinaryIO:
        """The partial file; NMTError if it is a link, or another process is writing it."""
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
        """Take over the notes of an earlier command with the same identity, if the file agrees with them."""
        with suppress(NMTError):
            found = build(Notes, read_mapping(self.notes_file, parse_json), str(self.notes_file))
            self.file.seek(max(found.bytes - 1, 0))
            ends_line = found.bytes > 0 and self.file.read(1) == b"\n"
            if found.identity == self.notes.identity and found.lines > 0 and ends_line:
                self.notes = found
                self.notes.counts = Counter(found.counts)

    def write(self, text: str | bytes, lines: int) -> None:
        # Notes are complete here: callers count a line after they have written it.
        if self.notes.identity and self.notes.lines and time.monotonic() - self.saved > SAVE_SECONDS:
            self.save()
        super().write(text, lines)

    def save(self) -> None:
        """Bring what was written to the disk, then note how much that is."""
        sync(self.partial)
        write_file(self.notes_file, json.dumps(vars(self.notes)) + "\n")
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
        """Keep what the same command can go on with, and nothing else."""
        if self.notes.identity and self.notes.lines:
            self.save()
        else:
            self.partial.unlink(missing_ok=True)
            self.notes_file.unlink(missing_ok=True)


@contextmanager
def output_file(path: Path, identity: dict[str, Any] | None) -> Iterator[Partial]:
    """A file that is whole at the end. After an error, a command with the same identity goes on with it."""
    partial = Partial(path, identity)
    try:
        yield partial
        partial.finish()
    except BaseException:
        with suppress(NMTError):  # if the disk is full, the last save counts
            partial.leave()
        raise
    finally:
        close(partial.file)


def close(file: BinaryIO) -> None:
    """Close a file. What could not be written to it was reported before."""
    with suppress(OSError):
        file.close()
