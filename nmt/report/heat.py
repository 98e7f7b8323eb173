"""Matrices of weights as pictures: PNG without any library, one pixel a weight.

The weight is the opacity, so that a picture goes with light and dark pages. Shapes: Q queries, K keys.
"""

import base64
import colorsys
import struct
import zlib

import numpy as np
import numpy.typing as npt

Weights = npt.NDArray[np.float32]
ALL = (31, 111, 214)
"""The colour of what stands for all heads."""


def head_colour(head: int, heads: int) -> tuple[int, int, int]:
    """Red, green and blue of a head, as different as can be from those of others."""
    red, green, blue = colorsys.hls_to_rgb((head / heads + 0.58) % 1, 0.47, 0.72)
    return round(255 * red), round(255 * green), round(255 * blue)


def png(weights_QK: Weights, colour: tuple[int, int, int]) -> bytes:
    """A PNG (ISO/IEC 15948), truecolour with alpha, of 8 bits each."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    queries, keys = weights_QK.shape
    pixels = np.empty((queries, keys, 4), dtype=np.uint8)
    pixels[..., :3] = colour
    pixels[..., 3] = (weights_QK * 255).round().clip(0, 255)
    # Every row begins with the number of its filter, none.
    rows = np.concatenate((np.zeros((queries, 1), dtype=np.uint8), pixels.reshape(queries, -1)), axis=1)
    header = struct.pack(">IIBBBBB", keys, queries, 8, 6, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def data_uri(weights_QK: Weights, colour: tuple[int, int, int]) -> str:
    """The picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png(weights_QK, colour)).decode()}"
