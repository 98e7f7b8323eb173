"""The job of `nmt translate` for a folder of files."""

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from nmt.config import NMTError, TranslateConfig, shown
from nmt.files import read_bytes
from nmt.items import readable
from nmt.translation.directions import Direction
from nmt.translation.document_lines import DocumentNotes, translated_line, warn_without_marks
from nmt.translation.documents import Document, Translated, read_document
from nmt.translation.folder_files import FolderContent, FolderFile, read_folder
from nmt.translation.folder_output import CannotWriteFolder, locked_folder, write_in_folder
from nmt.translation.folder_record import FolderRecord, TranslatedFile, hash_of, hash_of_file
from nmt.translation.folder_report import (
    EDITED,
    EXISTS,
    FAILED,
    ITSELF,
    KEPT,
    TO_TRANSLATE,
    TRANSLATED,
    UNCHANGED,
    FileReport,
    FolderReport,
    count_file,
    fail,
    report_of,
)
from nmt.translation.identity import what_affects_output
from nmt.translation.inputs import HEAD_BYTES, check_content, suffix_of
from nmt.translation.load import open_translator, with_engine
from nmt.translation.models import find_models, require_languages
from nmt.translation.progress import progress_of
from nmt.translation.reporting import summarize, warn
from nmt.translation.stages import RefusedLine, Stage, Translation
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from nmt.translation.devices import DeviceTranslator


@dataclass
class PendingFile:
    """A file whose lines the translator has received."""

    report: FileReport
    document: Document
    translations: list[Translated] = field(default_factory=list)
    notes: DocumentNotes = field(default_factory=DocumentNotes)

    @property
    def is_complete(self) -> bool:
        return len(self.translations) == len(self.document.lines)

    @property
    def next_line(self) -> str:
        """The line whose translation comes next."""
        return self.document.lines[len(self.translations)]


def translate_folder(config: TranslateConfig) -> FolderReport:
    """Translate the files in the folder `config.input` into the folder `config.output`."""
    models = find_models(config.translator.run)
    languages = require_languages(config.translator, models)
    output = Path(config.output)
    with ExitStack() as stack:
        stack.enter_context(locked_folder(output))
        job = FolderJob(config, languages, output)
        content = job.read()
        result = report_of(content)
        todo = job.select(result.files)
        try:
            if todo:
                job.show = progress_of(config, "translate", 0, len(todo), stack, "files")
                job.translate(todo, stack)
            job.copy_others(content, result)
        finally:
            job.record.close()
        result.gone = job.translations_without_source()
    summarize(job.counts)
    return result


class FolderJob:
    """Translates the files of a folder that need it."""

    def __init__(
        self,
        config: TranslateConfig,
        languages: Direction,
        output: Path | None,
        has_model: bool = True,
    ) -> None:
        self.config = config
        self.has_model = has_model
        self.languages = languages
        self.source = Path(config.input)
        self.output = output
        self.counts: dict[str, int] = Counter()
        """The number of lines with each note of the translator."""
        self.options = ""
        """The SHA-256 of what besides a source determines its translation."""
        self.written = 0
        self.show: Callable[[int], None] = lambda number: None
        """Shows how many files are done."""
        if output is not None:
            self.record = FolderRecord(output)

    def read(self) -> FolderContent:
        config = self.config
        translated = tuple[str, ...]()
        if self.output is not None and self.output.is_dir() and self.output.samefile(self.source):
            translated = tuple(self.record.files)
        content = read_folder(
            self.source,
            self.output,
            config.folder,
            self.languages,
            config.format,
            translated,
        )
        if not content.files:
            raise NMTError(
                f"{config.input}: no file to translate; pass folder.include=[PATTERN], or "
                "format=NAME for files whose format nmt cannot tell"
            )
        return content

    def select(self, reports: Sequence[FileReport]) -> list[FileReport]:
        """The files to translate; sets the status of the others."""
        assert self.output is not None
        todo = list[FileReport]()
        self.options = self.hash_of_options()
        for item in reports:
            if item.status == FAILED:
                continue
            item.file = self.with_recorded_format(item.file)
            path = self.output / item.file.translated_name
            source = self.source / item.file.name
            try:
                item.source_hash = hash_of(read_bytes(source))
            except NMTError as error:
                fail(item, error)
                continue
            if path.exists() and path.samefile(source):
                item.status = ITSELF
            elif path.exists():
                item.status = self.status_of(item, path)
            if item.status == TO_TRANSLATE:
                todo.append(item)
        return todo

    def status_of(self, item: FileReport, path: Path) -> str:
        """The status of a file whose translation exists."""
        if self.config.overwrite:
            return TO_TRANSLATE
        before = self.record.files.get(item.file.translated_name)
        if before is None:
            return EXISTS
        now = hash_of_file(path)
        # nmt was stopped before it wrote the translation.
        if now == before.before:
            return TO_TRANSLATE
        # A person's corrections must not be lost, even if the model has changed.
        is_edited = now != before.translation
        has_same_options = before.options == self.options or not self.has_model
        is_current = has_same_options and before.format == item.file.format
        if before.source == item.source_hash and (is_edited or is_current):
            return UNCHANGED
        return EDITED if is_edited else TO_TRANSLATE

    def translations_without_source(self) -> list[str]:
        """The translations whose source has been deleted."""
        names = list[str]()
        for translated_name, file in self.record.files.items():
            if not (self.source / file.name).exists():
                names.append(translated_name)
        return sorted(names)

    def with_recorded_format(self, file: FolderFile) -> FolderFile:
        """A file in the format of its earlier translation, unless the user names one.

        For example, `format=wrapped` is then needed only once.
        """
        before = self.record.files.get(file.translated_name)
        if before is None or before.name != file.name or self.config.format != "auto":
            return file
        return replace(file, format=before.format)

    def hash_of_options(self) -> str:
        """The SHA-256 of what determines a translation, besides a source and its format.

        "" without a model, for a count of words.
        """
        if not self.has_model:
            return ""
        settled = with_engine(self.config.translator, lambda words: None)
        decides = what_affects_output(replace(self.config, translator=settled))
        decides.pop("format")
        return hash_of(json.dumps(decides, sort_keys=True, default=str).encode())

    def document_of(self, item: FileReport) -> Document:
        """Parse a file; NMTError if that fails."""
        file = item.file
        content = read_bytes(self.source / file.name)
        # The file may have changed since `select` read it.
        item.source_hash = hash_of(content)
        if file.format == "text" and self.config.format == "auto":
            check_content(file.name, content[:HEAD_BYTES], suffix_of(file.name))
        source, target = self.languages
        return read_document(file.format, content, target, source, self.config.document)

    def translate(self, todo: Sequence[FileReport], stack: ExitStack) -> None:
        """Translate files; each is written as soon as it is complete."""
        translator = open_translator(self.config, stack)
        remaining = [*todo]
        # A line that cannot be translated ends a stream, but only its file fails.
        while remaining:
            self.translate_files(remaining, translator)
            remaining = [item for item in remaining if item.status == TO_TRANSLATE]

    def translate_files(
        self,
        items: Sequence[FileReport],
        translator: "Translator | DeviceTranslator",
    ) -> None:
        """Translate files up to the first one with a line that cannot be translated."""
        pending = deque[PendingFile]()
        stream = translator.stream(self.lines_of(items, pending), self.config.buffer)
        with closing(stream):
            try:
                for ranked in stream:
                    self.finish(pending)  # files without text
                    self.take(pending[0], ranked[0], translator.stages)
                    self.finish(pending)
            except RefusedLine as error:
                self.finish(pending)
                refused = pending[0]
                line = shown(readable(refused.next_line))
                fail(refused.report, NMTError(f"{line!r}: {error.problem}"))
                return
        self.finish(pending)

    def lines_of(
        self,
        items: Sequence[FileReport],
        pending: "deque[PendingFile]",
    ) -> Iterator[str]:
        """The lines of files, one file after another; adds each file to `pending`.

        The lines of many small files fill batches that a single file would not.
        """
        for item in items:
            try:
                document = self.document_of(item)
            except NMTError as error:
                fail(item, error)
                continue
            count_file(item, document)
            pending.append(PendingFile(item, document))
            yield from document.lines

    def take(
        self,
        pending: PendingFile,
        best: Translation,
        stages: Sequence[Stage],
    ) -> None:
        """Add the translation of a file's next line."""
        line = pending.next_line
        pending.notes.add(stages, line, best)
        pending.translations.append(translated_line(line, best))

    def finish(self, pending: "deque[PendingFile]") -> None:
        """Write the first files of `pending` that are complete."""
        while pending and pending[0].is_complete:
            self.write(pending.popleft())

    def write(self, pending: PendingFile) -> None:
        item = pending.report
        try:
            content = pending.document.join(pending.translations)
        except NMTError as error:
            fail(item, error)
            return
        try:
            self.store(item, content)
        except CannotWriteFolder:
            raise
        except NMTError as error:
            fail(item, error)
            return
        item.status = TRANSLATED
        self.written += 1
        self.show(self.written)
        pending.notes.report(
            pending.document, pending.translations, self.counts, f"{item.file.name}: "
        )
        if pending.document.notice:
            warn(f"{item.file.name}: {pending.document.notice}")
        warn_without_marks(item.file.name, pending.document, pending.translations)

    def store(self, item: FileReport, content: bytes) -> None:
        """Write a file, and the folders around it; NMTError if that fails for this file alone."""
        assert self.output is not None
        name = item.file.translated_name
        path = self.output / name
        translated = TranslatedFile(
            name=item.file.name,
            format=item.file.format,
            source=item.source_hash,
            translation=hash_of(content),
            options=self.options,
            before=hash_of_file(path),
        )
        self.record.add(name, translated)
        write_in_folder(path, content)

    def copy_others(self, content: FolderContent, result: FolderReport) -> None:
        """Copy the files that are not translated, if the user asks for it."""
        if not self.config.folder.copy:
            result.left = len(content.others)
            return
        for file in content.others:
            item = FileReport(file)
            try:
                self.copy(item)
            except CannotWriteFolder:
                raise
            except NMTError as error:
                fail(item, error)
            result.copied += item.status == TRANSLATED
            result.left += item.status in KEPT
            if item.status == FAILED:
                result.files.append(item)

    def copy(self, item: FileReport) -> None:
        """Copy a file, unless the copy is up to date or not nmt's."""
        assert self.output is not None
        path = self.output / item.file.translated_name
        source = self.source / item.file.name
        content = read_bytes(source)
        item.source_hash = hash_of(content)
        if path.exists():
            if path.samefile(source):
                item.status = ITSELF
                return
            now = hash_of_file(path)
            if now == item.source_hash:
                item.status = UNCHANGED
                return
            before = self.record.files.get(item.file.translated_name)
            is_copy = before is not None and now == before.translation
            if not is_copy and not self.config.overwrite:
                item.status = EXISTS
                return
        self.store(item, content)
        item.status = TRANSLATED
