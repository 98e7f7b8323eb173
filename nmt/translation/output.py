"""Output files that appear once they are complete, and that a later command can resume.

Until then, the lines written so far are in `.NAME.nmt-partial`. Next to it,
`.NAME.nmt-partial.json` records the input, model and options, and how much of the output is on
disk.

Partial files are not compressed, so that a job can resume after any line. nmt compresses an
output such as `out.gz` when it is complete.
"""

import fcntl
import json
import os
import shlex
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO

from nmt.config import NMTError, build_stored
from nmt.files import cannot_write, parse_json, read_mapping, sync, write_file
from nmt.text import MAGIC, compressor
from nmt.translation.identity import Identity, changed_names, is_same

COPY_BYTES = 2**20
"""The number of bytes to compress at once."""
PARTIAL_SUFFIX = ".nmt-partial"
SAVE_SECONDS = 5.0
"""Seconds between saves, each of which syncs the file to disk."""


@dataclass
class Notes:
    """The progress of an output, including earlier commands that this command resumes."""

    identity: Identity = ""
    lines: int = 0
    """The number of input lines that are done."""
    bytes: int = 0
    """The number of output bytes written for them."""
    counts: dict[str, int] = field(default_factory=Counter)
    """The number of lines with each note, for the final summary."""


class Output:
    """A stream to write lines to."""

    def __init__(self, name: str, file: BinaryIO) -> None:
        self.name = name
        self.file = file
        self.notes = Notes()
        self.saved = 0.0

    def write(self, text: str | bytes, lines: int) -> None:
        """Write and flush the output up to input line `lines`; NMTError if the disk is full."""
        # Save first: at this point, all earlier lines have been counted in the notes, whether
        # callers count a line before or after they write it.
        if time.monotonic() - self.saved > SAVE_SECONDS:
            self.save()
        content = text.encode() if isinstance(text, str) else text
        try:
            self.file.write(content)
            self.file.flush()
        # Not an error: the reader, such as `head`, has seen enough. The caller ends quietly.
        except BrokenPipeError:
            raise
        except OSError as error:
            raise cannot_write(Path(self.name), error) from error
        # Counted after the flush, so that notes never claim more than the file has.
        self.notes.lines = lines
        self.notes.bytes += len(content)

    def save(self) -> bool:
        """Save what is done; False if there is nothing to resume, as in a stream."""
        return False


class OutputFile(Output):
    """A file whose lines are in `partial` until it is complete and moved to `path`."""

    def __init__(
        self, name: str, file: BinaryIO, partial: Path, path: Path, overwrite: bool
    ) -> None:
        super().__init__(name, file)
        self.partial = partial
        self.path = path
        self.overwrite = overwrite
        self.before_renaming: Callable[[Path], None] = ignore

    def recorded(self) -> Notes | None:
        """The notes of an earlier command; None if there are none that fit the partial file."""
        try:
            tree = read_mapping(notes_of(self.partial), parse_json)
            notes = build_stored(Notes, tree, "notes")
        # Notes that are missing or damaged are no error; the output then starts again.
        except NMTError:
            return None
        if not notes.identity or notes.lines <= 0 or notes.bytes <= 0:
            return None
        # A file that is shorter than its notes, or is cut within a line, is that of another job.
        self.file.seek(notes.bytes - 1)
        ends_line = self.file.read(1) == b"\n"
        return notes if ends_line else None

    def check_same(self, identity: Identity, before: Mapping[str, Any]) -> None:
        """Raise NMTError if the lines in the partial file are those of another command."""
        notes = self.recorded()
        if notes is None or is_same(notes.identity, identity, before):
            return
        changed = ", ".join(changed_names(notes.identity, identity, before))
        lines = "1 line" if notes.lines == 1 else f"{notes.lines:,} lines"
        raise NMTError(
            f"output={self.name}: a stopped command has written {lines} with "
            f"another {changed}; repeat that command to resume it, or pass overwrite=true to "
            "start again"
        )

    def resume(self, identity: Identity, before: Mapping[str, Any]) -> None:
        """Continue after the lines of an earlier command with the same identity.

        Start again if there was none, or if its notes do not fit the partial file.
        """
        notes = self.recorded()
        self.notes.identity = identity
        if notes and identity and is_same(notes.identity, identity, before):
            # JSON gave a plain dict, in which a note that has not occurred yet has no count.
            notes.counts = Counter(notes.counts)
            self.notes = notes
        # What was written after the last save may be incomplete, and is not counted in the notes.
        self.file.truncate(self.notes.bytes)
        self.file.seek(self.notes.bytes)

    def save(self) -> bool:
        """Sync the output to disk, then record how much is done.

        Returns False if there would be nothing to resume.
        """
        if not self.notes.identity or not self.notes.lines:
            return False
        sync(self.partial)
        # In this order: after a power failure, the notes must not count lines that the disk lacks.
        write_file(notes_of(self.partial), json.dumps(vars(self.notes)) + "\n")
        self.saved = time.monotonic()
        return True

    def complete(self) -> None:
        """Move the file to its path, compressed if its name asks for it."""
        try:
            sync(self.partial)
            self.before_renaming(self.partial)
            content = self.partial
            suffix = compression_of(self.name, self.path)
            if suffix:
                self.save()  # if the computer stops now, all lines are done
                content = compressed(self.partial, suffix)
            if not self.overwrite and has_content(self.path):
                raise NMTError(
                    f"output={self.name}: another program has written it since this job began; "
                    "move it away, and repeat this command, which keeps its lines"
                )
            # Atomic, so that another process sees the complete output or none.
            content.replace(self.path)
            sync(self.path.parent)  # otherwise a power failure could undo the renaming
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self.remove()

    def remove(self) -> None:
        """Remove the partial file and its notes."""
        self.partial.unlink(missing_ok=True)
        notes_of(self.partial).unlink(missing_ok=True)

    @contextmanager
    def completed(self, identity: Identity, before: Mapping[str, Any]) -> Iterator[None]:
        """Resume the file, and complete it at the end of the block.

        After an error, keep what a later command can resume.
        """
        try:
            self.resume(identity, before)
            yield
            self.complete()
        # Also Ctrl-C: a stopped job must be able to resume.
        except BaseException:
            with suppress(NMTError):  # if the disk is full, the last successful save counts
                if not self.save():
                    self.remove()
            raise


def lines_done(partial: Path) -> int:
    """The number of lines that a partial file has, by its notes; 0 if it has none yet."""
    try:
        tree = read_mapping(notes_of(partial), parse_json)
        return build_stored(Notes, tree, "notes").lines
    except NMTError:
        return 0


def ignore(partial: Path) -> None:
    """Do nothing with a complete file before it is renamed."""


def has_content(path: Path) -> bool:
    """Whether replacing a file would lose something.

    An empty file may come from `touch` or `mktemp`.
    """
    return path.exists() and path.stat().st_size > 0


def partial_of(path: Path) -> Path:
    """The file that has the lines of an output until it is complete."""
    return path.with_name(f".{path.name}{PARTIAL_SUFFIX}")


def notes_of(partial: Path) -> Path:
    return partial.with_name(f"{partial.name}.json")


def create(path: Path, flags: int) -> int:
    """Open a file of ours, and return its descriptor.

    Other users may have replaced the file by a link, which is not followed.
    """
    # O_CLOEXEC: a process that nmt starts must not hold the lock after nmt has exited.
    flags |= os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o666)


def compression_of(name: str, path: Path) -> str:
    """The suffix of a compressed output; empty for other outputs.

    `name` may be a link to `path`. If both have such a suffix, that of `name` counts.
    """
    for suffix in (Path(name).suffix, path.suffix):
        if suffix in MAGIC:
            return suffix
    return ""


def compressed(partial: Path, suffix: str) -> Path:
    """Write a compressed copy of a partial file next to it, and return its path.

    Raises OSError if the disk is full.
    """
    path = partial.with_name(f"{partial.name}{suffix}")
    try:
        # Truncated, because a killed command may have left half a copy.
        descriptor = create(path, os.O_WRONLY | os.O_TRUNC)
        with (
            os.fdopen(descriptor, "wb") as file,
            partial.open("rb") as source,
            compressor(file, suffix) as target,
        ):
            shutil.copyfileobj(source, target, COPY_BYTES)
        sync(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return path


def check_folder(name: str) -> None:
    """Raise NMTError if the folder of an output is missing."""
    folder = Path(name).parent
    if not folder.is_dir():
        # Not created: the name may be mistyped, and the file would be hard to find.
        advice = f"create it with mkdir -p {shlex.quote(str(folder))}"
        raise NMTError(f"output={name}: no folder {folder}; {advice}")


def open_file(name: str, overwrite: bool) -> Output:
    """Open a file, device or pipe for writing."""
    check_folder(name)
    try:
        path = Path(name)
        # Written directly: a rename would replace the device itself by a file.
        if path.exists() and not path.is_file():  # a device, or a pipe
            return Output(name, path.open("wb"))
        # Replace what a link names, not the link, which may be /dev/stdout.
        path = path.resolve()
        if not overwrite and has_content(path):
            raise NMTError(
                f"output={name} exists: pass overwrite=true to replace it, or name another file"
            )
        partial = partial_of(path)
        # Not truncated, because an earlier command may have written lines to resume after.
        file = os.fdopen(create(partial, os.O_RDWR), "r+b")
        lock(file, partial, name)
    except OSError as error:
        raise NMTError(f"{name}: {error.strerror}") from error
    return OutputFile(name, file, partial, path, overwrite)


def lock(file: BinaryIO, partial: Path, name: str) -> None:
    """Lock a partial file; NMTError if another process is writing it or has just completed it."""
    refusal = f"output={name}: another nmt process is writing it; wait for it, or name another file"
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise NMTError(refusal) from error
    # Between opening and locking, another process may have completed its output. The opened file
    # is then the complete one, which must not be truncated.
    is_same_file = partial.exists() and os.path.samestat(os.fstat(file.fileno()), partial.stat())
    if not is_same_file:
        file.close()
        raise NMTError(refusal)


@contextmanager
def open_output(
    name: str,
    identity: Identity = "",
    overwrite: bool = False,
    before: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Output]:
    """Open an output; `-` is standard output.

    A file appears once it is complete. After an error, a command with the same identity resumes it,
    unless `overwrite` is set. `before` has the values of options that the notes of an older nmt
    lack. A file whose name ends in .gz, .bz2, .xz or .zst is compressed.

    Raises NMTError if the file exists, if another process is writing it, or if the partial file is
    a link.
    """
    if name == "-":
        if sys.stdout is None:
            raise NMTError("standard output is closed: name a file with output=FILE")
        yield Output("standard output", sys.stdout.buffer)
        return
    output = open_file(name, overwrite)
    try:
        if isinstance(output, OutputFile):
            if overwrite:
                # Without notes, `resume` starts again, also if the same command wrote the lines.
                notes_of(output.partial).unlink(missing_ok=True)
            else:
                output.check_same(identity, before)
            with output.completed(identity, before):
                yield output
        else:
            yield output
    finally:
        with suppress(OSError):  # `write` has already reported the error
            output.file.close()
