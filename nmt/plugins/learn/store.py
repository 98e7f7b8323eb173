"""The models of a run that has learned: the parents are kept, and one of them is in use.

learned/learned.json        marks the folder
learned/models/HASH         each model, named by the beginning of the SHA-256 of its weights
learned/1, learned/2, ...   what each `nmt learn` did, with record.json

Which model is in use follows from the weights in the run alone, so no command can leave the records
and the model in disagreement.
"""

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from nmt import files
from nmt.config import NMTError
from nmt.files import parse_json, read_description, read_mapping
from nmt.plugins.learn.exchange import exchange

WEIGHTS = "model.safetensors"
RECORD = "record.json"
IDENTITY = "identity"
TESTS = ("held_out", "general")
"""The test sets whose scores a record has."""
WORSE = "worse.tsv"
"""Written after the tests, with the held-out lines that became worse."""
MARK = "learned.json"
NAME_LENGTH = 16
"""The digits of a hash in the name of a folder."""


@dataclass
class Record:
    """What a command learned, and why its model was delivered or not."""

    number: int
    identity: str
    """The SHA-256 of everything that determines the new weights; the date is not part of it."""
    parent: str
    """The SHA-256 of the weights before."""
    model: str
    """The SHA-256 of the new weights."""
    delivered: bool
    verdict: str
    """Why the model was delivered or not."""
    strength: float
    corrections: dict[str, Any] = field(default_factory=dict)
    """The SHA-256 of each file and of the usable corrections, and the numbers of lines."""
    tests: dict[str, Any] = field(default_factory=dict)
    """Scores, signatures, p-values and losses."""
    settings: dict[str, Any] = field(default_factory=dict)
    """The seed, the updates, and what else the training depended on."""
    versions: dict[str, str] = field(default_factory=dict)


class Store:
    """The models and records of a run or a model directory."""

    def __init__(self, run: str) -> None:
        """Raises NMTError if there is no model."""
        # Training moves links such as runs/latest.
        if Path(run).is_symlink():
            run = str(Path(run).resolve())
        self.model = files.find_model_directory(run)
        is_in_run = self.model.name == "model"
        # The folder of a model is replaced as a whole, so the records are never inside it.
        if is_in_run:
            self.home = self.model.with_name("learned")
        else:
            self.home = self.model.with_name(f"{self.model.name}.learned")

    def current(self) -> str:
        """The SHA-256 of the weights in use."""
        # Asked often, and large weights take seconds to hash.
        return files.remembered_sha256(self.model / WEIGHTS)

    def records(self) -> list[Record]:
        """All readable records in order."""
        records = map(read_record, self.record_paths())
        return [record for record in records if record]

    def unreadable(self) -> list[Path]:
        """The damaged records in order; only what they say is lost, not a model."""
        return [path for path in self.record_paths() if read_record(path) is None]

    def record_paths(self) -> list[Path]:
        paths = [path for path in self.home.glob(f"*/{RECORD}") if path.parent.name.isdecimal()]
        return sorted(paths, key=lambda path: int(path.parent.name))

    def open(self) -> None:
        """Mark the folder, so that `nmt runs` knows it."""
        self.home.mkdir(parents=True, exist_ok=True)
        content = {"learned": "corrections", "format_version": 1}
        files.write_file(self.home / MARK, json.dumps(content) + "\n")

    def write(self, record: Record) -> None:
        content = json.dumps(asdict(record), indent=2, ensure_ascii=False) + "\n"
        path = self.path_of(record)
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_file(path, content)

    def path_of(self, record: Record) -> Path:
        return self.home / str(record.number) / RECORD

    def remove_unfinished(self, but: str = "") -> int:
        """Remove what killed commands left, except the attempt with the identity `but`.

        The caller holds the lock of `home`. Returns the number of removed attempts. An attempt that
        a remaining process of a killed command still uses stays.
        """
        for folder in (self.home, self.home / "models"):
            files.remove_leftovers(folder)
        count = 0
        for folder in self.home.iterdir():
            is_attempt = folder.name.isdecimal() and folder.is_dir()
            if not is_attempt or is_finished(folder) or identity_of(folder) == but:
                continue
            if not is_in_use(folder):
                shutil.rmtree(folder)
                count += 1
        return count

    def folder_of(self, weights: str) -> Path:
        """Where the model with these weights is kept."""
        return self.home / "models" / weights[:NAME_LENGTH]

    def keep(self, folder: Path) -> str:
        """Keep a copy of a model, unless there is one; returns the hash of its weights."""
        weights = files.sha256(folder / WEIGHTS)
        kept = self.folder_of(weights)
        if not kept.exists():
            copy_model(folder, kept)
        return weights

    def keep_files_in_use(self) -> None:
        """Keep the files beside the weights as they are now, such as those of `nmt calibrate`."""
        copy_model(self.model, self.folder_of(self.current()))

    def use(self, weights: str) -> list[str]:
        """Put a kept model in the place of the one in use; returns the names of lost exports.

        Programs that read the folder find the old model or the new one, whenever this process is
        killed. Raises NMTError if the model is not kept or is damaged.
        """
        kept = self.folder_of(weights)
        if not (kept / WEIGHTS).is_file():
            raise NMTError(f"{kept}: no such model; it was removed, so it cannot be used again")
        if files.sha256(kept / WEIGHTS) != weights:
            raise NMTError(f"{kept / WEIGHTS}: has changed since `nmt learn` wrote it; remove it")
        self.keep_files_in_use()
        exports = sorted(path.name for path in self.model.iterdir() if path.is_dir())
        staged = self.home / "staged"
        copy_model(kept, staged)
        if exchange(staged, self.model):
            # It now contains the model that was in use, which is also kept.
            shutil.rmtree(staged, ignore_errors=True)
        else:
            # The file system cannot exchange folders. For a moment, there is no model here.
            copy_model(kept, self.model)
        return exports

    def history(self) -> Iterator[tuple[Record, bool]]:
        """The records of delivered models, oldest first, and whether each is part of the one in
        use."""
        delivered = [record for record in self.records() if record.delivered]
        chain = set[int]()
        weights: str | None = self.current()
        rest = list(delivered)
        seen = set[str]()
        while weights and weights not in seen:
            # Models may return to earlier weights, so the newest record of a model counts.
            record = newest(rest, weights)
            if record:
                chain.add(record.number)
                rest = rest[: rest.index(record)]
                weights = record.parent
            else:
                seen.add(weights)
                weights = self.stated_parent(weights)
        for record in delivered:
            yield record, record.number in chain

    def latest(self) -> Record | None:
        """The record of the model in use; None for a model without one."""
        delivered = [record for record in self.records() if record.delivered]
        return newest(delivered, self.current())

    def parent(self) -> str | None:
        """The SHA-256 of the weights before those in use; None if the model has not learned."""
        record = self.latest()
        return record.parent if record else self.stated_parent(self.current())

    def stated_parent(self, weights: str) -> str | None:
        """The weights before, as the model's own description says, which needs no record."""
        folder = self.model if weights == self.current() else self.folder_of(weights)
        try:
            learned = read_description(folder).training.get("learned")
        except NMTError:  # the model was removed or is damaged
            return None
        parent = learned.get("parent") if isinstance(learned, dict) else None
        return parent if isinstance(parent, str) else None

    def other_models(self) -> list[Path]:
        """The kept models except the one in use."""
        in_use = self.folder_of(self.current())
        folders = [path.parent for path in sorted(self.home.glob(f"models/*/{WEIGHTS}"))]
        return [folder for folder in folders if folder != in_use]

    def disk_bytes(self) -> int:
        """The size of all models that are kept."""
        return sum(path.stat().st_size for path in self.home.glob(f"models/*/{WEIGHTS}"))


def identity_of(folder: Path) -> str:
    """What determines the weights of an attempt; empty if its folder is incomplete."""
    path = folder / IDENTITY
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def is_finished(folder: Path) -> bool:
    """Whether the command of an attempt ended, even if its record has been removed since."""
    return (folder / RECORD).exists() or (folder / WORSE).exists()


def is_in_use(folder: Path) -> bool:
    """Whether a process holds a lock in a folder."""
    with ExitStack() as locks:
        try:
            for lock in folder.rglob(f"*{files.LOCK}"):
                locks.enter_context(files.locked_file(lock, True, f"{lock}: in use"))
        except NMTError:
            return True
    return False


def newest(records: Sequence[Record], weights: str) -> Record | None:
    """The last of the records whose model has these weights."""
    for record in reversed(records):
        if record.model == weights:
            return record
    return None


def read_record(path: Path) -> Record | None:
    """The record in a file; None if it is damaged."""
    try:
        record = Record(**read_mapping(path, parse_json))
        numbers = [record.corrections["training"]]
        for name in TESTS:
            test = record.tests[name]
            numbers += [test["before"], test["after"]]
    except (NMTError, TypeError, KeyError):
        return None
    is_valid = all(isinstance(number, int | float) for number in numbers)
    is_named = isinstance(record.model, str) and isinstance(record.parent, str)
    return record if is_valid and is_named and str(record.number) == path.parent.name else None


def copy_model(folder: Path, copy: Path) -> None:
    """Copy the files of a model into a new folder, which replaces `copy` if that exists.

    Exports of the model are folders, which are not copied: they can be written again.
    """
    copy.parent.mkdir(parents=True, exist_ok=True)
    with files.whole_folder(copy) as temporary:
        for path in folder.iterdir():
            if path.name == WEIGHTS:
                link_or_copy(path, temporary / path.name)
            elif path.is_file():
                shutil.copyfile(path, temporary / path.name)


def link_or_copy(file: Path, copy: Path) -> None:
    """Make a second name of a file, which takes no space, or else copy it."""
    # nmt never writes into the weights of a model, but replaces them. People edit its other files.
    try:
        os.link(file.resolve(), copy)
    except OSError:  # a file system without links, or another file system
        shutil.copyfile(file, copy)
