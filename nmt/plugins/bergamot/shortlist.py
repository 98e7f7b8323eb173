"""Lexical shortlists: the target subwords that the engine considers for each source subword.

A file contains, in little-endian order:

- six u64: SHORTLIST, a checksum of the rest of the file, the number of target subwords that every
  sentence can use, the maximum number of subwords in a list, the number of source subwords plus 1,
  and the number of entries in all lists
- u64 for where each list begins, and where the last list ends
- u32 for the target subwords of all lists
"""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nmt import data, search
from nmt.config import NMTError, one_line
from nmt.files import read_bytes
from nmt.model import Transformer
from nmt.plugins.bergamot.vocabulary import Vocabulary

SHORTLIST = 0xF11A48D5013417F5
"""The first number in the file of a shortlist."""
HEADER = 48
"""The size of the six numbers at the beginning."""
PAIRS = 20_000
"""Maximum number of training pairs from which the shortlist is counted."""
MOST_SHUFFLED = 1 << 24
"""The pairs of a larger corpus are sampled in another way."""
BATCH_TOKENS = 4096
"""Tokens per batch when the pairs are aligned."""
LISTED = 50
"""The number of target subwords per source subword."""
FREQUENT = 100
"""The number of subwords, besides bytes, that every sentence can use."""


def shortlist(targets: Sequence[Sequence[int]], first: int, best: int) -> bytes:
    """The content of a file with the likely target ids of each source id.

    The ids below `first` can be used in every sentence. `best` is the maximum length of a list.
    """
    ends = np.cumsum([0, *map(len, targets)])
    body = struct.pack("<4Q", first, best, len(ends), ends[-1])
    body += ends.astype("<u8").tobytes()
    entries = []
    for ids in targets:
        entries += sorted(ids)
    body += np.array(entries, "<u4").tobytes()
    return struct.pack("<2Q", SHORTLIST, checksum(body)) + body


def checksum(body: bytes) -> int:
    """The hash of the u64 words of a file, combined as by boost::hash_combine."""
    value = 0
    for word in np.frombuffer(body, "<u8", len(body) // 8).tolist():
        # The constant and the shifts are boost's; `%` does what u64 does in C++.
        value ^= (word + 0x9E3779B9 + (value << 6) + (value >> 2)) % 2**64
        value %= 2**64
    return value


def shortlist_shape(content: bytes) -> tuple[int, int]:
    """The number of source ids in a file, and one more than the largest target id.

    ValueError or struct.error if it is damaged.
    """
    magic, _, first, _, count, total = struct.unpack_from("<6Q", content)
    if magic != SHORTLIST or len(content) != HEADER + 8 * count + 4 * total:
        raise ValueError("its lengths do not fit")
    ends = np.frombuffer(content, "<u8", count, HEADER)
    # Otherwise, the engine would read behind the entries.
    is_complete = count > 0 and ends[0] == 0 and ends[-1] == total
    if not is_complete or (np.diff(ends.astype(np.int64)) < 0).any():
        raise ValueError("its lists do not fit")
    entries = np.frombuffer(content, "<u4", total, HEADER + 8 * count)
    largest = int(entries.max(initial=0))
    # `first` counts too: its ids are allowed without being listed.
    return count - 1, max(first, largest + 1)


def read_shortlist(path: Path, source: Vocabulary, target: Vocabulary) -> bytes:
    """The content of a file; NMTError if it is not for these vocabularies."""
    content = read_bytes(path)
    try:
        sources, targets = shortlist_shape(content)
    except (ValueError, struct.error) as error:
        raise NMTError(f"shortlist={path}: not a Firefox shortlist ({one_line(error)})") from error
    # A shortlist names neither its vocabularies nor its model, so only the sizes can be checked.
    size = len(source.our_ids)
    if sources != size or targets > len(target.our_ids):
        problem = f"is for a vocabulary of {sources:,} entries, not {size:,}"
        raise NMTError(f"shortlist={path}: {problem}")
    return content


def build_shortlist(
    model: Transformer,
    corpus: data.PreparedCorpus,
    source: Vocabulary,
    target: Vocabulary,
) -> bytes:
    """The content of a file that is counted in the training text of a corpus.

    Every sentence can also use bytes and the FREQUENT subwords after them.
    """
    likely = likely_targets(model, corpus)
    their_ids = {id: number for number, id in enumerate(target.our_ids)}
    lists = []
    for id in source.our_ids:
        lists.append([their_ids[target_id] for target_id in likely.get(id, [])])
    # sentencepiece sorts pieces by score, so the first ones are the most frequent. Bytes are always
    # allowed, since they spell what no subword covers.
    first = first_subword(target.model) + FREQUENT
    return shortlist(lists, min(first, len(target.our_ids)), LISTED)


def first_subword(model: Any) -> int:
    """The id of the first piece after symbols and bytes in a parsed sentencepiece model."""
    types = [piece.type for piece in model.pieces]
    return types.index(model.SentencePiece.NORMAL)


def likely_targets(model: Transformer, corpus: data.PreparedCorpus) -> dict[int, list[int]]:
    """Source id -> the target ids that the model aligns with it most often, best first.

    Counts a link where a target's attention to a source is at least half of its highest attention.
    """
    pairs = sample_pairs(corpus)
    # Aligned by the model itself, so that no other tool is needed.
    scores = search.forced_decoding([model], pairs, BATCH_TOKENS, align=True)
    # `np.concatenate` needs an array even if no pair has links.
    links = [np.empty((0, 2), np.int64)]
    for (source, target), score in zip(pairs, scores, strict=True):
        weights = score.attention
        if weights is None or not weights.size:
            continue
        is_linked = weights >= weights.max(axis=1, keepdims=True) / 2
        targets, sources = np.nonzero(is_linked)
        ids = (np.array(source)[sources], np.array(target)[targets])
        links.append(np.stack(ids, axis=1))
    linked, counts = np.unique(np.concatenate(links), axis=0, return_counts=True)
    # A stable sort, so that ties always come in the same order.
    most_frequent_first = np.argsort(-counts, kind="stable")
    likely: dict[int, list[int]] = {}
    for source, target in linked[most_frequent_first].tolist():
        likely.setdefault(source, []).append(target)
    return {source: targets[:LISTED] for source, targets in likely.items()}


def sample_pairs(corpus: data.PreparedCorpus) -> Any:
    """The ids of at most PAIRS training pairs, the same ones each time."""
    split = corpus.split("train")
    random = np.random.default_rng(0)
    # A corpus may be sorted, so its beginning is not a sample.
    if len(split) <= MOST_SHUFFLED:
        rows = random.permutation(len(split))[:PAIRS]
    else:
        # This needs no memory for the whole corpus.
        rows = random.choice(len(split), PAIRS, replace=False, shuffle=False)
    rows = np.sort(rows)
    sides = [side.to_pylist() for side in split.rows(rows)]
    return list(zip(*sides, strict=True))
