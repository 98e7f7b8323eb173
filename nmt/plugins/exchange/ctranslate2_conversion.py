"""Models that were converted for CTranslate2, in the user's cache."""

import hashlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

from nmt import __version__
from nmt.config import ModelConfig, NMTError
from nmt.files import MODEL_FILES, cache_folder, sha256

CONVERSION = "4"
"""The version of the conversions; increase it whenever their content changes."""
# Longer than lines of text are, and small beside the weights.
SHORTEST_TABLE = 2048
"""The fewest rows of the table of sinusoids, which CTranslate2 does not compute itself."""


def weights(folder: Path, precision: str) -> Path:
    """The path of the conversion's weights in our cache.

    The name of the conversion's folder depends on the content of the model directory.
    """
    hashes = [sha256(folder / name) for name in MODEL_FILES]
    # By content and not by path, so that a model that was moved is not converted again, and one
    # that was changed is.
    key = " ".join([__version__, CONVERSION, *hashes])
    name = hashlib.sha256(key.encode()).hexdigest()
    return cache_folder() / "ctranslate2" / f"{name}-{precision}" / "model.bin"


def converted(folder: Path, precision: str, notice: Callable[[str], None]) -> Path:
    """The folder of the conversion in our cache, created if missing."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise NMTError("CTranslate2 is not installed; pip install ctranslate2")
    output = weights(folder, precision).parent
    # A conversion is written as a whole, so a folder that exists is complete.
    if not output.exists():
        from nmt.plugins.exchange.ctranslate2 import write

        notice(f"converting the model for CTranslate2, once: {output}")
        write(folder, output, precision)
    return output


def table_length(model: ModelConfig) -> int:
    """Number of rows in a conversion's position table."""
    if model.positions == "learned":
        return model.max_positions
    return max(SHORTEST_TABLE, model.max_positions)
