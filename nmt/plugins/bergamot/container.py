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
from typing import Any, NamedTuple

import numpy as np

from nmt import files
from nmt.config import NMTError, one_line

Array = np.ndarray[Any, Any]
VERSION = 1
# Marian's numbers for types of data. `BYTES` is only for the settings, which are YAML.
BYTES = 0x101
FLOAT32 = 0x404
INT8 = 0x4101
FIRST_HEADER = 16
"""The position of the first item's header, after the version and the number of items."""
HEADER_SIZE = 32
"""The number of bytes of an item's header."""
# The engine reads arrays in place, from memory with this alignment; see page.html.
ALIGNMENT = 256
LEVELS = np.float32(127)
"""The largest number that a rounded weight can have, with either sign."""
# Part of the name of every embedding: Wemb, encoder_Wemb and decoder_Wemb.
EMBEDDING = "Wemb"
SCALE = "_QuantMultA"
"""The end of the names of the factors for activations."""


class Header(NamedTuple):
    """The numbers with which a container describes an item."""

    name_length: int
    """In bytes, with the final zero byte."""
    kind: int
    """BYTES, FLOAT32 or INT8."""
    dimensions: int
    data_length: int
    """In bytes."""


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
        return dict(named_arrays(path.read_bytes()))
    except (OSError, ValueError, OverflowError, struct.error) as error:
        raise NMTError(f"{path}: not a readable Firefox model ({one_line(error)})") from error


def named_arrays(content: bytes) -> Iterator[tuple[str, Array]]:
    """The names and arrays in the content of a container, in its order.

    ValueError or struct.error if it is damaged.
    """
    # The parts are read in the order of the description above; `at` is where the next one begins.
    version, count = struct.unpack_from("<2Q", content)
    headers = read_headers(content, count)
    at = FIRST_HEADER + HEADER_SIZE * count
    names = list[str]()
    for header in headers:
        encoded_name = content[at : at + header.name_length]
        names.append(encoded_name.rstrip(b"\0").decode())
        at += header.name_length
    shapes = list[list[int]]()
    for header in headers:
        sizes = np.frombuffer(content, "<i4", header.dimensions, at)
        shapes.append(sizes.tolist())
        at += 4 * header.dimensions
    [padding] = struct.unpack_from("<Q", content, at)
    at += 8 + padding
    # Python's integers do not overflow, so lengths that a hostile file chose cannot wrap around.
    end = at + sum(header.data_length for header in headers)
    has_negative_size = any(min(shape, default=0) < 0 for shape in shapes)
    if version != VERSION or end != len(content) or has_negative_size:
        raise ValueError("its lengths do not fit")
    for header, name, shape in zip(headers, names, shapes, strict=True):
        data = content[at : at + header.data_length]
        yield name, array_of(name, header.kind, shape, data)
        at += header.data_length


def read_headers(content: bytes, count: int) -> list[Header]:
    """The headers of a container with `count` items; ValueError if it is too short for them."""
    # A damaged file may claim any number of items, but no more than it has bytes.
    numbers = 4 * min(count, len(content))
    # numpy raises ValueError if the content is shorter than `numbers`.
    rows = np.frombuffer(content, "<u8", numbers, FIRST_HEADER).reshape(-1, 4)
    return [Header(*row) for row in rows.tolist()]


def array_of(name: str, kind: int, shape: list[int], data: bytes) -> Array:
    """The array of an item: float32, or the bytes of a text; ValueError if it is damaged."""
    if kind == BYTES:
        # The settings, as text; all other arrays become float32.
        return np.frombuffer(data, np.int8)
    if kind == FLOAT32:
        return np.frombuffer(data, "<f4", prod(shape)).reshape(shape)
    if kind != INT8:
        raise ValueError(f"{name[:80]!r} has the unknown type {kind:#x}")
    count = prod(shape)
    numbers = np.frombuffer(data, np.int8, count).astype(np.float32)
    # The factor with which numbers were multiplied before they were rounded follows them.
    scale = np.frombuffer(data, "<f4", 1, offset=count)
    # The scales of hostile files may be zero; values that are not finite are refused later.
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        numbers *= 1 / scale
    if EMBEDDING in name:
        return numbers.reshape(shape)
    # The shape is [in, out], but the numbers are in the order [out, in].
    return numbers.reshape(shape[::-1]).T


def is_rounded(name: str) -> bool:
    """Whether an array is stored as INT8.

    True for matrices of products, such as encoder_l1_ffn_W1 and encoder_l1_self_Wq; for embeddings;
    and for the scales of embeddings, because their names contain EMBEDDING.
    """
    if EMBEDDING in name:
        return True
    # The first _W must be the end of the name, perhaps with one more character.
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
