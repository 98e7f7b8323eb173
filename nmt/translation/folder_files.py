"""The files of a folder: which to translate, and what to name the translations."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from nmt.config import FolderOptions, NMTError, without_compression
from nmt.text import language_tag
from nmt.translation.directions import Direction
from nmt.translation.folder_languages import NamedLanguages, in_target_language
from nmt.translation.folder_patterns import Patterns
from nmt.translation.folder_record import RECORD
from nmt.translation.inputs import format_of_file

TEXT_SUFFIX = ".txt"


@dataclass(frozen=True)
class FolderFile:
    """A file of a folder."""

    name: str
    """The path in the folder, with slashes."""
    translated_name: str
    """The path of its translation in the output folder."""
    format: str
    """The name of a document format; "" for a file that is not translated."""


@dataclass
class FolderContent:
    """The files of a folder, sorted by name."""

    files: list[FolderFile]
    """The files to translate."""
    others: list[FolderFile]
    """The other files, such as images."""
    translations: list[str] = field(default_factory=list)
    """The files that nmt has translated, or whose names show another language than the source."""
    links: list[str] = field(default_factory=list)
    """The links, which are not followed."""
    unreadable: dict[str, str] = field(default_factory=dict)
    """The folders that cannot be read, and why."""
    unused_patterns: list[str] = field(default_factory=list)
    """The patterns of the user that match no file."""


@dataclass
class Walk:
    """The paths below a folder, except hidden ones and those of translations."""

    output: Path | None
    """The output folder, which may be inside the folder."""
    paths: list[Path] = field(default_factory=list)
    unreadable: dict[Path, str] = field(default_factory=dict)
    """The folders that cannot be read, and why."""

    def enter(self, folder: Path) -> None:
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            self.unreadable[folder] = error.strerror or str(error)
            return
        for path in entries:
            # Hidden folders are those of programs, such as .git.
            if path.name.startswith("."):
                continue
            if path.is_symlink() or not path.is_dir():
                self.paths.append(path)
            elif not self.has_translations(path):
                self.enter(path)

    def has_translations(self, folder: Path) -> bool:
        """Whether a folder is the output of this command or of an earlier one."""
        if self.output is not None and self.output.is_dir() and folder.samefile(self.output):
            return True
        return (folder / RECORD).is_file()


class FolderReader:
    """Sorts the files of a folder into a `FolderContent`."""

    def __init__(
        self,
        options: FolderOptions,
        languages: Direction,
        format: str,
        translated: Collection[str],
    ) -> None:
        self.options = options
        self.languages = languages
        self.format = format
        self.translated = translated
        self.patterns = Patterns(options)
        self.content = FolderContent([], [])

    def add(self, path: Path, name: str, named: NamedLanguages) -> None:
        """Add a file or link; `name` is its path in the folder."""
        content = self.content
        if path.is_symlink():
            content.links.append(name)
            return
        if not path.is_file():  # a pipe or device
            return
        format = format_in_folder(path, self.format) if self.patterns.is_chosen(name) else ""
        if format and (name in self.translated or named.is_translation(name)):
            content.translations.append(name)
        elif format:
            new_name = translated_name(name, self.options.names, *self.languages)
            content.files.append(FolderFile(name, new_name, format))
        elif self.patterns.is_named(name):
            raise NMTError(
                f"{name}: nmt cannot tell its format; pass format=NAME for all files that "
                "folder.include matches, or exclude this file"
            )
        else:
            content.others.append(FolderFile(name, name, ""))


def read_folder(
    folder: Path,
    output: Path | None,
    options: FolderOptions,
    languages: Direction,
    format: str = "auto",
    translated: Collection[str] = (),
) -> FolderContent:
    """The files of a folder; `languages` are the codes of source and target, which may be empty.

    `format` is that of all files, or auto. `translated` are the names of earlier translations if
    the output folder is the same. Raises NMTError if two translations would have the same name, or
    if a pattern asks for a file whose format nmt cannot tell.
    """
    walk = Walk(output)
    walk.enter(folder)
    names = [path.relative_to(folder).as_posix() for path in walk.paths]
    named = NamedLanguages(names, language_tag(languages.source) or languages.source)
    reader = FolderReader(options, languages, format, translated)
    for path, name in zip(walk.paths, names, strict=True):
        reader.add(path, name, named)
    content = reader.content
    for path, problem in walk.unreadable.items():
        content.unreadable[path.relative_to(folder).as_posix()] = problem
    content.unused_patterns = sorted(reader.patterns.unused)
    check_names(content.files)
    return content


def format_in_folder(path: Path, format: str) -> str:
    """The format of a file in a folder; "" if it is not to be translated."""
    if format != "auto":
        return format
    if without_compression(path.name) != path.name:
        return ""
    # Other names may be those of text, too, such as Makefile, but in a folder nobody named them.
    if path.suffix.lower() == TEXT_SUFFIX:
        return "text"
    return format_of_file(str(path))


def translated_name(name: str, template: str | None, source: str, target: str) -> str:
    """The path of a translation, from the path of its source."""
    source_tag = language_tag(source) or source
    target_tag = language_tag(target) or target
    path = PurePosixPath(name)
    if template is not None:
        folder = "" if path.parent == PurePosixPath() else f"{path.parent}/"
        return template.format(
            folder=folder,
            stem=path.stem,
            suffix=path.suffix,
            source=source_tag,
            target=target_tag,
        )
    if not source_tag or not target_tag:
        return name
    parts = [in_target_language(part, source_tag, target_tag) for part in path.parts]
    return "/".join(parts)


def check_names(files: Sequence[FolderFile]) -> None:
    """Raise NMTError if two translations would have the same name."""
    by_name = dict[str, str]()
    for file in files:
        other = by_name.setdefault(file.translated_name, file.name)
        if other != file.name:
            raise NMTError(
                f"{other} and {file.name} would both become {file.translated_name}: pass "
                "'folder.names={folder}{stem}.{target}{suffix}', or exclude one of them"
            )
