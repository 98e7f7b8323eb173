"""The binary files of Firefox's translation models: Marian's containers of arrays, and lexical shortlists.

A container has, in little-endian order: the version (1) and the number of items as u64; for each item, four u64 (length
of its name with a final zero byte, type, number of dimensions, length of its data); all names; all shapes as i32; the
length of the padding that follows as u64; and all data.

In the fork of Marian that Firefox uses, weight matrices W [in, out] have the type INT8: numbers q = round(m W), where
m = 127 / max |W|, in the order [out, in], then m as float32. Embeddings are in the order of their shape. The items
NAME_QuantMultA are the factors by which activations are multiplied before rounding (`alphas`).
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from nmt import files
from nmt.config import NMTError, one_line

Array = np.ndarray[Any, Any]
BYTES, FLOAT32, INT8 = 0x101, 0x404, 0x4101
ALIGNMENT = 256
LEVELS = np.float32(127)
EMBEDDING = "Wemb"
SCALE = "_QuantMultA"
SHORTLIST = 0xF11A48D5013417F5
"""The first number in the file of a shortlist."""


def read_container(path: Path) -> dict[str, Array]:
    """The arrays of an untrusted container, as float32 or bytes; NMTError if it is damaged."""
    files.check_regular(path)
    try:
        return dict(arrays(path.read_bytes()))
    except (OSError, ValueError, OverflowError, struct.error) as error:
        raise NMTError(f"{path}: not a readable Firefox model ({one_line(error)})") from error


def arrays(content: bytes) -> Iterator[tuple[str, Array]]:
    version, count = struct.unpack_from("<2Q", content)
    heads = np.frombuffer(content, "<u8", min(count, len(content)) * 4, 16).reshape(-1, 4).tolist()
    names, shapes, at = [], [], 16 + 32 * count
    for length, _, _, _ in heads:
        names.append(content[at : at + length].rstrip(b"\0").decode())
        at += length
    for _, _, dimensions, _ in heads:
        shapes.append(np.frombuffer(content, "<i4", dimensions, at).tolist())
        at += 4 * dimensions
    at += 8 + struct.unpack_from("<Q", content, at)[0]
    end = at + sum(length for *_, length in heads)
    if version != 1 or end != len(content) or min(map(min, filter(None, shapes)), default=0) < 0:
        raise ValueError("its lengths do not fit")
    for (_, kind, _, length), name, shape in zip(heads, names, shapes, strict=True):
        yield name, value(name, kind, shape, content[at : at + length])
        at += length


def value(name: str, kind: int, shape: list[int], data: bytes) -> Array:
    if kind == BYTES:
        return np.frombuffer(data, np.int8)
    if kind == FLOAT32:
        return np.frombuffer(data, "<f4", prod(shape)).reshape(shape)
    if kind != INT8:
        raise ValueError(f"{name[:80]!r} has the unknown type {kind:#x}")
    numbers = np.frombuffer(data, np.int8, prod(shape)).astype(np.float32)
    with np.errstate(
        divide="ignore", over="ignore", invalid="ignore"
    ):  # of hostile files; not finite is refused later
        numbers *= 1 / np.frombuffer(data, "<f4", 1, prod(shape))
    return numbers.reshape(shape) if EMBEDDING in name else numbers.reshape(shape[::-1]).T


def is_rounded(name: str) -> bool:
    """True for matrices of products, for embeddings and, as their names contain EMBEDDING, for their scales."""
    place = name.find("_W")
    return EMBEDDING in name or (place > 0 and len(name) - place in (2, 3))


def container(weights: Mapping[str, Array], settings: str) -> bytes:
    """The content of a file with these arrays, sorted by name, and with Marian's settings as YAML."""
    items = []
    for name in sorted(weights):
        array = weights[name].astype("<f4")
        data = array.tobytes()
        if is_rounded(name):
            scale = LEVELS / (np.abs(array).max() or LEVELS)
            numbers = np.clip(np.rint(array * scale), -LEVELS, LEVELS).astype(np.int8)
            data = (numbers if EMBEDDING in name else numbers.T).tobytes() + np.float32(
                scale
            ).tobytes()
        items.append(
            (
                name.encode() + b"\0",
                INT8 if is_rounded(name) else FLOAT32,
                array.shape,
                aligned(data),
            )
        )
    text = settings.encode() + b"\0"
    items.append((b"special:model.yml\0", BYTES, (len(text),), text))
    head = struct.pack("<2Q", 1, len(items))
    head += b"".join(
        struct.pack("<4Q", len(name), kind, len(shape), len(data))
        for name, kind, shape, data in items
    )
    head += b"".join(name for name, *_ in items)
    head += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in items)
    padding = ALIGNMENT - (len(head) + 8) % ALIGNMENT
    return head + struct.pack("<Q", padding) + bytes(padding) + b"".join(data for *_, data in items)


def aligned(data: bytes) -> bytes:
    return data + bytes(-len(data) % ALIGNMENT)


def shortlist(targets: Sequence[Sequence[int]], first: int, best: int) -> bytes:
    """The content of a file with the likely target ids of each source id, besides the ids below `first`."""
    ends = np.cumsum([0, *map(len, targets)])
    body = struct.pack("<4Q", first, best, len(ends), ends[-1]) + ends.astype("<u8").tobytes()
    body += np.array([id for ids in targets for id in sorted(ids)], "<u4").tobytes()
    checksum = 0
    for word in np.frombuffer(body, "<u8", len(body) // 8).tolist():
        checksum ^= (word + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)) % 2**64
        checksum %= 2**64
    return struct.pack("<2Q", SHORTLIST, checksum) + body


def shortlist_shape(content: bytes) -> tuple[int, int]:
    """The number of source ids in a shortlist file, and one more than the largest target id; ValueError if damaged."""
    magic, _, first, _, count, total = struct.unpack_from("<6Q", content)
    if magic != SHORTLIST or len(content) != 48 + 8 * count + 4 * total:
        raise ValueError("its lengths do not fit")
    ends = np.frombuffer(content, "<u8", count, 48)
    if not count or ends[0] != 0 or ends[-1] != total or (np.diff(ends.astype(np.int64)) < 0).any():
        raise ValueError("its lists do not fit")
    largest = np.frombuffer(content, "<u4", total, 48 + 8 * count).max(initial=0)
    return count - 1, max(first, int(largest) + 1)
