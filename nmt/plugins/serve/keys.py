"""API keys: a file with the name and the SHA-256 of each key, which is read for each request."""

import hashlib
import re
from pathlib import Path

from nmt.config import NMTError
from nmt.files import read_text
from nmt.plugins.serve.failures import log_client

KEY_LINE = re.compile(r"^(\S+)\s+([0-9a-f]{64})\b", re.MULTILINE)


def read_keys(path: Path) -> dict[str, str]:
    """Map the SHA-256 of each API key to the key's name; skip lines that lack either."""
    return {line[2]: line[1] for line in KEY_LINE.finditer(read_text(path))}


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
