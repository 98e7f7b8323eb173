"""The names and types of the files of a prepared corpus. Does not import torch."""

import pyarrow as pa

TOKENIZER = "tokenizer.model"
IDS = pa.list_(pa.int32())
IDS_SCHEMA = pa.schema(
    {
        "source": IDS,
        "target": IDS,
        "source_length": pa.int32(),
        "target_length": pa.int32(),
        "line": pa.int64(),
    }
)
"""Ids exclude the end symbol, but lengths include it.

`line` is the number of the pair's line in its source, counted from 1.
"""

END_OF_STREAM = b"\xff\xff\xff\xff\0\0\0\0"
"""https://arrow.apache.org/docs/format/Columnar.html#ipc-streaming-format"""
