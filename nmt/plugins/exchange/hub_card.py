"""Read the license and the origin of a model from an untrusted folder of the Hugging Face Hub."""

import re
from pathlib import Path
from typing import Any

from nmt import files
from nmt.config import NMTError

FRONT_MATTER = re.compile(r"\ufeff?---\s*\n(.*?\n)---\s*(\n|$)", re.S)
"""The metadata at the beginning of a README.md, in YAML."""
LICENSE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+-]{0,59}")
"""An identifier of a license, such as cc-by-nc-4.0."""
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.A)
"""The name of a repository on the hub, such as facebook/nllb-200-distilled-600M."""


def origin_of(folder: Path) -> dict[str, str]:
    """The `license` and `base_model` that a folder states, for a TrainingRecord."""
    card = metadata_of(folder / "README.md")
    record = dict[str, str]()
    license_id = card.get("license")
    if license_id == "other":
        # The card then names the license itself.
        license_id = card.get("license_name") or license_id
    if isinstance(license_id, str) and LICENSE.fullmatch(license_id):
        record["license"] = license_id
    config = files.read_mapping(folder / "config.json", files.parse_json)
    name = config.get("_name_or_path")
    if isinstance(name, str) and REPOSITORY.fullmatch(name):
        record["base_model"] = name
    return record


def metadata_of(path: Path) -> dict[str, Any]:
    """The metadata of a model card; {} if there is none, or if it cannot be read.

    A card is for people, so a damaged one is no reason to refuse a model.
    """
    if not path.is_file():
        return {}
    try:
        match = FRONT_MATTER.match(files.read_text(path, files.SMALL))
        tree = files.parse_yaml(match[1]) if match else {}
    except (NMTError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}
