"""Records of JSON Lines files, which keep their bytes."""

import json
from typing import Any

BYTE_ORDER_MARK = "\ufeff"


def with_field(line: bytes, name: str, value: Any) -> str:
    """A record, which is not empty, with one more field at its end; with a line end."""
    # Before the closing brace, because a parsed record could lose digits and the order of keys.
    text = line.decode(errors="replace").removeprefix(BYTE_ORDER_MARK).rstrip()
    inner = text.removesuffix("}").rstrip()
    # Readable in any script.
    return f"{inner}, {json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}}}\n"
