"""Translated files that wait to be fetched, in memory: the server writes nothing to disk."""

import re
import secrets
import time
from collections import OrderedDict
from pathlib import PurePath

KEPT_SECONDS = 600
MOST_BYTES = 64 * 2**20
"""Bytes of all files together; the oldest ones make room."""


def safe_name(name: str, target: str) -> str:
    """The name of the translation of a file: letters, digits, dots and dashes alone."""
    path = PurePath(name.replace("\\", "/"))
    stem = re.sub(r"[^\w.-]+", "_", path.stem, flags=re.ASCII).strip("._")[:80]
    return f"{stem or 'file'}_{target}{path.suffix.lower()}"


class Downloads:
    """Files by names that nobody can guess."""

    def __init__(self) -> None:
        self.files: OrderedDict[str, tuple[float, bytes]] = OrderedDict()

    def add(self, name: str, content: bytes) -> str:
        """The name to fetch a file by."""
        token = f"{secrets.token_urlsafe(16)}.{name}"
        self.files[token] = (time.monotonic() + KEPT_SECONDS, content)
        while self.files and (
            next(iter(self.files.values()))[0] < time.monotonic()
            or sum(len(content) for _, content in self.files.values()) > MOST_BYTES
        ):
            self.files.popitem(last=False)
        return token

    def find(self, token: str) -> tuple[str, bytes] | None:
        """The file's own name and its content; None where there is none any more."""
        until, content = self.files.get(token, (0.0, b""))
        return (token.partition(".")[2], content) if until > time.monotonic() else None
