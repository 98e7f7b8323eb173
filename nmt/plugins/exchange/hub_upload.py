"""Upload files to the Hugging Face Hub as one commit, with the huggingface_hub library."""

import hashlib
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from nmt import files
from nmt.config import NMTError, one_line
from nmt.extensions import ExporterEntry
from nmt.plugins.exchange.exporting import PRECISIONS
from nmt.plugins.exchange.hub_contents import Upload
from nmt.plugins.exchange.hub_download import (
    Listing,
    digest_of,
    fetch,
    git_sha1,
    listing_of,
    quiet_library,
)
from nmt.plugins.exchange.hub_files import CARD, CONFIG, weights_among
from nmt.plugins.exchange.hub_names import HubName
from nmt.registry import entries_of

if TYPE_CHECKING:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

OF_NEW_REPOSITORIES = (CARD, ".gitattributes", "LICENSE")
"""The files that the hub's website writes into a new repository."""


@dataclass(frozen=True)
class Destination:
    """A branch of a repository as it is before the upload."""

    name: HubName
    listing: Listing | None
    """Its files; None if the branch does not exist yet."""
    has_repository: bool

    @property
    def is_public(self) -> bool:
        """Whether the repository exists and everybody can read it."""
        return self.listing is not None and not self.listing.is_private

    def notices(self, uploads: Sequence[Upload]) -> list[str]:
        """What the user should know: the branch has another README.md, perhaps a person's."""
        if self.listing is None or CARD not in self.listing.sizes:
            return []
        [card] = [upload for upload in uploads if upload.name == CARD]
        if is_listed(card, self.listing):
            return []
        commit = self.listing.commit
        return [f"{CARD} on the hub is replaced; the old one stays in commit {commit}"]

    def in_words(self, private: bool) -> str:
        """What the upload will do to the repository."""
        if self.listing is not None:
            return f"now at commit {self.listing.commit}"
        if self.has_repository:
            return "new branch"
        return "new, private" if private else "new, public"


@dataclass(frozen=True)
class Pushed:
    """The result of an upload."""

    commit: str
    is_new: bool
    """Whether a commit was made; False: the branch had these files already."""


def check_login(name: HubName) -> None:
    """Raise NMTError if the user has no token."""
    from huggingface_hub import get_token

    from nmt.plugins.exchange.hub_errors import LOG_IN

    if get_token() is None:
        raise NMTError(f"{name}: you are not logged in to the hub; {LOG_IN}")


def destination_of(name: HubName, overwrite: bool) -> Destination:
    """Look at the repository; NMTError if it contains the model of another program."""
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    from nmt.plugins.exchange.hub_errors import not_pushed

    with quiet_library():
        try:
            listing = listing_of(name)
            if not overwrite:
                check_content(name, listing)
            return Destination(name, listing, has_repository=True)
        except RevisionNotFoundError:
            return Destination(name, None, has_repository=True)
        # It does not exist, or is hidden from this user; creating it will show.
        except RepositoryNotFoundError:
            return Destination(name, None, has_repository=False)
        except NMTError:
            raise
        except Exception as error:
            raise not_pushed(name, error) from error


def check_content(name: HubName, listing: Listing) -> None:
    """Raise NMTError if a branch has a model that nmt did not write."""
    advice = "pass another name, or overwrite=true to replace the files of the same names"
    if CONFIG not in listing.sizes:
        weights = weights_among(listing.sizes)
        if weights:
            raise NMTError(f"{name}: contains another model ({weights[0]}); {advice}")
        others = [file for file in listing.sizes if file not in OF_NEW_REPOSITORIES]
        if others:
            raise NMTError(f"{name}: contains files of another program ({others[0]}); {advice}")
        return
    is_ours = False
    # Not read further, and not a reason to fail, if it is too large to be nmt's.
    if listing.sizes[CONFIG] <= files.SMALL:
        with TemporaryDirectory() as folder:
            fetch(name, listing, CONFIG, Path(folder))
            tree = files.read_mapping(Path(folder) / CONFIG, files.parse_json)
            is_ours = "format_version" in tree
    if not is_ours:
        raise NMTError(f"{name}: contains the model of another program ({CONFIG}); {advice}")


def push(
    destination: Destination,
    uploads: Sequence[Upload],
    message: str,
    private: bool,
    report: Callable[[str], None],
) -> Pushed:
    """Upload files as one commit, which also removes the exports of an earlier model.

    Creates the repository and the branch if they are missing. NMTError if the hub refuses.
    """
    from nmt.plugins.exchange.hub_errors import not_pushed

    name = destination.name
    with quiet_library(), warnings.catch_warnings(record=True) as caught:
        try:
            listing = destination.listing or create(destination, private)
            removed = outdated(listing, uploads)
            if removed:
                report(f"notice: files of earlier exports to remove from {name}: {len(removed)}")
            pushed = commit(name, listing, uploads, message)
        except NMTError:
            raise
        except Exception as error:
            raise not_pushed(name, error) from error
    for warning in caught:
        report(f"notice: {name}: {one_line(Exception(warning.message))}")
    return pushed


def create(destination: Destination, private: bool) -> Listing:
    """Create the repository or the branch, and return the files that it begins with."""
    from huggingface_hub import HfApi

    name = destination.name
    if not destination.has_repository:
        # Public unless the owner's settings say otherwise.
        HfApi().create_repo(name.repository, private=True if private else None)
    if name.revision != HubName.revision:
        HfApi().create_branch(name.repository, branch=name.revision)
    return listing_of(name)


def commit(name: HubName, listing: Listing, uploads: Sequence[Upload], message: str) -> Pushed:
    from huggingface_hub import HfApi

    operations = operations_for(listing, uploads)
    if not operations:
        return Pushed(listing.commit, is_new=False)
    info = HfApi().create_commit(
        name.repository,
        operations,
        commit_message=message,
        revision=name.revision,
        # The hub refuses the commit if somebody else has changed the branch since it was read.
        parent_commit=listing.commit,
    )
    return Pushed(info.oid, is_new=True)


def operations_for(
    listing: Listing, uploads: Sequence[Upload]
) -> "list[CommitOperationAdd | CommitOperationDelete]":
    """What changes a branch so that it has these files, and no other exports."""
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    operations = list[CommitOperationAdd | CommitOperationDelete]()
    for upload in uploads:
        if not is_listed(upload, listing):
            operations.append(CommitOperationAdd(upload.name, upload.content))
    for name in outdated(listing, uploads):
        operations.append(CommitOperationDelete(name))
    return operations


def outdated(listing: Listing, uploads: Sequence[Upload]) -> list[str]:
    """The files of exports in a branch that do not belong to the uploaded model."""
    names = {upload.name for upload in uploads}
    return [name for name in sorted(listing.sizes) if is_export(name) and name not in names]


def is_listed(upload: Upload, listing: Listing) -> bool:
    """Whether a branch has a file with this content already."""
    digest = listing.hashes.get(upload.name)
    if digest is None or listing.sizes[upload.name] != upload.size:
        return False
    if isinstance(upload.content, Path):
        return digest_of(upload.content, digest) == digest
    return digest in (git_sha1(upload.content), hashlib.sha256(upload.content).hexdigest())


def is_export(name: str) -> bool:
    """Whether a file in a repository is one that an exporter writes into its folder."""
    folder, _, file = name.partition("/")
    precisions = "|".join(PRECISIONS)
    for format, entry in entries_of(ExporterEntry).items():
        is_folder = re.fullmatch(rf"{re.escape(format)}(-({precisions}))?", folder)
        if is_folder and re.fullmatch(entry.files, file):
            return True
    return False
