"""Encode clean pairs in worker processes."""

from collections import Counter
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nmt.data import IDS_SCHEMA
from nmt.text import load_tokenizer

worker_tokenizer = lru_cache(maxsize=1)(load_tokenizer)


class EncodedBlock(NamedTuple):
    """Encoded pairs, and what the main process would otherwise have to count."""

    ids: pa.RecordBatch  # with the schema IDS_SCHEMA
    dropped: int  # pairs that are too long
    lengths: list[Counter[int]]  # for each side, how many sentences have each length
    characters: list[Counter[str]]  # for each side


def encode_block(
    block: pa.RecordBatch, tokenizer_file: Path, limit: int | None, tag: str | None
) -> EncodedBlock:
    """Encode clean pairs and drop those with more than `limit` tokens on either side."""
    tokenizer = worker_tokenizer(tokenizer_file)
    ids = [tokenizer.encode(block.column(side).to_pylist(), side) for side in (0, 1)]
    if tag:
        ids[0] = [[tokenizer.tag_id(tag), *line] for line in ids[0]]
    lengths = [np.fromiter(map(len, side), np.int32, len(side)) for side in ids]
    encoded = pa.record_batch(
        [*ids, *(side + 1 for side in lengths), block.column("line")], schema=IDS_SCHEMA
    )
    short = pa.array(np.maximum(*lengths) <= (np.inf if limit is None else limit))
    kept_text = block.filter(short)
    kept_lengths = [pa.array(side).filter(short).to_pylist() for side in lengths]
    return EncodedBlock(
        ids=encoded.filter(short),
        dropped=len(block) - short.true_count,
        lengths=[Counter(side) for side in kept_lengths],
        characters=[Counter("".join(column.to_pylist())) for column in kept_text.columns[:2]],
    )


def usual_and_longest(lengths: Counter[int]) -> dict[str, int]:
    if not lengths:
        return {"p99": 0, "max": 0}
    ascending = sorted(lengths)
    so_far = np.cumsum([lengths[length] for length in ascending])
    return {
        "p99": ascending[np.searchsorted(so_far, ceil(0.99 * int(so_far[-1])))],
        "max": ascending[-1],
    }
