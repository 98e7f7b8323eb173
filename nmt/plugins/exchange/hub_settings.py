"""Read the settings of models and tokenizers that transformers stored, from untrusted folders."""

from pathlib import Path
from typing import Any

from nmt import files

NO_LIMIT = "1000000000000000019884624838656"
"""The length limit that transformers writes if there is none: 10^30, rounded to a float."""


def read_settings(path: Path) -> dict[str, Any]:
    """The settings in a JSON file, in which null replaces NO_LIMIT; {} if there is no file."""
    if not path.exists():
        return {}
    return files.read_mapping(path, parse_settings, files.LARGE)


def parse_settings(text: str) -> Any:
    # nmt's reader refuses integers of more than 64 bits.
    return files.parse_json(text.replace(NO_LIMIT, "null"))
