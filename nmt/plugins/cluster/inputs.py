"""The files that a job reads, and the names of its outputs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from nmt.config import (
    JobConfig,
    NMTError,
    SettingError,
    TranslateConfig,
    document_format,
    without_compression,
)
from nmt.plugins.cluster import places
from nmt.text import reading
from nmt.translation import (
    HEAD_BYTES,
    RowWork,
    Work,
    advice_for,
    check_content,
    is_name_of_text,
    suffix_of,
)

TEXT = "text"
JSON = "jsonl"
PARQUET = "parquet"
ROWS = "rows"
KIND_OF_SUFFIX = {
    "jsonl": JSON,
    "ndjson": JSON,
    "parquet": PARQUET,
    "pq": PARQUET,
}


@dataclass(frozen=True)
class InputFile:
    """A file to process."""

    name: str
    """The path in the input folder; of a single file, its own name."""
    path: str
    output: str
    kind: str
    """text, jsonl, parquet or, for rows with several texts, rows."""
    second: str = ""
    """The path of a file that is parallel to this one; empty: none."""


def input_files(work: Work) -> list[InputFile]:
    """The files that the input names, in order; NMTError if one cannot be processed."""
    config = work.config
    source = places.plain(config.input)
    output = places.plain(config.output)
    if places.PATTERN.intersection(source):
        folder, names = places.matching(source)
    elif places.is_folder(source):
        folder = source
        names = places.files_in(source)
    elif places.exists(source):
        return [single_file(source, output, work)]
    else:
        raise NMTError(f"{config.input}: No such file or directory")
    if not names:
        raise NMTError(f"{config.input}: no files to translate")
    if isinstance(work, RowWork) and work.second is not None:
        raise NMTError(f"{config.input}: names several files; name one that is parallel to another")
    check_output_folder(folder, output, config)
    files = []
    for name in names:
        path = f"{folder}/{name}"
        files.append(InputFile(name, path, f"{output}/{name}", kind_of_file(path, work)))
    return files


def single_file(source: str, output: str, work: Work) -> InputFile:
    name = PurePosixPath(source).name
    kind = kind_of_file(source, work)
    config = work.config
    if is_same_place(source, output):
        raise NMTError(f"output={config.output}: would overwrite the input; name another file")
    if places.is_folder(output):
        raise NMTError(f"output={config.output}: is a folder; name a file")
    if kind == ROWS:
        second = places.plain(work.second) if isinstance(work, RowWork) and work.second else ""
        if second and is_same_place(second, output):
            problem = "would overwrite an input; name another file"
            raise NMTError(f"output={config.output}: {problem}")
        return InputFile(name, source, output, kind, second)
    if work.are_lines:
        return InputFile(name, source, output, kind)
    is_other_kind = KIND_OF_SUFFIX.get(suffix_of(output).lower(), TEXT) != kind
    if is_other_kind and (kind == PARQUET or suffix_of(output).lower() in KIND_OF_SUFFIX):
        problem = f"must have a suffix of the input's format, {kind}"
        raise SettingError(problem, key="output", value=config.output)
    return InputFile(name, source, output, kind)


def size_of_files(files: Sequence[InputFile]) -> int | None:
    """The number of bytes of all lines; None if that is not the size of the files."""
    size = 0
    for file in files:
        for path in filter(None, (file.path, file.second)):
            # A web server may not know a size; a store of objects has just listed it.
            scheme, _, _ = path.partition("://")
            is_listed = not places.is_remote(path) or scheme in places.OBJECT_STORES
            if not is_listed or file.kind == PARQUET or without_compression(path) != path:
                return None
            # A missing file is an error when it is read.
            size += places.size_of(path) or 0
    return size


def is_same_place(first: str, second: str) -> bool:
    if places.is_remote(first) or places.is_remote(second):
        return first == second
    return os.path.realpath(first) == os.path.realpath(second)


def check_output_folder(folder: str, output: str, config: JobConfig) -> None:
    """Raise NMTError if the output is a file, or is in the input folder."""
    if places.exists(output) and not places.is_folder(output):
        problem = f"is a file, but {config.input} names several; name a folder"
        raise SettingError(problem, key="output", value=config.output)
    outer = folder
    inner = output
    if not places.is_remote(folder) and not places.is_remote(output):
        outer = os.path.realpath(folder)
        inner = os.path.realpath(output)
    # A second command would translate the translations.
    if inner == outer or inner.startswith(f"{outer.rstrip('/')}/"):
        problem = f"is in the input folder, {folder}; name a folder elsewhere"
        raise SettingError(problem, key="output", value=config.output)


def kind_of_file(path: str, work: Work) -> str:
    """The kind of a file; NMTError if it is none of lines, records or a Parquet table."""
    if work.are_lines:
        return TEXT
    suffix = suffix_of(path)
    kind = KIND_OF_SUFFIX.get(suffix.lower(), TEXT)
    if kind == PARQUET and without_compression(path) != path:
        raise NMTError(f"{path}: Parquet files are compressed inside; decompress it first")
    if isinstance(work, RowWork):
        return kind if kind == PARQUET else ROWS
    config = work.config
    assert isinstance(config, TranslateConfig)
    # format=text says that each line is text, whatever the name and the content.
    if kind != TEXT or not config.is_guess:
        return kind
    if document_format(path):
        advice = "documents are translated as a whole; omit cluster"
        raise NMTError(f"{path}: cluster=ray translates lines, JSONL and Parquet; {advice}")
    if not is_name_of_text(suffix):
        advice = advice_for(suffix) or "convert it to lines of text"
        also = "if each line is text to translate, pass format=text"
        raise NMTError(f"{path}: nmt cannot read .{suffix} files; {advice}; {also}")
    with places.open_content(path) as file, reading(path):
        check_content(path, file.read(HEAD_BYTES), suffix)
    return kind
