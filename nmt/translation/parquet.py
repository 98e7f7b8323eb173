"""A corpus of many files, cut into blocks of lines that become Parquet files of translations."""

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from glob import glob
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nmt.errors import NMTError, one_line
from nmt.storage.foreign import LARGE, parse_json, read_mapping, sha256
from nmt.storage.whole import remove_leftovers, whole_file, write_file
from nmt.text.files import open_binary, reading
from nmt.translation.job import input_lines
from nmt.translation.translator import Translation

DESCRIPTION = "_translation.json"
"""Beside the Parquet files, by a name that their readers skip."""


@dataclass(frozen=True)
class Block:
    """Lines, or rows of Parquet, that follow one another in a file."""

    file: str
    number: int
    """Index of the file in the corpus."""
    first: int
    """Number of the first line, counted from 1."""
    count: int
    offset: int
    """Bytes before it; 0 for Parquet."""

    @property
    def name(self) -> str:
        """The Parquet file of its translations: in the order of names, lines are in the order of the input."""
        return f"{self.number:06}-{self.first:012}.parquet"


@contextmanager
def reading_file(path: Path) -> Iterator[None]:
    """NMTError in one line for a missing or damaged file."""
    with reading(path):
        try:
            yield
        except pa.ArrowException as error:
            raise OSError(one_line(error)) from error


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
    """The lines of a block; `notice` is called for invalid UTF-8."""
    path = Path(block.file)
    with reading_file(path):
        if path.suffix == ".parquet":
            return read_rows(block, column)
        with open_binary(path) as file:
            if file.seekable():
                file.seek(block.offset)
            else:
                deque(islice(file, block.first - 1), maxlen=0)  # of a compressed one, nothing but reading leads there
            lines = islice(file, block.count)
            return list(input_lines(lines, block.first, lambda words: notice(f"{path.name}: {words}")))


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
    """Write the Parquet file of a block: whole, or not there."""
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
    with whole_file(folder / block.name) as temporary:
        pq.write_table(table, temporary)


def claim(folder: Path, description: dict[str, Any]) -> None:
    """Make a folder the output of this translation; NMTError where it holds another one, or anything else."""
    path = folder / DESCRIPTION
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
