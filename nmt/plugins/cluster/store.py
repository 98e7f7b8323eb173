"""Finished blocks, which a later command of the same job keeps.

OUTPUT.blocks/job.json         what determines the translations: model, options, size of blocks
OUTPUT.blocks/blocks/NAME/N    block N of the input NAME: a line with its record, then its payload
OUTPUT.blocks/files/NAME       the record of a file whose blocks have been joined
OUTPUT.blocks/.lock            held by the process that works in the folder
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from nmt.config import NMTError, build_stored
from nmt.plugins.cluster import places
from nmt.plugins.cluster.contents import Content
from nmt.plugins.cluster.inputs import InputFile
from nmt.translation import changed_names

SUFFIX = ".blocks"


@dataclass
class BlockRecord:
    """What a finished block was computed from, and its hash."""

    identity: str
    """The hash of everything that determines translations."""
    first: int
    rows: int
    input_sha256: str
    sha256: str
    """The hash of the payload."""
    counts: dict[str, int] = field(default_factory=dict)
    """Note for the user -> number of lines with it."""


@dataclass
class FileRecord:
    """What a finished file was computed from."""

    identity: str
    rows: int
    blocks: int
    input_sha256: str
    """The hash of the hashes of its blocks."""
    output_bytes: int
    source: str = ""
    """The version of the input that was read, see `version_of`; empty: unknown."""


Mapper = Callable[[Callable[[int], Any], Iterable[int]], Iterator[Any]]
"""As `map`, but perhaps with threads."""


class Store:
    """The finished blocks of a job."""

    def __init__(self, output: str, identity: dict[str, Any]) -> None:
        self.output = output
        self.folder = f"{places.plain(output)}{SUFFIX}"
        self.identity = identity
        content = json.dumps(identity, sort_keys=True)
        self.hash = hashlib.sha256(content.encode()).hexdigest()
        self.is_new = False
        """Whether no earlier command has left anything."""

    def compare(self, before: dict[str, Any]) -> None:
        """Raise NMTError if the folder has blocks of another job.

        `before` has the values of options that an older nmt did not record.
        """
        path = f"{self.folder}/job.json"
        recorded = places.read(path)
        if recorded is None:
            self.is_new = True
            return
        earlier = as_mapping(recorded, path).get("identity")
        changed = changed_names(earlier, self.identity, before)
        if changed:
            raise NMTError(
                f"output={self.output}: a stopped command has written {self.folder} with another "
                f"{', '.join(changed)}; repeat that command to resume it, or pass overwrite=true "
                "to start again"
            )
        # An option that this version added has the value that the older one used.
        content = json.dumps(earlier, sort_keys=True)
        self.hash = hashlib.sha256(content.encode()).hexdigest()

    def begin(self) -> None:
        """Record the job, before its blocks."""
        if self.is_new:
            content = json.dumps({"identity": self.identity}, indent=2) + "\n"
            places.write(f"{self.folder}/job.json", content.encode())

    def clear(self) -> None:
        """Forget all blocks, before other ones are written."""
        for name in ("blocks", "files", "job.json"):
            places.remove(f"{self.folder}/{name}")
        places.remove_temporary(self.folder)

    def block_path(self, file: InputFile, number: int) -> str:
        return f"{self.folder}/blocks/{file.name}/{number:08}"

    def numbers(self, file: InputFile) -> set[int]:
        """The numbers of the stored blocks of a file."""
        if self.is_new:
            return set()
        names = places.names_in(f"{self.folder}/blocks/{file.name}")
        return {int(name) for name in names if name.isdigit()}

    def counts_of(self, file: InputFile, content: Content) -> dict[str, int] | None:
        """The notes of a finished block; None if it is missing or damaged.

        Raises NMTError if it was computed from something else.
        """
        path = self.block_path(file, content.number)
        stored = places.read(path)
        if stored is None:
            return None
        record, payload = split_block(stored, path)
        # Only a whole block counts, and a damaged one is computed again.
        if record is None or hashlib.sha256(payload).hexdigest() != record.sha256:
            return None
        expected = (self.hash, content.first, content.rows, content.digest)
        if (record.identity, record.first, record.rows, record.input_sha256) != expected:
            raise self.changed(file)
        return record.counts

    def changed(self, file: InputFile) -> NMTError:
        return NMTError(
            f"{file.path}: has changed since some of its blocks were computed; pass "
            "overwrite=true to start again"
        )

    def add(
        self, file: InputFile, content: Content, payload: bytes, counts: dict[str, int]
    ) -> None:
        """Write a finished block."""
        sha256 = hashlib.sha256(payload).hexdigest()
        record = BlockRecord(self.hash, content.first, content.rows, content.digest, sha256, counts)
        header = json.dumps(asdict(record)).encode()
        places.write(self.block_path(file, content.number), header + b"\n" + payload)

    def payloads(
        self, file: InputFile, blocks: int, input_sha256: str, mapper: Mapper = map
    ) -> Iterator[bytes]:
        """The payloads of the blocks of a file, in order, which `mapper` reads.

        Raises NMTError if one is missing, damaged, or of another job, which may have written to
        the folder meanwhile, because remote file systems have no locks.
        """

        def read(number: int) -> tuple[BlockRecord, bytes]:
            return self.whole_block(self.block_path(file, number))

        digest = hashlib.sha256()
        for record, payload in mapper(read, range(blocks)):
            digest.update(record.input_sha256.encode())
            yield payload
        if digest.hexdigest() != input_sha256:
            raise self.mixed(f"{self.folder}/blocks/{file.name}")

    def whole_block(self, path: str) -> tuple[BlockRecord, bytes]:
        """The record and the payload of a block; NMTError if it is damaged or of another job."""
        record, payload = split_block(places.read(path) or b"", path)
        if record is None or hashlib.sha256(payload).hexdigest() != record.sha256:
            raise NMTError(f"{path}: missing or damaged; repeat the command to compute it again")
        if record.identity != self.hash:
            raise self.mixed(path)
        return record, payload

    def mixed(self, path: str) -> NMTError:
        return NMTError(
            f"{path}: another command has written to it at the same time; make sure that only one "
            f"writes output={self.output}, and pass overwrite=true"
        )

    def file_record(self, file: InputFile) -> FileRecord | None:
        if self.is_new:
            return None
        path = f"{self.folder}/files/{file.name}"
        content = places.read(path)
        return (
            None if content is None else build_stored(FileRecord, as_mapping(content, path), path)
        )

    def record(self, file: InputFile, record: FileRecord) -> None:
        """Record a file that is joined."""
        path = f"{self.folder}/files/{file.name}"
        places.write(path, (json.dumps(asdict(record)) + "\n").encode())

    def remove_blocks(self, file: InputFile) -> None:
        """Remove the blocks of a joined file."""
        places.remove(f"{self.folder}/blocks/{file.name}")


def as_mapping(content: bytes, path: str) -> dict[str, Any]:
    """A record in JSON; NMTError if it is damaged."""
    try:
        record = json.loads(content)
    except ValueError as error:
        raise NMTError(f"{path}: damaged; pass overwrite=true to start again") from error
    if not isinstance(record, dict):
        raise NMTError(f"{path}: damaged; pass overwrite=true to start again")
    return record


def split_block(content: bytes, path: str) -> tuple[BlockRecord | None, bytes]:
    """The record and the payload of a stored block; no record if it is damaged."""
    header, _, payload = content.partition(b"\n")
    try:
        return build_stored(BlockRecord, as_mapping(header, path), path), payload
    except NMTError:
        return None, b""
