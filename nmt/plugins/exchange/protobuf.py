"""Messages of Protocol Buffers, to write (https://protobuf.dev/programming-guides/encoding). No torch.

Messages that stand one after another are read as one, in which later values replace earlier ones.
"""

Value = int | str | bytes
"""A message is its bytes."""


def varint(number: int) -> bytes:
    """A number of at least 0, in groups of 7 bits, lowest first."""
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def message(*values: tuple[int, Value]) -> bytes:
    """A message of these values, each with the number of its field."""
    content = bytearray()
    for field, value in values:
        if isinstance(value, int):
            content += varint(field << 3) + varint(value)
        else:
            text = value.encode() if isinstance(value, str) else value
            content += varint(field << 3 | 2) + varint(len(text)) + text
    return bytes(content)
