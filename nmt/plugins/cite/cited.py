"""The model that is cited. No torch."""

from dataclasses import dataclass
from pathlib import Path

from nmt.errors import NMTError
from nmt.files import ModelDescription, find_model_directory, is_exported, is_parser, read_description, sha256
from nmt.translation import CONVERTED_FILES


@dataclass
class Cited:
    """A model to cite: where it lies, and what it says of itself."""

    folder: Path
    """The model directory."""
    run: Path | None
    """The run around it, if there is one."""
    description: ModelDescription

    @property
    def name(self) -> str:
        return (self.run or self.folder).resolve().name


def find_cited(name: str) -> Cited:
    """The model of a run or model directory; NMTError for one that does not translate by itself."""
    path = Path(name)
    if path.is_symlink():  # runs/latest is another run tomorrow
        path = path.parent / path.readlink()
    folder = find_model_directory(str(path))
    if is_exported(folder):
        raise NMTError(f"run={name}: exported for another program; pass the run or model directory")
    description = read_description(folder)
    if is_parser(description):
        raise NMTError(f"run={name}: a parser; nmt cite is for translations, `nmt score metrics=[brackets]` for trees")
    within_run = folder.name == "model" and (folder.parent / "config.yaml").is_file()
    return Cited(folder, folder.parent if within_run else None, description)


def model_digests(model: Path) -> dict[str, str]:
    """SHA-256 of each file that decides what a model translates."""
    return {name: sha256(model / name) for name in CONVERTED_FILES}
