"""What became of the files of a folder."""

from dataclasses import dataclass, field

from nmt.config import NMTError
from nmt.text import words
from nmt.translation.documents import Document
from nmt.translation.folder_files import FolderContent, FolderFile

TRANSLATED = "translated"
UNCHANGED = "unchanged"
EDITED = "kept, edited"
EXISTS = "kept, exists"
ITSELF = "kept, same name"
FAILED = "failed"
TO_TRANSLATE = "to translate"
KEPT = (EDITED, EXISTS, ITSELF)


@dataclass
class FileReport:
    """What became of a file."""

    file: FolderFile
    status: str = TO_TRANSLATE
    lines: int = 0
    """The number of sentences, cells and messages to translate."""
    words: int = 0
    """The number of words in them."""
    problem: str = ""
    """Why the file could not be translated."""
    source_hash: str = ""


@dataclass
class FolderReport:
    """What became of all files of a folder."""

    files: list[FileReport]
    unused_patterns: list[str] = field(default_factory=list)
    """The patterns of the user that match no file."""
    copied: int = 0
    """The number of other files that were copied."""
    left: int = 0
    """The number of other files that were not copied."""
    links: int = 0
    translations: int = 0
    """The number of files that are translations into other languages."""
    gone: list[str] = field(default_factory=list)
    """Translations whose source is no longer there."""

    def count(self, *statuses: str) -> int:
        return sum(file.status in statuses for file in self.files)


def count_file(item: FileReport, document: Document) -> None:
    item.lines = len(document.lines)
    item.words = sum(round(words(line)) for line in document.lines)


def fail(item: FileReport, error: Exception) -> None:
    item.status = FAILED
    item.problem = str(error)


def report_of(content: FolderContent) -> FolderReport:
    """The report about a folder before its files are translated."""
    reports = [FileReport(file) for file in content.files]
    for name, problem in content.unreadable.items():
        item = FileReport(FolderFile(name, name, ""))
        fail(item, NMTError(f"cannot read this folder ({problem})"))
        reports.append(item)
    return FolderReport(
        reports,
        links=len(content.links),
        translations=len(content.translations),
        unused_patterns=content.unused_patterns,
    )
