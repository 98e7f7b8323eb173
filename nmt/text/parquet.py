"""Sentence pairs in Parquet files, as the Hugging Face Hub has them.

The texts are in two columns or, like the data sets of Hugging Face's translation task, in the
fields of a column `translation`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nmt.config import DataConfig, NMTError, one_line, without_compression
from nmt.text.files import MalformedLine, decode
from nmt.text.pairs import Pair
from nmt.text.tables import columns_of_header

TRANSLATION = "translation"
"""The column of Hugging Face's data sets whose fields are named by the languages."""
ROWS = 1000
"""The number of rows to decode at once."""
BUFFER_BYTES = 2**20
"""The number of bytes to read at once; without it, pyarrow reads whole row groups."""


def path_of_text(schema: Any, name: str) -> tuple[str, ...] | None:
    """Where a table has a text: its column, or `translation` and a field; None if nowhere."""
    if schema.get_field_index(TRANSLATION) >= 0:
        kind = schema.field(TRANSLATION).type
        if pa.types.is_struct(kind) and kind.get_field_index(name) >= 0:
            return TRANSLATION, name
    return (name,) if schema.get_field_index(name) >= 0 else None


def type_at(schema: Any, path: Sequence[str]) -> Any:
    """The type of a column or field; of its values, if they are in a dictionary."""
    kind = schema.field(path[0]).type
    for name in path[1:]:
        kind = kind.field(kind.get_field_index(name)).type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text_type(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def column_at(batch: Any, path: Sequence[str]) -> Any:
    """The values of a column or field; a row without a struct has no value."""
    column = batch.column(path[0])
    for name in path[1:]:
        # Unlike `field`, this also gives the nulls of the struct.
        fields = column.flatten()
        column = fields[column.type.get_field_index(name)]
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column


def read_parquet(path: Path, config: DataConfig, counts: Counter[str]) -> Iterator[Pair]:
    """The pairs of a file; malformed rows are errors or, with data.errors=skip, only counted."""
    with opened(path) as file:
        paths = paths_of_texts(path, file.schema_arrow, config)
        columns = [".".join(names) for names in paths]
        number = 0
        for batch in file.iter_batches(ROWS, columns=columns):
            # As bytes: one text that is not UTF-8 must not hide which row has it.
            sides = [column_at(batch, names).cast(pa.large_binary()) for names in paths]
            for row in zip(*(side.to_pylist() for side in sides), strict=True):
                number += 1
                try:
                    yield pair_in(row)
                except MalformedLine as error:
                    if config.errors == "strict":
                        advice = "fix it, or pass data.errors=skip"
                        raise NMTError(f"{path}, row {number}: {error}; {advice}") from error
                    counts[error.counted_as] += 1


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a file to be read in small pieces; NMTError if it is damaged."""
    if without_compression(str(path)) != str(path):
        raise NMTError(f"{path}: Parquet files are compressed inside; decompress it first")
    try:
        # Without the buffer, the memory would depend on the size of the row groups.
        with pq.ParquetFile(path, buffer_size=BUFFER_BYTES, pre_buffer=False) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        raise NMTError(f"{path}: cannot be read as Parquet ({one_line(error)})") from error


def paths_of_texts(path: Path, schema: Any, config: DataConfig) -> list[tuple[str, ...]]:
    """Where a table has source and target; NMTError if that is not evident."""
    names = schema.names
    paths: list[tuple[str, ...]]
    if config.columns:
        if max(config.columns) > len(names):
            raise NMTError(f"data.columns={config.columns}: {path} has {len(names)} columns")
        paths = [(names[number - 1],) for number in config.columns]
    else:
        paths = paths_by_name(path, schema, config)
    for place in paths:
        kind = type_at(schema, place)
        if not is_text_type(kind):
            raise NMTError(f"{path}: the column {'.'.join(place)} has type {kind}, not text")
    return paths


def paths_by_name(path: Path, schema: Any, config: DataConfig) -> list[tuple[str, ...]]:
    source = path_of_text(schema, config.source)
    target = path_of_text(schema, config.target)
    if source and target:
        return [source, target]
    # Names such as en_US, English or source, as in the header of a table.
    columns = columns_of_header(schema.names, config)
    if columns:
        return [(schema.names[column],) for column in columns]
    raise NMTError(
        f"{path}: no columns {config.source} and {config.target}, only {', '.join(schema.names)}; "
        "pass data.columns=[SOURCE,TARGET], such as data.columns=[1,2]"
    )


def pair_in(row: tuple[bytes | None, bytes | None]) -> Pair:
    """The texts of a row; MalformedLine if one is missing, too long or not UTF-8."""
    source, target = row
    if source is None or target is None:
        raise MalformedLine("malformed", "a text is null")
    return decode(source), decode(target)
