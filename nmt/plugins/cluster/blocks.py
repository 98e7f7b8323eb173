"""A corpus as numbered blocks of lines, one Parquet file each: written atomically, skipped if it exists."""

import hashlib
import json
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from glob import glob
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import nmt.translation as steps
from nmt.config import TranslateConfig, require
from nmt.errors import NMTError, one_line
from nmt.files import LARGE, parse_json, read_mapping, remove_leftovers, whole_file, write_file
from nmt.text import open_binary, reading

if TYPE_CHECKING:
    from rich.console import Console

DESCRIPTION = "_translation.json"  # a name that Parquet readers skip


@dataclass(frozen=True)
class Block:
    """Consecutive lines of a file."""

    file: str
    number: int  # index of the file in the corpus
    first: int  # number of the first line, counted from 1
    count: int
    offset: int  # bytes before the first line
    reference: "Block | None" = None  # of the same lines of a parallel corpus

    @property
    def name(self) -> str:
        """The Parquet file of its translations; the order of the names is the order of the input."""
        return f"{self.number:06}-{self.first:012}.parquet"


def find_files(pattern: str, key: str = "input") -> list[Path]:
    """The one file, or the files of a folder or pattern, sorted by name; NMTError if there is none."""
    path = Path(pattern)
    if path.is_dir():
        names = [file for file in path.iterdir() if not file.name.startswith((".", "_"))]
    else:
        names = [path] if path.exists() else [Path(name) for name in glob(pattern, recursive=True)]  # noqa: PTH207 (absolute ones too)
    if not (files := sorted(name.absolute() for name in names if name.is_file())):
        raise NMTError(f"{key}={pattern}: no file is there")
    return files


def cut(files: list[Path], size: int) -> tuple[list[Block], dict[str, str]]:
    """Read all files once: blocks of `size` lines, and the SHA-256 of each file's text by its path."""
    blocks, hashes = list[Block](), dict[str, str]()
    for number, path in enumerate(files):
        require(path.suffix != ".parquet", f"{path}: Parquet, but lines of text are translated; write it as text")
        digest, first, offset = hashlib.sha256(), 1, 0
        with reading(path), open_binary(path) as file:
            while lines := list(islice(file, size)):
                blocks.append(Block(str(path), number, first, len(lines), offset))
                content = b"".join(lines)
                digest.update(content)
                first, offset = first + len(lines), offset + len(content)
        hashes[str(path)] = digest.hexdigest()
    return blocks, hashes


def read_block(block: Block, notice: Callable[[str], None]) -> list[str]:
    """The lines of a block; invalid UTF-8 is replaced, with a notice."""
    path = Path(block.file)
    with reading(path), open_binary(path) as file:
        if file.seekable():
            file.seek(block.offset)
        else:
            deque(islice(file, block.first - 1), maxlen=0)  # a compressed file is read up to the block
        lines = islice(file, block.count)
        return list(steps.input_lines(lines, block.first, lambda words: notice(f"{path.name}: {words}")))


def write_block(
    folder: Path, block: Block, lines: list[str], translations: list[steps.Translation], **more: Any
) -> None:
    """Write the Parquet file of a block, whole or not at all; `more` are further columns."""
    numbers = range(block.first, block.first + block.count)
    columns: dict[str, Any] = {"file": [block.file] * block.count, "line": numbers, "source": lines}
    for name, key in (("translation", "text"), ("score", "score"), ("log_probability", "log_probability")):
        columns[name] = [getattr(translation, key) for translation in translations]
    with whole_file(folder / block.name) as temporary:
        pq.write_table(pa.table({**columns, **more}), temporary)


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
    earlier = read_mapping(path, parse_json, LARGE)
    if other := [key for key in description if earlier.get(key) != description[key]]:
        raise NMTError(f"output={folder} holds a translation with other {', '.join(other)}: name another folder")
    remove_leftovers(folder)  # of a run that was killed


class BlockTranslator:
    """Translates blocks and writes their files: in this process, in one of several, or as a Ray actor."""

    def __init__(self, config: TranslateConfig) -> None:
        self.config, self.counts, self.notices = config, Counter[str](), list[str]()

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Translate a block, given and reported as a row of Ray's; an error is a part of the report."""
        block, before, error = Block(**row), self.counts.copy(), ""
        if row["reference"]:
            block = replace(block, reference=Block(**row["reference"]))
        self.notices.clear()
        try:
            self.translate(block)
        except steps.RefusedLine as problem:
            error = f"{Path(block.file).name}, line {block.first + problem.index}: {problem.problem}"
        except NMTError as problem:
            error = str(problem)
        except Exception as problem:
            error = f"{block.file}, from line {block.first}: {type(problem).__name__}: {one_line(problem)}"
        counts = {kind: self.counts[kind] - before[kind] for kind in steps.summaries()}
        return {"lines": block.count, "error": error, "notices": "\n".join(self.notices), **counts}

    @cached_property
    def translator(self) -> steps.Translator:
        return steps.load_translator(self.config.translator, self.notices.append)

    def translate(self, block: Block) -> None:
        translator, notice, name = self.translator, self.notices.append, Path(block.file).name
        lines, size = read_block(block, notice), self.config.buffer
        parts = (lines[begin : begin + size] for begin in range(0, len(lines), size))
        rows = list(steps.lines_of(map(translator.translate_each, parts)))
        for number, (line, ranked) in enumerate(zip(lines, rows, strict=True), block.first):
            steps.report(translator.stages, line, ranked[0], f"{name}, line {number}", self.counts, notice)
        self.write(block, lines, rows)

    def write(self, block: Block, lines: list[str], rows: list[list[steps.Translation]]) -> None:
        write_block(Path(self.config.output), block, lines, [best for best, *_ in rows])


def write_blocks(
    blocks: Sequence[Block], folder: Path, console: "Console", reports: Callable[[Sequence[Block]], Iterable[Any]]
) -> None:
    """Have the missing files of blocks written by `reports`, with progress; NMTError for a worker's first error."""
    missing = [block for block in blocks if not (folder / block.name).is_file()]
    if len(missing) < len(blocks):
        console.print(f"{len(blocks) - len(missing):,} of {len(blocks):,} parts are there already")
    done, counts = 0, Counter[str]()
    with console.status("starting") as status:
        for part in reports(missing) if missing else ():
            if part["error"]:
                raise NMTError(part["error"])
            for words in part["notices"].splitlines():
                console.print(f"nmt: {words}")
            counts.update({kind: part[kind] for kind in steps.summaries()})
            done += part["lines"]
            status.update(f"translated {done:,} lines")
        steps.summarize(counts, lambda words: console.print(f"nmt: {words}"))
    if lost := sum(not (folder / block.name).is_file() for block in blocks):
        raise NMTError(f"{lost:,} files are not in {folder}: all machines of the cluster must share that folder")
