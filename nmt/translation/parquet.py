"""A corpus of many files, cut into blocks of lines that become Parquet files of translations."""

import hashlib
import json
import lzma
import os
import socket
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nmt.errors import NMTError, one_line
from nmt.storage.foreign import sha256
from nmt.storage.whole import write_file
from nmt.text.files import open_binary
from nmt.translation.job import input_lines
from nmt.translation.translator import Translation

DESCRIPTION = "_translation.json"
"""Beside the Parquet files, in a name that their readers pass over."""


@dataclass(frozen=True)
class Block:
    """Lines, or rows of Parquet, that follow one another in a file."""

    file: str
    place: int
    """Of the file in the corpus."""
    first: int
    """Number of the first line, counted from 1."""
    count: int
    offset: int
    """Bytes before it; nothing for Parquet."""

    @property
    def name(self) -> str:
        """The Parquet file of its translations: in the order of names, lines are in the order of the input."""
        return f"{self.place:06}-{self.first:012}.parquet"


@dataclass
class Corpus:
    """Blocks, and what identifies each file: its path, and the SHA-256 of its content."""

    blocks: list[Block] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """NMTError for what a damaged or missing file raises."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error, pa.ArrowException) as error:
        raise NMTError(f"{path}: cannot be read ({one_line(error)})") from error


def find_files(pattern: str) -> list[Path]:
    """The files of a folder or pattern, by name, or the one file; NMTError where there is none."""
    path = Path(pattern)
    if path.is_dir():
        names = [file for file in path.iterdir() if not file.name.startswith((".", "_"))]
    else:
        names = [path] if path.exists() else [Path(name) for name in glob(pattern, recursive=True)]  # noqa: PTH207 (absolute ones too)
    files = sorted(name.absolute() for name in names if name.is_file())
    if not files:
        raise NMTError(f"input={pattern}: no file is there")
    return files


def cut(files: list[Path], size: int, column: str) -> Corpus:
    """Read all files once, to cut them into blocks of `size` lines; what they hold is not kept."""
    corpus = Corpus()
    for place, path in enumerate(files):
        with reading(path):
            if is_parquet(path):
                corpus.blocks += cut_parquet(path, place, size, column)
                corpus.files[str(path)] = sha256(path.resolve())
            else:
                digest = hashlib.sha256()
                corpus.blocks += cut_text(path, place, size, digest.update)
                corpus.files[str(path)] = digest.hexdigest()
    return corpus


def is_parquet(path: Path) -> bool:
    return path.suffix == ".parquet"


def cut_text(path: Path, place: int, size: int, seen: Callable[[bytes], None]) -> Iterator[Block]:
    first, offset = 1, 0
    with open_binary(path) as file:
        while lines := list(islice(file, size)):
            yield Block(str(path), place, first, len(lines), offset)
            content = b"".join(lines)
            seen(content)
            first, offset = first + len(lines), offset + len(content)


def cut_parquet(path: Path, place: int, size: int, column: str) -> Iterator[Block]:
    with pq.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    if column not in schema.names:
        raise NMTError(f"{path}: no column {column}; pass ray.column=NAME, there are {', '.join(schema.names)}")
    if not (pa.types.is_string(schema.field(column).type) or pa.types.is_large_string(schema.field(column).type)):
        raise NMTError(f"{path}: column {column} holds no text but {schema.field(column).type}")
    for begin in range(0, rows, size):
        yield Block(str(path), place, begin + 1, min(size, rows - begin), 0)


def read_block(block: Block, column: str, notice: Callable[[str], None]) -> list[str]:
    """The lines of a block; `notice` is told of invalid UTF-8."""
    path = Path(block.file)
    with reading(path):
        if is_parquet(path):
            return read_rows(block, column)
        with open_binary(path) as file:
            if file.seekable():
                file.seek(block.offset)
            else:
                deque(islice(file, block.first - 1), maxlen=0)  # of a compressed one, nothing but reading leads there
            return list(
                input_lines(islice(file, block.count), block.first, lambda words: notice(f"{path.name}: {words}"))
            )


def read_rows(block: Block, column: str) -> list[str]:
    """The texts of a block of Parquet rows, a missing one as an empty one; only their row groups are read."""
    texts: list[str] = []
    begin, end, group_begin = block.first - 1, block.first - 1 + block.count, 0
    with pq.ParquetFile(block.file) as file:
        for group in range(file.num_row_groups):
            group_end = group_begin + file.metadata.row_group(group).num_rows
            if group_begin < end and group_end > begin:
                rows = file.read_row_group(group, [column]).column(0)
                wanted = rows.slice(max(begin - group_begin, 0), min(end, group_end) - max(begin, group_begin))
                texts += [text or "" for text in wanted.to_pylist()]
            group_begin = group_end
    return texts


def write_block(folder: Path, block: Block, lines: list[str], translations: list[Translation]) -> None:
    """Write under a temporary name, then rename: a file of that name is always whole."""
    table = pa.table(
        {
            "file": pa.array([block.file] * block.count, pa.string()),
            "line": pa.array(range(block.first, block.first + block.count), pa.int64()),
            "source": pa.array(lines, pa.string()),
            "translation": pa.array([translation.text for translation in translations], pa.string()),
            "score": pa.array([translation.score for translation in translations], pa.float64()),
            "log_probability": pa.array([translation.log_probability for translation in translations], pa.float64()),
        }
    )
    temporary = folder / f".{block.name}-{socket.gethostname()}-{os.getpid()}"
    try:
        pq.write_table(table, temporary)
        temporary.replace(folder / block.name)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise NMTError(f"cannot write {folder / block.name} ({error.strerror}): is the disk full?") from error


def claim(folder: Path, description: dict[str, Any]) -> None:
    """Make a folder the place of this translation; NMTError where it holds another one, or anything else."""
    path = folder / DESCRIPTION
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.is_file() and any(folder.iterdir()):
            raise NMTError(f"output={folder} holds other files: name a new folder, or an empty one")
        if not path.is_file():
            write_file(path, json.dumps(description, indent=2) + "\n")
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise NMTError(f"output={folder}: cannot be used ({error})") from error
    other = [key for key in description if found.get(key) != description[key]]
    if other:
        raise NMTError(f"output={folder} holds a translation with other {', '.join(other)}: name another folder")
    for left in folder.glob(".*.parquet-*"):
        left.unlink(missing_ok=True)  # of a run that was killed
