"""Downloads and conversions, kept for the next time."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/nmt or ~/.cache/nmt."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nmt"
