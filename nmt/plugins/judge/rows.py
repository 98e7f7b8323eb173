"""The rows of files that contain both sides of each sentence pair."""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from nmt.config import NMTError, without_compression
from nmt.text import Pair, is_text, with_field, without_end

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
TSV = "tsv"
JSONL = "jsonl"
PARQUET = "parquet"
FORMATS = {".tsv": TSV, ".jsonl": JSONL, ".ndjson": JSONL, ".parquet": PARQUET, ".pq": PARQUET}


def format_of(name: str) -> str:
    """The format that a file's name indicates; empty if it is none with both sides."""
    return FORMATS.get(PurePosixPath(without_compression(name.lower())).suffix, "")


def decoded(line: bytes) -> str:
    """The text of a line; as everywhere in nmt, one damaged line does not stop a long job."""
    return without_end(line.removeprefix(BYTE_ORDER_MARK)).decode(errors="replace")


class ParallelLines:
    """Pairs of lines of two files, which become the columns of a table."""

    def read(self, row: tuple[bytes, bytes]) -> Pair:
        for line in row:
            if b"\t" in line:
                raise NMTError(
                    "contains a tab, which separates the columns of the output; replace tabs with "
                    "spaces, as in tr '\\t' ' ' < FILE > OTHER"
                )
        return decoded(row[0]), decoded(row[1])

    def write(self, row: tuple[bytes, bytes], value: float | None) -> bytes:
        sides = [without_end(line.removeprefix(BYTE_ORDER_MARK)) for line in row]
        return b"\t".join(sides) + b"\n"

    def write_with(self, row: tuple[bytes, bytes], name: str, value: float | None) -> bytes:
        return self.write(row, value)[:-1] + b"\t" + cell(value) + b"\n"


class TableRows:
    """Lines of a tab-separated table without quoted cells."""

    def __init__(self, columns: Sequence[int]) -> None:
        self.columns = columns

    def read(self, row: bytes) -> Pair:
        cells = decoded(row).split("\t")
        if len(cells) < max(self.columns):
            raise NMTError(
                f"{len(cells)} columns, but columns={list(self.columns)}; fix the line, or pass "
                "columns=[SOURCE,TARGET]"
            )
        return cells[self.columns[0] - 1], cells[self.columns[1] - 1]

    def write(self, row: bytes, value: float | None) -> bytes:
        return row if row.endswith(b"\n") else row + b"\n"

    def write_with(self, row: bytes, name: str, value: float | None) -> bytes:
        return without_end(row) + b"\t" + cell(value) + b"\n"


class JsonRows:
    """Records of a JSON Lines file, whose fields may be in a field `translation`."""

    def __init__(self, fields: Sequence[str], adds: str) -> None:
        self.fields = fields
        self.adds = adds

    def read(self, row: bytes) -> Pair:
        record: Any = None
        # Deep nesting raises RecursionError; a line like that is malformed, not a crash.
        with suppress(ValueError, RecursionError):
            record = json.loads(decoded(row))
        source, target = self.fields
        if isinstance(record, dict):
            if self.adds in record:
                problem = f"has a field {self.adds} already; pass another score_name"
                raise NMTError(problem)
            # The form of Hugging Face's data sets: {"translation": {"en": ..., "de": ...}}.
            texts = record.get("translation", record)
            if isinstance(texts, dict):
                first = texts.get(source)
                second = texts.get(target)
                if is_text(first) and is_text(second):
                    return first, second
        raise NMTError(
            f"not an object with strings {source} and {target}; fix the line, or pass "
            "fields=[SOURCE,TARGET]"
        )

    def write(self, row: bytes, value: float | None) -> bytes:
        return row if row.endswith(b"\n") else row + b"\n"

    def write_with(self, row: bytes, name: str, value: float | None) -> bytes:
        return with_field(row, name, value).encode()


Rows = ParallelLines | TableRows | JsonRows


def cell(value: float | None) -> bytes:
    """A number in a table; empty if there is none."""
    return b"" if value is None else f"{value:.6f}".encode()
