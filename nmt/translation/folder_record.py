"""What nmt has translated in a folder, so that a later command translates only what has changed."""

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from nmt.config import NMTError
from nmt.files import LARGE, cannot_write, read_text, write_file

RECORD = ".nmt-translations.jsonl"


@dataclass
class TranslatedFile:
    """A translation that nmt has written, or was about to write when it was stopped."""

    name: str
    """The source, as a path in the input folder."""
    format: str
    source: str
    """The SHA-256 of the source."""
    translation: str
    """The SHA-256 of the translation, which shows whether a person has edited it since."""
    options: str
    """The SHA-256 of everything else that determines the translation, such as the model."""
    before: str = ""
    """The SHA-256 of the file that the translation replaces; "" if there is none."""


class FolderRecord:
    """The record in an output folder: a line of JSON for each translation.

    Of several lines for a file, the last one counts.
    A line is written before its file. If nmt is killed between the two, the file is still the one
    `before`, and the next command writes it.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / RECORD
        self.files = dict[str, TranslatedFile]()
        self.stream: IO[str] | None = None
        self.lines = 0
        if self.path.is_file():
            for line in read_text(self.path, LARGE).splitlines():
                self.read(line)

    def read(self, line: str) -> None:
        """Read a line; NMTError if it is not one of a record."""
        self.lines += 1
        try:
            values: Any = json.loads(line)
            name = values.pop("file")
            self.files[name] = TranslatedFile(**values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            problem = "not a record of nmt; delete it to translate all files again"
            raise NMTError(f"{self.path}: line {self.lines}: {problem}") from error

    def add(self, name: str, file: TranslatedFile) -> None:
        """Record a translation that is about to be written."""
        self.files[name] = file
        self.lines += 1
        try:
            if self.stream is None:
                self.stream = self.path.open("a", encoding="utf-8")
            self.stream.write(line_of(name, file))
            self.stream.flush()
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def close(self) -> None:
        """Close the record, without the lines that later ones replace."""
        if self.stream is None:
            return
        self.stream.close()
        if self.lines > len(self.files):
            lines = [line_of(name, self.files[name]) for name in sorted(self.files)]
            write_file(self.path, "".join(lines))


def line_of(name: str, file: TranslatedFile) -> str:
    # In ASCII, because names of files need not be valid Unicode.
    return json.dumps({"file": name, **asdict(file)}) + "\n"


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def hash_of_file(path: Path) -> str:
    """The SHA-256 of a file; "" if it does not exist."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
