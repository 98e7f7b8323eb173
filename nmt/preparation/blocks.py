"""Blocks of a corpus in preparation, and the functions that worker processes apply to them."""

import hashlib
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from nmt.config import DataConfig, TokenizerConfig
from nmt.data import IDS_SCHEMA, arrow_blocks, list_column, text_block, text_pairs
from nmt.plugins.parse.treebank import model_pair
from nmt.text import (
    Encode,
    Pair,
    Tokenizer,
    fast_encode,
    letters,
    load_tokenizer,
    reason_to_drop,
    train_tokenizer,
)

BLOCK_PAIRS = 5000
Item = TypeVar("Item")
Result = TypeVar("Result")
Clean = Callable[[str], str]


def blocks(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Consecutive lists of BLOCK_PAIRS items; the last may be shorter."""
    iterator = iter(items)
    while block := list(islice(iterator, BLOCK_PAIRS)):
        yield block


def bounded_map(
    function: Callable[[Item], Result], items: Iterable[Item], pool: ProcessPoolExecutor, ahead: int
) -> Iterator[Result]:
    """`map` over processes, in order; reads at most `ahead` items before it yields their results."""
    waiting: deque[Future[Result]] = deque()
    for item in items:
        waiting.append(pool.submit(function, item))
        if len(waiting) >= ahead:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def pair_hashes(pairs: list[Pair]) -> NDArray[np.uint64]:
    """64-bit hashes of pairs."""
    digests = (hashlib.blake2b("\t".join(pair).encode(), digest_size=8).digest() for pair in pairs)
    return np.frombuffer(b"".join(digests), dtype=np.uint64)


def clean_pair(pair: Pair, data: DataConfig, clean: Clean) -> Pair:
    """A pair as the model reads it; `clean` is its tokenizer's."""
    if data.kind == "treebank":
        return model_pair(pair, data.leaves)
    return clean(pair[0]), clean(pair[1])


def clean_and_filter(
    numbered: list[tuple[int, Pair]], data: DataConfig, clean: Clean, hashed: bool
) -> tuple[pa.RecordBatch, NDArray[np.uint64], Counter[str]]:
    """Raw pairs with line numbers -> the clean pairs that pass the filters, their hashes, and counts of dropped pairs.

    There are no hashes unless `hashed`.
    """
    kept, lines, dropped = [], [], Counter[str]()
    for line, raw in numbered:
        pair = clean_pair(raw, data, clean)
        reason = reason_to_drop(pair, data.filters)
        if reason:
            dropped[reason] += 1
        else:
            kept.append(pair)
            lines.append(line)
    return text_block(kept, lines), pair_hashes(kept if hashed else []), dropped


def chosen_blocks(path: Path, chosen: NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    """The chosen pairs of an Arrow file, in order, as blocks."""
    start = 0
    for block in arrow_blocks(path):
        yield block.filter(pa.array(chosen[start : start + len(block)]))
        start += len(block)


Sample = tuple[Path, NDArray[np.bool_]]
"""A file of text, and True for each of its pairs that is in a sample."""


def learn_vocabulary(
    samples: list[Sample], sides: tuple[int, ...], config: TokenizerConfig, words: list[str], tags: list[str]
) -> Tokenizer:
    """Train a tokenizer on these sides of the sampled pairs; `words` and `tags` as in `train_tokenizer`."""
    pairs = (pair for text, sample in samples for block in chosen_blocks(text, sample) for pair in text_pairs(block))
    sampled = (pair[side] for block in blocks(pairs) for side in sides for pair in block)
    return train_tokenizer(sampled, config, words, tags)


def shares_letters(block: pa.RecordBatch, sides: tuple[set[str], set[str]]) -> NDArray[np.bool_]:
    """True for each pair with a side whose letters are among those of that side."""
    return np.array(
        [letters(source) in sides[0] or letters(target) in sides[1] for source, target in text_pairs(block)], dtype=bool
    )


@lru_cache(maxsize=1)
def worker_tokenizer(path: Path) -> tuple[Tokenizer, Encode]:
    """A tokenizer and its encoding, read once in each process: sent with each block, it would be built each time."""
    tokenizer = load_tokenizer(path)
    return tokenizer, fast_encode(tokenizer)


def encode_block(
    block: pa.RecordBatch, tokenizer_file: Path, limit: int | None, tag: str | None
) -> tuple[pa.RecordBatch, int, list[Counter[str]]]:
    """Encode clean pairs, with a tag before the source, and drop those with a side of more than `limit` tokens.

    Returns ids with lengths, which count the end symbol, the number of dropped pairs, and the characters of each side.
    """
    tokenizer, encode = worker_tokenizer(tokenizer_file)
    ids = [encode(block.column(side).to_pylist(), side) for side in (0, 1)]
    if tag:
        tag_id = tokenizer.tag_id(tag)
        ids[0] = [[tag_id, *line] for line in ids[0]]
    lengths = [np.fromiter(map(len, side), np.int32, len(side)) for side in ids]
    encoded = pa.record_batch(
        [*map(list_column, ids, lengths), *(pa.array(side + 1) for side in lengths), block.column("line")],
        schema=IDS_SCHEMA,
    )
    short = pa.array(np.maximum(*lengths) <= (np.inf if limit is None else limit))
    kept = encoded.filter(short)
    characters = [Counter("".join(column.to_pylist())) for column in block.filter(short).columns[:2]]
    return kept, len(block) - len(kept), characters
