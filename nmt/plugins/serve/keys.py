"""API keys: a file with the name and the SHA-256 of each key, which is read for each request."""

import hashlib
import re
from pathlib import Path

from nmt.config import NMTError
from nmt.files import read_text
from nmt.plugins.serve.failures import log_client

KEY_LINE = re.compile(r"(\S+)\s+([0-9a-fA-F]{64})\b.*")
NO_KEY = re.compile(r"\s*(#.*)?")
"""Empty lines and comments."""


def read_keys(path: Path) -> dict[str, str]:
    """Map the SHA-256 of each API key to the key's name; skip all other lines."""
    keys = {}
    for line in read_text(path).splitlines():
        match = KEY_LINE.fullmatch(line)
        if match:
            keys[match[2].lower()] = match[1]
    return keys


def faulty_lines(path: Path) -> list[int]:
    """The numbers of the lines that are neither keys nor comments, counted from 1."""
    numbers = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if not KEY_LINE.fullmatch(line) and not NO_KEY.fullmatch(line):
            numbers.append(number)
    return numbers


def name_of_key(path: Path, key: str) -> str | None:
    """A key's name; None if the key is unknown or the file cannot be read."""
    # Keys are long and random, so unlike passwords, they do not need a slow hash.
    # JSON may contain lone surrogates, which should be a wrong key and not an error.
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    try:
        # Looked up by digest, so the time of the answer tells nothing about the keys.
        return read_keys(path).get(digest)
    except NMTError as error:
        # Somebody may be editing the file: nobody gets in, but the server stays up.
        log_client("all API keys are rejected", f": {error}")
        return None
