"""What nmt has translated in a folder, so that a later command translates only what has changed."""

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from nmt.config import NMTError, build_stored
from nmt.files import LARGE, parse_json, read_mapping, write_file

RECORD = ".nmt-translations.json"
SAVE_SECONDS = 5.0
"""Seconds between saves, because a record of thousands of files takes long to write."""


@dataclass
class TranslatedFile:
    """A translation that nmt has written."""

    source: str
    """The SHA-256 of the source."""
    translation: str
    """The SHA-256 of the translation, which shows whether a person has edited it since."""
    options: str
    """The SHA-256 of everything else that determines the translation, such as the model."""


@dataclass
class Record:
    """The translations in an output folder, by their names."""

    files: dict[str, dict[str, str]] = field(default_factory=dict)


class FolderRecord:
    """The record in an output folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / RECORD
        self.files = dict[str, TranslatedFile]()
        self.saved = 0.0
        if self.path.is_file():
            tree = read_mapping(self.path, parse_json, LARGE)
            record = build_stored(Record, tree, str(self.path))
            try:
                for name, values in record.files.items():
                    self.files[name] = TranslatedFile(**values)
            except TypeError as error:
                problem = "not a record of nmt; delete it to translate all files again"
                raise NMTError(f"{self.path}: {problem}") from error

    def add(self, name: str, file: TranslatedFile) -> None:
        """Add a translation, and save the record from time to time."""
        self.files[name] = file
        if time.monotonic() - self.saved > SAVE_SECONDS:
            self.save()

    def save(self) -> None:
        if not self.files:
            return
        files = {name: asdict(self.files[name]) for name in sorted(self.files)}
        write_file(self.path, json.dumps({"files": files}, indent=1, ensure_ascii=False) + "\n")
        self.saved = time.monotonic()


def hash_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
