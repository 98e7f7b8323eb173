"""Download models from the Hugging Face Hub into nmt's cache, with the huggingface_hub library.

$XDG_CACHE_HOME/nmt/hub/ORG/NAME/
  COMMIT/        regular files, because nmt follows no links
  refs/REVISION  the commit of a branch, tag or hash, once all files of that commit are there

The library reads HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE when it is imported.
"""

import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from nmt import files
from nmt.config import NMTError, shown
from nmt.plugins.exchange.hub_card import REPOSITORY
from nmt.plugins.exchange.hub_files import CONFIG, MODEL_TYPES, small_files_among, weights_among

PREFIX = "hub:"
REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,199}", re.A)
"""A branch, a tag, or the hash of a commit."""
COMMIT = re.compile(r"[0-9a-f]{40}")
DEFAULT_REVISION = "main"
"""The branch of a repository that a name without a revision stands for."""
TIMEOUT = 30
"""Seconds to wait for the list of a repository's files."""
UNITS = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3))


@dataclass(frozen=True)
class HubName:
    """A model on the Hugging Face Hub."""

    repository: str
    """ORG/NAME."""
    revision: str = DEFAULT_REVISION

    def __str__(self) -> str:
        if self.revision == DEFAULT_REVISION:
            return f"{PREFIX}{self.repository}"
        return f"{PREFIX}{self.repository}@{self.revision}"


@dataclass(frozen=True)
class Snapshot:
    """The downloaded files of one commit."""

    folder: Path
    repository: str
    commit: str


def is_hub_name(name: str) -> bool:
    return name.startswith(PREFIX)


def parse(name: str) -> HubName:
    """The model that hub:ORG/NAME or hub:ORG/NAME@REVISION names; NMTError for any other name."""
    repository, has_revision, revision = name.removeprefix(PREFIX).partition("@")
    if not has_revision:
        revision = DEFAULT_REVISION
    if REPOSITORY.fullmatch(repository) and REVISION.fullmatch(revision):
        return HubName(repository, revision)
    forms = f"{PREFIX}ORG/NAME or {PREFIX}ORG/NAME@REVISION"
    example = f"{PREFIX}facebook/nllb-200-distilled-600M"
    raise NMTError(f"{shown(name)}: must be {forms}, such as {example}")


def download(name: HubName, report: Callable[[str], None]) -> Snapshot:
    """Download the files of a model that nmt reads, unless they are in the cache.

    Reports what it downloads. If the hub cannot be reached, it uses the commit that the revision
    named when it was last downloaded. Raises NMTError if the model cannot be downloaded or
    imported.
    """
    cache = Cache(files.cache_folder() / "hub" / name.repository)
    known = cache.commit_of(name.revision)
    # The hash of a commit always names the same files, so there is nothing to ask the hub.
    if known is not None and known == name.revision:
        return Snapshot(cache.folder_of(known), name.repository, known)
    # Here, because the library takes long to import.
    from nmt.plugins.exchange.hub_errors import explained, is_unreachable, reason

    with quiet_library():
        try:
            listing = listing_of(name)
        # The library raises its own errors and those of another library for HTTP.
        except Exception as error:
            if known is None or not is_unreachable(error):
                raise explained(name, error) from error
            problem = f"the hub cannot be reached ({reason(error)})"
            report(f"notice: {name}: {problem}; using commit {known}, which is in the cache")
            return Snapshot(cache.folder_of(known), name.repository, known)
        try:
            if cache.commit_of(listing.commit) is None:
                download_files(name, listing, cache.folder_of(listing.commit), report)
            cache.record(name.revision, listing.commit)
        except NMTError:
            raise
        # Those errors, and errors of the system.
        except Exception as error:
            raise explained(name, error) from error
    return Snapshot(cache.folder_of(listing.commit), name.repository, listing.commit)


@dataclass(frozen=True)
class Cache:
    """The downloaded files of one repository."""

    folder: Path

    def folder_of(self, commit: str) -> Path:
        return self.folder / commit

    def ref_of(self, revision: str) -> Path:
        # A revision such as refs/pr/1 becomes the name of one file.
        return self.folder / "refs" / quote(revision, safe="")

    def commit_of(self, revision: str) -> str | None:
        """The commit of a revision when it was last downloaded; None if the cache lacks it."""
        path = self.ref_of(revision)
        if not path.exists():
            return None
        commit = files.read_text(path, files.SMALL)
        # Any program can write to the cache, and the commit becomes a part of a path.
        if not COMMIT.fullmatch(commit):
            return None
        # A user may have deleted the folder only.
        return commit if self.folder_of(commit).is_dir() else None

    def record(self, revision: str, commit: str) -> None:
        """Record that all files of a commit are there."""
        for known in (revision, commit):
            path = self.ref_of(known)
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_file(path, commit)


@contextmanager
def quiet_library() -> Iterator[None]:
    """Keep the library from logging failed attempts, each in several lines."""
    from huggingface_hub.utils import logging as messages

    before = messages.get_verbosity()
    messages.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        messages.set_verbosity(before)


@dataclass(frozen=True)
class Listing:
    """The files of a commit."""

    commit: str
    sizes: Mapping[str, int]
    """The size of each file, in bytes."""
    hashes: Mapping[str, str]
    """The SHA-256 of each large file."""


def listing_of(name: HubName) -> Listing:
    """The files that a revision has now."""
    from huggingface_hub import HfApi

    info = HfApi().model_info(
        name.repository,
        revision=name.revision,
        files_metadata=True,
        timeout=TIMEOUT,
    )
    # The answer of a server becomes a part of a path.
    if info.sha is None or not COMMIT.fullmatch(info.sha):
        raise ValueError("the hub names no commit")
    sizes = {}
    hashes = {}
    for file in info.siblings or ():
        sizes[file.rfilename] = int(file.size or 0)
        if file.lfs is not None:
            hashes[file.rfilename] = file.lfs.sha256
    return Listing(info.sha, sizes, hashes)


def download_files(
    name: HubName, listing: Listing, folder: Path, report: Callable[[str], None]
) -> None:
    """Download the files that nmt reads to a folder, unless it has them already.

    NMTError if they are not those of a supported model.
    """
    small = small_files_among(listing.sizes)
    weights = weights_among(listing.sizes)
    if CONFIG not in small or not weights:
        raise NMTError(f"{name}: contains no model in the format of transformers")
    folder.mkdir(parents=True, exist_ok=True)
    missing = [file for file in small + weights if not has_size(folder / file, listing.sizes[file])]
    size = sum(listing.sizes[file] for file in missing)
    free = shutil.disk_usage(folder).free
    if size > free:
        problem = f"needs {in_bytes(size)}, but {folder} has {in_bytes(free)} left"
        advice = "free some space, or set XDG_CACHE_HOME to a folder on another disk"
        raise NMTError(f"{name}: {problem}; {advice}")
    # First, because the weights of an unsupported model would be downloaded in vain.
    if CONFIG in missing:
        fetch(name, listing, CONFIG, folder)
        missing.remove(CONFIG)
    check_type(name, folder)
    report(f"downloading {in_bytes(size)} from {name}")
    for file in missing:
        fetch(name, listing, file, folder)


def has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def fetch(name: HubName, listing: Listing, file: str, folder: Path) -> None:
    """Download a file, with a progress bar if standard error is a terminal.

    NMTError if it is not as the hub lists it; the next download replaces it.
    """
    from huggingface_hub import hf_hub_download

    path = folder / file
    # The library would keep a file that it believes complete.
    path.unlink(missing_ok=True)
    hf_hub_download(name.repository, file, revision=listing.commit, local_dir=folder)
    is_listed = has_size(path, listing.sizes[file])
    digest = listing.hashes.get(file)
    if is_listed and digest is not None:
        is_listed = files.sha256(path) == digest
    if not is_listed:
        path.unlink()
        raise NMTError(f"{name}: {file} was not downloaded as the hub lists it; repeat the command")


def check_type(name: HubName, folder: Path) -> None:
    """Raise NMTError if the importers do not support a model of this type."""
    tree = files.read_mapping(folder / CONFIG, files.parse_json)
    model_type = tree.get("model_type")
    if model_type not in MODEL_TYPES:
        supported = ", ".join(MODEL_TYPES)
        raise NMTError(f"{name}: model_type={shown(model_type)}: must be one of {supported}")


def in_bytes(number: int) -> str:
    """A number of bytes, such as 2.5 GB."""
    for unit, size in UNITS:
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"
