"""Download models from the Hugging Face Hub into nmt's cache, with the huggingface_hub library.

$XDG_CACHE_HOME/nmt/hub/ORG/NAME/
  COMMIT/        regular files, because nmt follows no links
  refs/REVISION  the commit of a branch, tag or hash, once all files of that commit are there

The library reads HF_ENDPOINT, HF_TOKEN and HF_HUB_OFFLINE when it is imported.
"""

import hashlib
import logging
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from nmt import compat, files
from nmt.config import NMTError
from nmt.plugins.exchange.hub_files import CONFIG, Format
from nmt.plugins.exchange.hub_names import COMMIT, HubName, in_bytes

LIBRARY_FOLDER = ".cache"
"""Where the library keeps unfinished files, within the folder that it downloads to."""
TIMEOUT = 30
"""Seconds to wait for the list of a repository's files."""
LONGEST_WAIT = 24 * 3600
"""Seconds to wait while another process downloads the same model."""
SHA256_DIGITS = 64


@dataclass(frozen=True)
class Snapshot:
    """The downloaded files of one commit."""

    folder: Path
    repository: str
    commit: str
    is_current: bool = True
    """Whether the hub says so now; False: the hub could not be reached."""


def download(name: HubName, kind: Format, report: Callable[[str], None]) -> Snapshot:
    """Download the files of a model that nmt reads, unless they are in the cache.

    Reports what it downloads. If the hub cannot be reached, it uses the commit that the revision
    named when it was last downloaded. Raises NMTError if the model cannot be downloaded or is of
    another kind.
    """
    snapshot = snapshot_of(name, kind, report)
    # The cache does not record the kind of model that it was downloaded as.
    kind.check(name, snapshot.folder)
    return snapshot


def snapshot_of(name: HubName, kind: Format, report: Callable[[str], None]) -> Snapshot:
    """The files of a model in the cache, after missing files have been downloaded."""
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
            return Snapshot(cache.folder_of(known), name.repository, known, is_current=False)
        try:
            with cache.locked(name):
                folder = cache.folder_of(listing.commit)
                # Another process may have downloaded it since.
                is_checked = cache.commit_of(listing.commit) is not None
                missing = missing_files(name, kind, listing, folder, is_checked)
                if missing:
                    download_files(name, kind, listing, missing, folder, report)
                cache.record(name.revision, listing.commit)
        except NMTError:
            raise
        # Errors of huggingface_hub and of the system.
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

    @contextmanager
    def locked(self, name: HubName) -> Iterator[None]:
        """Let no other process download the same repository.

        The processes of a distributed run start at the same time.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / files.LOCK
        path.touch()
        refusal = f"{name}: another process has been downloading it for a day; stop that process"
        with files.locked_file(path, True, refusal, LONGEST_WAIT):
            yield

    def record(self, revision: str, commit: str) -> None:
        """Record that all files of a commit are there."""
        for known in (revision, commit):
            path = self.ref_of(known)
            path.parent.mkdir(parents=True, exist_ok=True)
            files.write_file(path, commit)


@contextmanager
def quiet_library() -> Iterator[None]:
    """Keep the library from logging failed attempts, and from drawing bars into a file."""
    from huggingface_hub.constants import HF_HUB_DISABLE_PROGRESS_BARS
    from huggingface_hub.utils import logging as messages
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    before = messages.get_verbosity()
    messages.set_verbosity(logging.ERROR)
    # Unlike its downloads, its uploads show bars even without a terminal. The user's variable
    # decides if it is set.
    has_terminal = sys.stderr is not None and sys.stderr.isatty()
    hides_bars = (
        HF_HUB_DISABLE_PROGRESS_BARS is None
        and not has_terminal
        and not are_progress_bars_disabled()
    )
    if hides_bars:
        disable_progress_bars()
    try:
        yield
    finally:
        messages.set_verbosity(before)
        if hides_bars:
            enable_progress_bars()


@dataclass(frozen=True)
class Listing:
    """The files of a commit."""

    commit: str
    sizes: Mapping[str, int]
    """The size of each file, in bytes."""
    hashes: Mapping[str, str]
    """The SHA-256 of large files, and git's SHA-1 of other ones."""
    is_private: bool


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
        elif file.blob_id is not None:
            hashes[file.rfilename] = file.blob_id
    return Listing(info.sha, sizes, hashes, is_private=bool(info.private))


def missing_files(
    name: HubName, kind: Format, listing: Listing, folder: Path, is_checked: bool
) -> list[str]:
    """The files of a kind of model that a folder lacks.

    `is_checked` is whether all files of the folder were once compared with the listing; then only
    their sizes are. NMTError if the listed files are not those of such a model.
    """
    missing = []
    for file in kind.choose(name, listing.sizes):
        path = folder / file
        # A process that was killed may have left a file that it had not compared yet.
        is_there = has_size(path, listing.sizes[file])
        if not is_there or not (is_checked or is_as_listed(path, listing, file)):
            missing.append(file)
    return missing


def download_files(
    name: HubName,
    kind: Format,
    listing: Listing,
    missing: list[str],
    folder: Path,
    report: Callable[[str], None],
) -> None:
    """Download files to a folder; NMTError if the model turns out to be of another kind."""
    folder.mkdir(parents=True, exist_ok=True)
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
    kind.check(name, folder)
    report(f"downloading {in_bytes(size)} from {name}")
    for file in missing:
        fetch(name, listing, file, folder)
    # Parts of files from killed downloads, and the library's notes on complete files.
    shutil.rmtree(folder / LIBRARY_FOLDER, ignore_errors=True)


def has_size(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size


def fetch(name: HubName, listing: Listing, file: str, folder: Path) -> None:
    """Download a file, with a progress bar if standard error is a terminal.

    NMTError if it is not as the hub lists it; the next download replaces it.
    """
    from huggingface_hub import hf_hub_download

    path = folder / file
    size = listing.sizes[file]
    problem = f"{name}: {file} was not downloaded as the hub lists it; repeat the command"
    # The library would keep a file that it believes complete.
    path.unlink(missing_ok=True)
    hf_hub_download(
        name.repository,
        file,
        revision=listing.commit,
        local_dir=folder,
        **compat.limit_of_download(size, NMTError(problem)),
    )
    if not is_as_listed(path, listing, file):
        path.unlink()
        raise NMTError(problem)


def is_as_listed(path: Path, listing: Listing, file: str) -> bool:
    """Whether a file has the size and the hash that the hub lists."""
    digest = listing.hashes.get(file)
    if not has_size(path, listing.sizes[file]):
        return False
    return digest is None or digest_of(path, digest) == digest


def digest_of(path: Path, like: str) -> str:
    """The SHA-256 of a file, or the SHA-1 of its git object, whichever `like` is."""
    if len(like) == SHA256_DIGITS:
        return files.sha256(path)
    # Such files are small, since the hub stores larger ones outside of git.
    return git_sha1(files.read_bytes(path, files.LARGE))


def git_sha1(content: bytes) -> str:
    """The name that git gives to the content of a file."""
    header = f"blob {len(content)}\0".encode()
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
