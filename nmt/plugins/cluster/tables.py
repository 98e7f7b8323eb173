"""Parquet files, in blocks of rows."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from nmt.config import NMTError, one_line
from nmt.plugins.cluster import places
from nmt.plugins.cluster.contents import TRANSLATION, Content, Texts, fields_of_rows
from nmt.plugins.cluster.inputs import InputFile
from nmt.plugins.cluster.lines import check_names
from nmt.text import column_at, is_text_type, path_of_text, type_at
from nmt.translation import RowWork

GROUP_ROWS = 2**16
"""The rows of a row group in the output: readers are slow if groups are as small as blocks."""
FEATURES = b"huggingface"
"""The metadata of the package datasets, which refuses a column that it does not list."""


class Tables:
    """Rows of a Parquet file, which get a column with the translations of another column."""

    def __init__(self, field: str) -> None:
        self.field = field

    def contents(self, file: InputFile, size: int) -> Iterator[Content]:
        with reading_table(file) as table:
            first = 1
            for number, batch in enumerate(table.iter_batches(size)):
                digest = hashlib.sha256(to_bytes(batch)).hexdigest()
                yield Content(number, first, batch.num_rows, digest, batch)
                first += batch.num_rows

    def texts(self, file: InputFile, content: Content) -> Texts:
        texts = Texts()
        column = content.data.column(self.field)
        for row, text in enumerate(column.to_pylist(), content.first):
            if text is not None:
                texts.add(text, row)
        return texts

    def check(self, file: InputFile) -> None:
        """Raise NMTError unless the table has a column of text to translate."""
        schema = schema_of(file)
        try:
            check_names(schema.names, self.field)
        except NMTError as error:
            raise error.within(file.path) from error
        check_is_text(file, schema, (self.field,))

    def payload(self, content: Content, texts: Texts, translations: list[str]) -> bytes:
        fields = fields_of_rows(texts, translations)
        batch = content.data
        rows = range(content.first, content.first + content.rows)
        column = pa.array([fields.get(row) for row in rows], pa.string())
        arrays = [*batch.columns, column]
        return to_bytes(pa.record_batch(arrays, schema=self.schema_after(batch.schema)))

    def join(self, file: InputFile, payloads: Iterable[bytes], output: Path) -> None:
        with reading_table(file) as table:
            schema = self.schema_after(table.schema_arrow)
            compression = compression_of(table)
        with pq.ParquetWriter(output, schema, compression=compression) as writer:
            for group in grouped(payloads, schema):
                writer.write_table(group, row_group_size=GROUP_ROWS)

    def schema_after(self, schema: Any) -> Any:
        """The schema of the output."""
        return with_column(schema, TRANSLATION, pa.string())


class RowTables(Tables):
    """Rows with several texts. A job adds a column with a number, or leaves out some rows."""

    def __init__(self, work: RowWork) -> None:
        super().__init__("")  # the work names the columns
        self.work = work

    def texts(self, file: InputFile, content: Content) -> Texts:
        texts = Texts()
        batch = content.data
        columns = []
        for name in self.work.fields:
            path = path_of_text(batch.schema, name)
            assert path  # `check` has found it
            columns.append(column_at(batch, path).to_pylist())
        for number, row in enumerate(zip(*columns, strict=True), content.first):
            # A row without one of the texts has no result.
            if None not in row:
                texts.lines.append(row)
                texts.rows.append(number)
        return texts

    def check(self, file: InputFile) -> None:
        schema = schema_of(file)
        for name in self.work.fields:
            path = path_of_text(schema, name)
            if path is None:
                names = ", ".join(schema.names)
                raise NMTError(f"{file.path}: no column {name}, only {names}; pass fields=[A,B]")
            check_is_text(file, schema, path)
        if self.work.adds in schema.names:
            raise NMTError(f"{file.path}: has a column {self.work.adds} already; rename it")

    def payload(self, content: Content, texts: Texts, results: list[Any]) -> bytes:
        of_rows = dict(zip(texts.rows, results, strict=True))
        rows = range(content.first, content.first + content.rows)
        values = [of_rows.get(row) for row in rows]
        batch = content.data
        if not self.work.adds:
            return to_bytes(batch.filter(pa.array([value is not None for value in values])))
        column = pa.array(values, pa.float64())
        return to_bytes(
            pa.record_batch([*batch.columns, column], schema=self.schema_after(batch.schema))
        )

    def schema_after(self, schema: Any) -> Any:
        if not self.work.adds:
            return schema
        return with_column(schema, self.work.adds, pa.float64())


@contextmanager
def reading_table(file: InputFile) -> Iterator[Any]:
    try:
        with places.open_raw(file.path) as source:
            yield pq.ParquetFile(source)
    except (pa.ArrowException, OSError) as error:
        raise NMTError(f"{file.path}: cannot be read ({one_line(error)})") from error


def schema_of(file: InputFile) -> Any:
    with reading_table(file) as table:
        return table.schema_arrow


def check_is_text(file: InputFile, schema: Any, path: Sequence[str]) -> None:
    """Raise NMTError unless a column, or a field in it, has text."""
    kind = type_at(schema, path)
    if not is_text_type(kind):
        raise NMTError(
            f"{file.path}: the column {'.'.join(path)} has type {kind}, but must be text"
        )


def with_column(schema: Any, name: str, kind: Any) -> Any:
    """The schema of a table that gets a column."""
    metadata = dict(schema.metadata or {})
    metadata.pop(FEATURES, None)
    return schema.append(pa.field(name, kind)).with_metadata(metadata)


def compression_of(table: Any) -> str:
    """The compression of a Parquet file's first column."""
    metadata = table.metadata
    if not metadata.num_row_groups:
        return "snappy"
    name: str = metadata.row_group(0).column(0).compression.lower()
    return "none" if name == "uncompressed" else name


def grouped(payloads: Iterable[bytes], schema: Any) -> Iterator[Any]:
    """The rows of payloads, as tables of about GROUP_ROWS rows."""
    batches = list[Any]()
    rows = 0
    for payload in payloads:
        batch = from_bytes(payload)
        batches.append(batch)
        rows += batch.num_rows
        if rows >= GROUP_ROWS:
            yield pa.Table.from_batches(batches, schema)
            batches = []
            rows = 0
    if batches:
        yield pa.Table.from_batches(batches, schema)


def to_bytes(batch: Any) -> bytes:
    """A record batch in Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def from_bytes(content: bytes) -> Any:
    with pa.ipc.open_stream(content) as reader:
        return reader.read_next_batch()
