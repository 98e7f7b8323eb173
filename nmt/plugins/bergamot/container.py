"""Marian's containers of arrays, in which Firefox's translation models are stored.

A container has, in little-endian order: the version (1) and the number of items as u64; for each
item, four u64 (length of its name with a final zero byte, type, number of dimensions, length of its
data); all names; all shapes as i32; the length of the padding that follows as u64; and all data.

In the fork of Marian that Firefox uses, weight matrices W [in, out] have the type INT8: numbers
q = round(m W), where m = 127 / max |W|, in the order [out, in], then m as float32. Embeddings are
in the order of their shape. The items NAME_QuantMultA are the factors by which activations are
multiplied before rounding (`alphas`).
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from nmt import files
from nmt.config import NMTError, one_line

Array = np.ndarray[Any, Any]
VERSION = 1
BYTES = 0x101
FLOAT32 = 0x404
INT8 = 0x4101
FIRST_HEADER = 16
"""The position of the first item's header, after the version and the number of items."""
HEADER = 32
"""The size of an item's header."""
# The engine reads arrays in place, from memory with this alignment; see page.html.
ALIGNMENT = 256
LEVELS = np.float32(127)
# Part of the name of every embedding: Wemb, encoder_Wemb and decoder_Wemb.
EMBEDDING = "Wemb"
SCALE = "_QuantMultA"


@dataclass(frozen=True)
class Item:
    """An array as a container stores it."""

    name: bytes
    """With a final zero byte."""
    kind: int
    """BYTES, FLOAT32 or INT8."""
    shape: tuple[int, ...]
    data: bytes


def read_container(path: Path) -> dict[str, Array]:
    """The arrays of an untrusted container, as float32 or bytes; NMTError if it is damaged."""
    files.check_regular(path)
    try:
        return dict(arrays(path.read_bytes()))
    except (OSError, ValueError, OverflowError, struct.error) as error:
        raise NMTError(f"{path}: not a readable Firefox model ({one_line(error)})") from error


def arrays(content: bytes) -> Iterator[tuple[str, Array]]:
    """Names and arrays of a container; ValueError or struct.error if it is damaged."""
    # The order of the parts is that of the description above, so one position runs through all.
    version, count = struct.unpack_from("<2Q", content)
    # A damaged file may claim any number of items. Its content limits what numpy can read.
    numbers = 4 * min(count, len(content))
    # numpy raises ValueError if the content is shorter than `numbers`.
    headers = np.frombuffer(content, "<u8", numbers, FIRST_HEADER).reshape(-1, 4).tolist()
    names = []
    at = FIRST_HEADER + HEADER * count
    for length, _, _, _ in headers:
        names.append(content[at : at + length].rstrip(b"\0").decode())
        at += length
    shapes = []
    for _, _, dimensions, _ in headers:
        shapes.append(np.frombuffer(content, "<i4", dimensions, at).tolist())
        at += 4 * dimensions
    [padding] = struct.unpack_from("<Q", content, at)
    at += 8 + padding
    end = at + sum(length for _, _, _, length in headers)
    has_negative_size = any(min(shape, default=0) < 0 for shape in shapes)
    # Python's integers do not overflow, so lengths that a hostile file chose cannot wrap around.
    if version != VERSION or end != len(content) or has_negative_size:
        raise ValueError("its lengths do not fit")
    for (_, kind, _, length), name, shape in zip(headers, names, shapes, strict=True):
        yield name, array_of(name, kind, shape, content[at : at + length])
        at += length


def array_of(name: str, kind: int, shape: list[int], data: bytes) -> Array:
    """The array of an item."""
    if kind == BYTES:
        # The settings, as text; all other arrays become float32.
        return np.frombuffer(data, np.int8)
    if kind == FLOAT32:
        return np.frombuffer(data, "<f4", prod(shape)).reshape(shape)
    if kind != INT8:
        raise ValueError(f"{name[:80]!r} has the unknown type {kind:#x}")
    numbers = np.frombuffer(data, np.int8, prod(shape)).astype(np.float32)
    # The scales of hostile files may be zero; values that are not finite are refused later.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        # The scale is the last four bytes, after as many numbers as the shape has.
        numbers *= 1 / np.frombuffer(data, "<f4", 1, prod(shape))
    if EMBEDDING in name:
        return numbers.reshape(shape)
    return numbers.reshape(shape[::-1]).T


def is_rounded(name: str) -> bool:
    """Whether an array is stored as INT8.

    True for matrices of products, such as W1 and Wq; for embeddings; and for the scales of
    embeddings, because their names contain EMBEDDING.
    """
    if EMBEDDING in name:
        return True
    place = name.find("_W")
    return place > 0 and len(name) - place in (2, 3)


def container(weights: Mapping[str, Array], settings: str) -> bytes:
    """The content of a file with these arrays and, as YAML, Marian's settings."""
    items = [item_of(name, weights[name].astype("<f4")) for name in sorted(weights)]
    text = settings.encode() + b"\0"
    items.append(Item(b"special:model.yml\0", BYTES, (len(text),), text))
    head = struct.pack("<2Q", VERSION, len(items))
    for item in items:
        numbers = (len(item.name), item.kind, len(item.shape), len(item.data))
        head += struct.pack("<4Q", *numbers)
    for item in items:
        head += item.name
    for item in items:
        head += struct.pack(f"<{len(item.shape)}i", *item.shape)
    # The data must begin at a multiple of ALIGNMENT; 8 bytes are the length of the padding itself.
    padding = ALIGNMENT - (len(head) + 8) % ALIGNMENT
    head += struct.pack("<Q", padding) + bytes(padding)
    return head + b"".join(item.data for item in items)


def item_of(name: str, array: Array) -> Item:
    """A float32 array as it is stored."""
    encoded = name.encode() + b"\0"
    if not is_rounded(name):
        return Item(encoded, FLOAT32, array.shape, aligned(array.tobytes()))
    largest = np.abs(array).max()
    scale = LEVELS / (largest or LEVELS)  # 1 for an array of zeros
    numbers = np.clip(np.rint(array * scale), -LEVELS, LEVELS).astype(np.int8)
    if EMBEDDING not in name:
        numbers = numbers.T
    data = numbers.tobytes() + np.float32(scale).tobytes()
    return Item(encoded, INT8, array.shape, aligned(data))


def aligned(data: bytes) -> bytes:
    """Data with zero bytes up to a multiple of ALIGNMENT."""
    return data + bytes(-len(data) % ALIGNMENT)
