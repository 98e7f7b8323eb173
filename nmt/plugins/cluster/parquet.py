"""A corpus of many files, cut into blocks of lines that become Parquet files of translations."""

import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from nmt.errors import NMTError, one_line
from nmt.files import LARGE, parse_json, read_mapping, remove_leftovers, sha256, whole_file, write_file
from nmt.text import open_binary, reading
from nmt.translation import Translation, input_lines

if TYPE_CHECKING:
    from rich.console import Console

AnyBlock = TypeVar("AnyBlock", bound="Block")
DESCRIPTION = "_translation.json"
"""File beside the Parquet files, with a name that Parquet readers skip."""


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a file, or rows of a Parquet file."""

    file: str
    number: int
    """Index of the file in the corpus."""
    first: int
    """Number of the first line, counted from 1."""
    count: int
    offset: int
    """Bytes before the first line; 0 for Parquet."""

    @property
    def name(self) -> str:
        """The Parquet file of its translations; the order of the names is the order of the input."""
        return f"{self.number:06}-{self.first:012}.parquet"


@contextmanager
def reading_file(path: Path) -> Iterator[None]:
    """Raise NMTError in one line for a missing or damaged file."""
    with reading(path):
        try:
            yield
        except pa.ArrowException as error:
            raise OSError(one_line(error)) from error


def find_files(pattern: str, key: str = "input") -> list[Path]:
    """The one file, or the files of a folder or pattern, sorted by name; NMTError if there is none."""
    path = Path(pattern)
    if path.is_dir():
        names = [file for file in path.iterdir() if not file.name.startswith((".", "_"))]
    else:
        names = [path] if path.exists() else [Path(name) for name in glob(pattern, recursive=True)]  # noqa: PTH207 (absolute ones too)
    files = sorted(name.absolute() for name in names if name.is_file())
    if not files:
        raise NMTError(f"{key}={pattern}: no file is there")
    return files


def cut(files: list[Path], size: int, column: str) -> tuple[list[Block], dict[str, str]]:
    """Read all files once: blocks of `size` lines, and the SHA-256 of each file's text by its path."""
    blocks, hashes = list[Block](), dict[str, str]()
    for number, path in enumerate(files):
        with reading_file(path):
            if path.suffix == ".parquet":
                blocks += cut_parquet(path, number, size, column)
                hashes[str(path)] = sha256(path.resolve())
            else:
                digest = hashlib.sha256()
                blocks += cut_text(path, number, size, digest.update)
                hashes[str(path)] = digest.hexdigest()
    return blocks, hashes


def cut_text(path: Path, number: int, size: int, update: Callable[[bytes], None]) -> Iterator[Block]:
    first, offset = 1, 0
    with open_binary(path) as file:
        while lines := list(islice(file, size)):
            yield Block(str(path), number, first, len(lines), offset)
            content = b"".join(lines)
            update(content)
            first, offset = first + len(lines), offset + len(content)


def cut_parquet(path: Path, number: int, size: int, column: str) -> Iterator[Block]:
    with pq.ParquetFile(path) as file:
        schema, rows = file.schema_arrow, file.metadata.num_rows
    if column not in schema.names:
        raise NMTError(f"{path}: no column {column}; pass ray.column=NAME, there are {', '.join(schema.names)}")
    if not (pa.types.is_string(schema.field(column).type) or pa.types.is_large_string(schema.field(column).type)):
        raise NMTError(f"{path}: column {column} holds no text but {schema.field(column).type}")
    for begin in range(0, rows, size):
        yield Block(str(path), number, begin + 1, min(size, rows - begin), 0)


def read_block(block: Block, column: str, notice: Callable[[str], None]) -> list[str]:
    """The lines of a block; invalid UTF-8 is replaced, with a notice."""
    path = Path(block.file)
    with reading_file(path):
        if path.suffix == ".parquet":
            return read_rows(block, column)
        with open_binary(path) as file:
            if file.seekable():
                file.seek(block.offset)
            else:
                deque(islice(file, block.first - 1), maxlen=0)  # a compressed file is read up to the block
            lines = islice(file, block.count)
            return list(input_lines(lines, block.first, lambda words: notice(f"{path.name}: {words}")))


def read_rows(block: Block, column: str) -> list[str]:
    """The texts of a block of Parquet rows, a missing one as an empty one; reads only the row groups that hold them."""
    begin = block.first - 1
    with pq.ParquetFile(block.file) as file:
        groups = range(file.num_row_groups)
        ends = list(accumulate(file.metadata.row_group(group).num_rows for group in groups))
        starts = [0, *ends]
        wanted = [group for group in groups if starts[group] < begin + block.count and ends[group] > begin]
        rows = file.read_row_groups(wanted, [column]).column(0).slice(begin - starts[wanted[0]], block.count)
    return [text or "" for text in rows.to_pylist()]


def write_block(
    folder: Path,
    block: Block,
    lines: list[str],
    translations: list[Translation],
    more: list[dict[str, Any]] | None = None,
) -> None:
    """Write the Parquet file of a block, whole or not at all; `more` are further columns of each row."""
    rows = [
        {
            "file": block.file,
            "line": number,
            "source": line,
            "translation": found.text,
            "score": found.score,
            "log_probability": found.log_probability,
            **own,
        }
        for number, (line, found, own) in enumerate(
            zip(lines, translations, more or [{}] * len(lines), strict=True), block.first
        )
    ]
    table = pa.Table.from_pylist(rows)
    if "flags" in table.column_names:  # where no line has one, their type would be another
        table = table.set_column(table.column_names.index("flags"), "flags", table["flags"].cast(pa.list_(pa.string())))
    with whole_file(folder / block.name) as temporary:
        pq.write_table(table, temporary)


def claim(folder: Path, description: dict[str, Any]) -> None:
    """Make a folder the output of this translation; NMTError if it holds another one, or anything else."""
    path = folder / DESCRIPTION
    try:
        folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder, re.escape(DESCRIPTION))  # of a run that was killed as it began
        if not path.is_file() and any(folder.iterdir()):
            raise NMTError(f"output={folder} holds other files: name a new folder, or an empty one")
    except OSError as error:
        raise NMTError(f"output={folder}: cannot be used ({error})") from error
    if not path.is_file():
        write_file(path, json.dumps(description, indent=2) + "\n")
    found = read_mapping(path, parse_json, LARGE)
    other = [key for key in description if found.get(key) != description[key]]
    if other:
        raise NMTError(f"output={folder} holds a translation with other {', '.join(other)}: name another folder")
    remove_leftovers(folder)  # of a run that was killed


def missing_blocks(blocks: Sequence[AnyBlock], folder: Path, console: "Console") -> list[AnyBlock]:
    """The blocks whose files are not there yet."""
    missing = [block for block in blocks if not (folder / block.name).is_file()]
    if len(missing) < len(blocks):
        console.print(f"{len(blocks) - len(missing):,} of {len(blocks):,} parts are there already")
    return missing


def check_complete(blocks: Sequence[Block], folder: Path) -> None:
    """NMTError unless the file of each block is there."""
    lost = sum(not (folder / block.name).is_file() for block in blocks)
    if lost:
        raise NMTError(f"{lost:,} files are not in {folder}: all machines of the cluster must share that folder")
