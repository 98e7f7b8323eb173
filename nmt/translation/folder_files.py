"""The files of a folder: which to translate, and what to name the translations."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from nmt.config import FolderOptions, NMTError, without_compression
from nmt.text import language_tag
from nmt.translation.directions import Direction
from nmt.translation.folder_languages import NamedLanguages, in_target_language
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
    """The files whose names show another language than the source."""
    links: list[str] = field(default_factory=list)
    """The links, which are not followed."""


def walk(folder: Path, leave_out: Path | None) -> Iterator[Path]:
    """All files and links below a folder, except hidden ones and those in `leave_out`."""
    for path in sorted(folder.iterdir()):
        # Hidden folders are those of programs, such as .git.
        if path.name.startswith("."):
            continue
        if path.is_symlink() or not path.is_dir():
            yield path
        elif leave_out is None or not path.samefile(leave_out):
            yield from walk(path, leave_out)


def read_folder(
    folder: Path,
    output: Path | None,
    options: FolderOptions,
    languages: Direction,
    format: str = "auto",
) -> FolderContent:
    """The files of a folder; `languages` are the codes of source and target, which may be empty.

    `format` is that of all files, or auto. Raises NMTError if two translations would have the same
    name, or if no file matches the patterns.
    """
    is_inside = output is not None and output.is_dir() and not output.samefile(folder)
    content = FolderContent([], [])
    paths = [*walk(folder, output if is_inside else None)]
    names = [path.relative_to(folder).as_posix() for path in paths]
    source_tag = language_tag(languages.source) or languages.source
    named = NamedLanguages(names, source_tag)
    for path, name in zip(paths, names, strict=True):
        if path.is_symlink():
            content.links.append(name)
            continue
        if not path.is_file():  # a pipe or device
            continue
        chosen_format = format_in_folder(path, format) if matches(name, options) else ""
        if chosen_format and named.is_translation(name):
            content.translations.append(name)
        elif chosen_format:
            new_name = translated_name(name, options.names, *languages)
            content.files.append(FolderFile(name, new_name, chosen_format))
        else:
            content.others.append(FolderFile(name, name, ""))
    check_formats(content.others, options)
    check_names(content.files)
    return content


def check_formats(others: Sequence[FolderFile], options: FolderOptions) -> None:
    """Raise NMTError if the user asks for a file whose format nmt cannot tell."""
    if not options.include:
        return
    for file in others:
        if matches(file.name, options):
            raise NMTError(
                f"{file.name}: nmt cannot tell its format; pass format=NAME for all files that "
                "folder.include matches, or exclude this file"
            )


def matches(name: str, options: FolderOptions) -> bool:
    """Whether a file is to be translated, as far as patterns tell."""
    path = PurePosixPath(name)
    if any(match(path, pattern) for pattern in options.exclude):
        return False
    return not options.include or any(match(path, pattern) for pattern in options.include)


def match(path: PurePosixPath, pattern: str) -> bool:
    """Whether a path matches a pattern, in which ** stands for any folders.

    A pattern without a slash matches the names of files in all folders.
    """
    if "/" not in pattern:
        return path.match(pattern)
    return pattern_of(pattern).fullmatch(str(path)) is not None


def pattern_of(pattern: str) -> re.Pattern[str]:
    """A pattern of paths as a regular expression."""
    # Python 3.13 has PurePath.full_match, but nmt supports earlier versions.
    translated = ""
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        if piece == "**/":
            translated += "(?:.*/)?"
        elif piece == "**":
            translated += ".*"
        elif piece == "*":
            translated += "[^/]*"
        elif piece == "?":
            translated += "[^/]"
        else:
            translated += re.escape(piece)
    return re.compile(translated)


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
