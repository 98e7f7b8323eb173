"""Options to translate a folder of files."""

import string
from dataclasses import dataclass

from nmt.config.fields import running_text, setting
from nmt.errors import SettingError

NAME_FIELDS = ("folder", "stem", "suffix", "source", "target")
"""The fields of a template for names."""


@dataclass
class FolderOptions:
    """Which files of a folder to translate, and what to name the translations."""

    include: list[str] = setting([], affects_output=False)
    """Patterns of the files to translate, such as [docs/**/*.md,'*.html']; []: all documents and
    .txt files."""
    exclude: list[str] = setting([], affects_output=False)
    """Patterns of files to leave out, such as ['drafts/**']."""
    names: str | None = running_text(None, affects_output=False)
    """Template for the names of translations, such as '{folder}{stem}.{target}{suffix}'; null: the
    name of the source, in which the source language, as in en.yml, becomes the target language."""
    copy: bool = setting(False, affects_output=False)
    """Copy the other files, such as images, to the output."""

    def __post_init__(self) -> None:
        if self.names is not None:
            check_template(self.names)


def check_template(names: str) -> None:
    """Raise NMTError unless a template has known fields only, and two files keep two names."""
    allowed = ", ".join(f"{{{name}}}" for name in NAME_FIELDS)
    try:
        fields = {name for _, name, _, _ in string.Formatter().parse(names) if name is not None}
    except ValueError as error:
        raise SettingError(f"not a template ({error})", key="folder.names", value=names) from error
    unknown = sorted(fields.difference(NAME_FIELDS))
    if unknown:
        problem = f"unknown field {{{unknown[0]}}}: use {allowed}"
        raise SettingError(problem, key="folder.names", value=names)
    if names.startswith("/") or ".." in names.split("/"):
        raise SettingError("must stay inside the output folder", key="folder.names", value=names)
