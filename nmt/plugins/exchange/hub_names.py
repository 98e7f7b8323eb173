"""Names of models on the Hugging Face Hub: hub:ORG/NAME and hub:ORG/NAME@REVISION."""

import re
from dataclasses import dataclass

from nmt.config import NMTError, shown
from nmt.plugins.exchange.hub_card import REPOSITORY

PREFIX = "hub:"
REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,199}", re.A)
"""A branch, a tag, or the hash of a commit."""
COMMIT = re.compile(r"[0-9a-f]{40}")
DEFAULT_REVISION = "main"
"""The branch of a repository that a name without a revision stands for."""
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


def in_bytes(number: int) -> str:
    """A number of bytes, such as 2.5 GB."""
    for unit, size in UNITS:
        if number >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number} bytes"
