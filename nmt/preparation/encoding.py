"""Encode clean pairs in worker processes."""

import math
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nmt.data import IDS_SCHEMA
from nmt.preparation.spools import Part, Place, write_block
from nmt.text import SOURCE, TARGET, Tokenizer, load_encoder, load_tokenizer

ENCODED_AT_ONCE = 500
"""The lines to encode at a time."""
worker_tokenizer = lru_cache(maxsize=1)(load_tokenizer)
"""Loads a tokenizer once per worker process."""


class EncodedBlock(NamedTuple):
    """Encoded pairs, and counts that spare the main process the work."""

    ids: Place | None
    """Where the block with the schema IDS_SCHEMA is; None if no pairs are left."""
    dropped: int
    """Pairs that are too long."""
    lengths: list[Counter[int]]
    """For each side, the number of sentences of each length."""
    characters: list[Counter[str]]
    """For each side, the number of times that each character occurs."""


class SplitStatistics:
    """The lengths and characters of the encoded pairs of a split."""

    def __init__(self) -> None:
        self.lengths = (Counter[int](), Counter[int]())
        """For each side, the number of sentences of each length."""
        self.characters = (Counter[str](), Counter[str]())
        """For each side, the number of times that each character occurs."""
        self.of_sources: list[int] = []
        """The number of pairs of each source of the corpus."""

    @property
    def pairs(self) -> int:
        return self.lengths[0].total()

    def add(self, block: EncodedBlock) -> None:
        for side in (0, 1):
            self.lengths[side].update(block.lengths[side])
            self.characters[side].update(block.characters[side])


def encoded_lines(
    lines: list[str], side: int, tokenizer: Tokenizer, tag: str | None
) -> list[list[int]]:
    """The ids of each line, without those of the tag."""
    ids: list[list[int]] = []
    # A tokenizer starts a thread per processor for many lines, and so would each worker process.
    for start in range(0, len(lines), ENCODED_AT_ONCE):
        ids += tokenizer.encode(lines[start : start + ENCODED_AT_ONCE], side, tag or "")
    return ids


def encoded_sides(
    texts: list[list[str]], tokenizer: Tokenizer, tag: str | None
) -> list[list[list[int]]]:
    """The ids of each line of both sides, which begin with those of the tag."""
    sources = encoded_lines(texts[SOURCE], SOURCE, tokenizer, tag)
    targets = encoded_lines(texts[TARGET], TARGET, tokenizer, tag)
    if tag:
        # Added as ids: a tokenizer might split the tag, or a text might contain it.
        tag_id = tokenizer.tag_id(tag)
        start = tokenizer.target_start(tag)
        sources = [[tag_id, *ids] for ids in sources]
        targets = [[*start, *ids] for ids in targets]
    return [sources, targets]


def encode_block(
    pairs: Part | pa.RecordBatch,
    tokenizer_file: Path,
    limit: int | None,
    tag: str | None,
) -> EncodedBlock:
    """Encode clean pairs, and drop pairs with more than `limit` tokens on either side.

    `pairs` have the schema TEXT_SCHEMA. Without a `limit`, all are kept. `tag` precedes each
    source; None: no tag. The ids are written to a file next to the tokenizer.
    """
    # Meanings have been compared, and the sentence encoder takes more memory than all the rest.
    load_encoder.cache_clear()
    block = pairs.block() if isinstance(pairs, Part) else pairs
    tokenizer = worker_tokenizer(tokenizer_file)
    texts = [block.column(side).to_pylist() for side in (0, 1)]
    ids = encoded_sides(texts, tokenizer, tag)
    lengths = [np.fromiter(map(len, side), np.int32, len(side)) for side in ids]
    # The end symbol takes a position in a batch, so planning counts it; `max_tokens` does not.
    with_end = [side + 1 for side in lengths]
    columns = [*ids, *with_end, block.column("line")]
    encoded = pa.record_batch(columns, schema=IDS_SCHEMA)
    length_of_longer_side = np.maximum(*lengths)
    is_kept = pa.array(length_of_longer_side <= (math.inf if limit is None else limit))
    kept_lengths = [pa.array(side).filter(is_kept) for side in lengths]
    # Dropped pairs do not count: the model never sees their characters.
    kept_texts = block.filter(is_kept).columns[:2]
    kept = encoded.filter(is_kept)
    return EncodedBlock(
        ids=write_block(kept, tokenizer_file.parent) if len(kept) else None,
        dropped=len(block) - is_kept.true_count,
        # Counters are small, so sending them to the main process costs little.
        lengths=[Counter(side.to_pylist()) for side in kept_lengths],
        characters=[Counter("".join(side.to_pylist())) for side in kept_texts],
    )


def usual_and_longest(lengths: Counter[int]) -> dict[str, int]:
    """The length that 99% of the sentences do not exceed, and the maximum length."""
    if not lengths:
        return {"p99": 0, "max": 0}
    ascending = sorted(lengths)
    # From the counts, because a list of all lengths would grow with the corpus.
    so_far = np.cumsum([lengths[length] for length in ascending])
    usual = math.ceil(0.99 * int(so_far[-1]))
    return {
        "p99": ascending[np.searchsorted(so_far, usual)],
        "max": ascending[-1],
    }
