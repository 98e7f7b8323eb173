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
UNKNOWN_USER = 401
NO_ACCESS = (UNKNOWN_USER, 403)
"""HTTP's codes for a missing or insufficient token."""
CONFLICTS = (409, 412)
"""HTTP's codes for a repository that is no longer as it was read."""
TOO_MANY = 429
"""HTTP's code for too many requests."""
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
        status = cause.response.status_code
        return status == TOO_MANY or status >= SERVER_ERROR
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
    advice = "check the network, and repeat the command"
    if isinstance(cause, HfHubHTTPError):
        advice = "repeat the command later"
    if isinstance(cause, OfflineModeIsEnabled):
        advice = "unset it to download the model"
    return NMTError(f"{name}: cannot be downloaded ({reason(error)}); {advice}")


def not_pushed(name: "HubName", error: Exception) -> NMTError:
    """The error for a user who wants to upload a model."""
    # The library hides the reason why a large file was not uploaded.
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, HfHubHTTPError):
        return not_accepted(name, error)
    # The library has asked the hub whether it can read the metadata in README.md.
    if isinstance(error, ValueError):
        return NMTError(f"{name}: {one_line(error)}")
    if isinstance(error, OSError) and error.filename is not None:
        return files.cannot_write(error.filename, error)
    advice = "check the network, and repeat the command"
    if isinstance(error, OfflineModeIsEnabled):
        advice = "unset it to upload the model"
    return NMTError(f"{name}: cannot be uploaded ({reason(error)}); {advice}")


def not_accepted(name: "HubName", error: HfHubHTTPError) -> NMTError:
    """The error for an upload that the hub refused."""
    status = error.response.status_code
    answer = f" ({shown(error.server_message)})" if error.server_message else ""
    if status == UNKNOWN_USER:
        return NMTError(f"{name}: the hub does not accept your token{answer}; {LOG_IN}")
    if denies_access(error):
        owner = name.repository.partition("/")[0]
        problem = f"you may not write to repositories of {owner}{answer}"
        advice = f"pass another name, or {LOG_IN} as a user who may, with a token that can write"
        return NMTError(f"{name}: {problem}; {advice}")
    if status in CONFLICTS:
        return NMTError(f"{name}: was changed meanwhile{answer}; repeat the command")
    return NMTError(f"{name}: the hub refuses the model{answer or f' (HTTP {status})'}")


def denies_access(error: HfHubHTTPError) -> bool:
    """Whether a repository does not exist, or not for this user, who cannot tell the difference."""
    is_missing = isinstance(error, RepositoryNotFoundError)
    return is_missing or error.response.status_code in NO_ACCESS
