"""The output folder of `nmt synthesize`: its files, and the identity of its translations.

identity.json       identity of the translations: hashes of the input and the model, settings
translations.jsonl  one object per line, with all its translations, best first
translations.jsonl.parts/
                    the translations of jobs with part=I/N, which the job without it joins
translations.jsonl.blocks/
                    the finished blocks of a job with cluster=NAME
train.LANGUAGE      the chosen pairs, one file for each side
summary.json        numbers of pairs that were kept, and of pairs dropped for each reason
.lock               held by the process that works in the folder
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nmt.config import NMTError, parts_folder
from nmt.files import LOCK, parse_json, read_mapping, write_file

IDENTITY = "identity.json"
TRANSLATIONS = "translations.jsonl"
PARTS = parts_folder(TRANSLATIONS).name
SUMMARY = "summary.json"


def check_ours(folder: Path) -> None:
    """Raise NMTError if a folder has files that this command did not write."""
    if not folder.is_dir():
        return
    # A killed command may have left temporary files before it could write its identity.
    names = {path.name for path in folder.iterdir() if not path.name.endswith(".nmt-tmp")}
    if IDENTITY not in names and not names <= {LOCK, PARTS}:
        raise NMTError(f"output={folder} has unrelated files: name a new or empty folder")


def claim(folder: Path, identity: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Store the identity of a folder's translations; NMTError if it has some with other settings.

    `before` has the values of options that an older version of nmt did not store.
    """
    # Complete or partial. Parts have records of their own, which are checked when they are joined.
    names = {path.name for path in folder.glob(f"*{TRANSLATIONS}*")}
    if names - {PARTS}:
        check_same(folder, identity, before)
    write_identity(folder, identity)


def start_again(folder: Path, identity: dict[str, Any], sides: Sequence[str]) -> None:
    """Remove the files of earlier commands, and store the identity of the new translations.

    The job itself drops the lines of a partial file.
    """
    # The translations go first: if the process is killed here, nothing has the wrong identity.
    (folder / TRANSLATIONS).unlink(missing_ok=True)
    remove_pairs(folder, sides)
    write_identity(folder, identity)


def write_identity(folder: Path, identity: dict[str, Any]) -> None:
    write_file(folder / IDENTITY, json.dumps(identity, indent=2) + "\n")


def check_same(folder: Path, identity: dict[str, Any], before: Mapping[str, Any]) -> None:
    """Raise NMTError if the translations in a folder were made with other settings."""
    advice = "pass overwrite=true to replace them, or name another folder"
    try:
        recorded = read_mapping(folder / IDENTITY, parse_json)
    except NMTError as error:
        problem = f"output={folder} has translations with unknown settings ({error})"
        raise NMTError(f"{problem}: {advice}") from error
    earlier = {**before, **recorded}
    # An older version of nmt recorded fewer files.
    recorded_keys = [key for key in identity if key in earlier]
    changed = [key for key in recorded_keys if earlier[key] != identity[key]]
    if changed:
        problem = f"output={folder} has translations made with a different {', '.join(changed)}"
        raise NMTError(f"{problem}: {advice}")


def remove_pairs(folder: Path, sides: Sequence[str]) -> None:
    """Remove the chosen pairs and the summary of the choice."""
    for name in (SUMMARY, *(f"train.{side}" for side in sides)):
        (folder / name).unlink(missing_ok=True)
