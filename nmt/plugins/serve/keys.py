"""API keys: a file with a line for each, its name and the SHA-256 of the key, which itself is stored nowhere."""

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path

from nmt.config import check_name
from nmt.errors import NMTError
from nmt.files import read_text
from nmt.plugins.serve.worker import log

LINE = re.compile(r"(\S+)\s+([0-9a-f]{64})")


def digest(key: str) -> str:
    # Keys are random and long: unlike passwords, they cannot be found by trying, so one fast hash is enough.
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def read_keys(path: Path) -> dict[str, str]:
    """The names of keys by their hashes; NMTError for a file that holds anything else."""
    found = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            match = LINE.fullmatch(line.strip())
            if not match:
                raise NMTError(
                    f"{path}, line {number}: not a name and the SHA-256 of a key, as keys=FILE new_key=NAME writes"
                )
            found[match[2]] = match[1]
    return found


def add_key(path: Path, name: str) -> str:
    """Make a key, and add its hash to a file that nobody else may read; returns the key. NMTError for a name in use."""
    check_name("new_key", name)
    if re.search(r"\s", name):
        raise NMTError(f"new_key={name}: a name without blanks, please")
    if path.exists() and name in read_keys(path).values():
        raise NMTError(f"new_key={name}: {path} has a key of that name; remove its line, or take another name")
    key = secrets.token_urlsafe(32)
    try:
        with open(path, "a", encoding="utf-8", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
            file.write(f"{name} {digest(key)}\n")
    except OSError as error:
        raise NMTError(f"keys={path}: cannot be written ({error.strerror})") from error
    return key


class Keys:
    """The keys in a file; a changed file counts at once, without a restart."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state, self.names = self.file_state(), read_keys(path)

    def file_state(self) -> tuple[int, int]:
        try:
            stat = self.path.stat()
        except OSError:
            return 0, 0
        return stat.st_mtime_ns, stat.st_size

    def name_of(self, key: str) -> str | None:
        """The name of a key; None if it is none. While the file is damaged or missing, nobody is let in."""
        if (state := self.file_state()) != self.state:
            self.state = state
            try:
                self.names = read_keys(self.path)
            except NMTError as error:
                self.names = {}
                log(f"no key is let in: {error}")
        wanted, found = digest(key), None
        for each, name in self.names.items():  # all of them, so that the time tells nothing
            if hmac.compare_digest(each, wanted):
                found = name
        return found
