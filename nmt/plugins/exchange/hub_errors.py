"""Explain the errors of the huggingface_hub library in one line."""

from typing import TYPE_CHECKING

from huggingface_hub.constants import ENDPOINT
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    OfflineModeIsEnabled,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from nmt import files
from nmt.config import NMTError, one_line, shown

if TYPE_CHECKING:
    from nmt.plugins.exchange.hub_names import HubName

LOG_IN = "run `hf auth login` or set HF_TOKEN"
NO_ACCESS = (401, 403)
"""HTTP's codes for a missing or insufficient token."""
SERVER_ERROR = 500
"""The lowest of HTTP's codes for problems of the server."""


def cause_of(error: Exception) -> Exception:
    # If a request for the properties of a file fails, the library looks for the file in its cache,
    # and complains that it is not there.
    if isinstance(error, LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        return error.__cause__
    return error


def is_unreachable(error: Exception) -> bool:
    """Whether the error leaves open what the hub contains now."""
    cause = cause_of(error)
    if isinstance(cause, HfHubHTTPError):
        return cause.response.status_code >= SERVER_ERROR
    return not isinstance(cause, HFValidationError)


def reason(error: Exception) -> str:
    """Why the hub cannot be reached."""
    if isinstance(cause_of(error), OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set"
    return one_line(cause_of(error))


def explained(name: "HubName", error: Exception) -> NMTError:
    """The error for a user who wants to download a model."""
    cause = cause_of(error)
    page = f"{ENDPOINT}/{name.repository}"
    if isinstance(cause, RevisionNotFoundError):
        problem = f"has no revision {name.revision}"
        return NMTError(f"{name}: {problem}; pass a branch, tag or commit of {page}")
    # It is a RepositoryNotFoundError, too.
    if isinstance(cause, GatedRepoError):
        return NMTError(f"{name}: requires permission; ask for it on {page}, then {LOG_IN}")
    if isinstance(cause, HfHubHTTPError) and denies_access(cause):
        problem = "no such repository, or no access to it"
        if cause.server_message:
            problem += f" ({shown(cause.server_message)})"
        return NMTError(f"{name}: {problem}; check the name, or {LOG_IN}")
    if isinstance(cause, HFValidationError):
        return NMTError(f"{name}: {one_line(cause)}")
    # Errors of the system, unlike those of the network, name a file.
    if isinstance(cause, OSError) and cause.filename is not None:
        return files.cannot_write(cause.filename, cause)
    advice = "check the network, and repeat the command to continue"
    if isinstance(cause, OfflineModeIsEnabled):
        advice = "unset it to download the model"
    return NMTError(f"{name}: cannot be downloaded ({reason(error)}); {advice}")


def denies_access(error: HfHubHTTPError) -> bool:
    """Whether a repository does not exist, or not for this user, who cannot tell the difference."""
    is_missing = isinstance(error, RepositoryNotFoundError)
    return is_missing or error.response.status_code in NO_ACCESS
