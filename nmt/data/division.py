"""Compare splits whose pairs are divided among files in different ways.

A split's blocks are the same messages of an Arrow stream in any division; see "Encapsulated message
format", https://arrow.apache.org/docs/format/Columnar.html. Each file adds the schema before its
blocks, and a mark after them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from nmt.data.columns import map_file
from nmt.data.schema import END_OF_STREAM
from nmt.errors import NMTError
from nmt.files import check_regular

PREFIX_BYTES = 8
"""The bytes before the metadata of a message: a mark and the size of the metadata."""


class Block(NamedTuple):
    """A block of pairs, and the schema of the file that it is in: the bytes of two messages."""

    schema: memoryview
    message: memoryview


def same_pairs(paths: Sequence[Path], hashes: Sequence[str]) -> bool:
    """Whether files with these SHA-256 hashes have the same blocks as `paths`, divided otherwise.

    This reads all pairs, in one thread. A damaged file has no pairs.
    """
    try:
        return has_division(blocks_in(paths), hashes)
    except (NMTError, OSError, ValueError, pa.ArrowException):
        return False


def has_division(blocks: Iterable[Block], hashes: Sequence[str]) -> bool:
    """Whether the blocks are those of files with these hashes, in this order."""
    file = None
    count = 0
    for block in blocks:
        if file is None:
            file = hashlib.sha256(block.schema)
        file.update(block.message)
        # The file may end after this block.
        whole = file.copy()
        whole.update(END_OF_STREAM)
        if count < len(hashes) and whole.hexdigest() == hashes[count]:
            count += 1
            file = None
    return file is None and count == len(hashes)


def blocks_in(paths: Sequence[Path]) -> Iterator[Block]:
    """The blocks of several Arrow streams."""
    for path in paths:
        check_regular(path)
        content = map_file(path)
        schema = None
        for message in pa.ipc.MessageReader.open_stream(content):
            if schema is None:
                schema = bytes_of(message, content)
            else:
                yield Block(schema, bytes_of(message, content))


def bytes_of(message: pa.ipc.Message, content: pa.Buffer) -> memoryview:
    """The bytes of a message within the content of its file."""
    begin = message.metadata.address - content.address - PREFIX_BYTES
    size = PREFIX_BYTES + message.metadata.size
    # A schema has no body.
    if message.body is not None:
        size += message.body.size
    return memoryview(content)[begin : begin + size]
