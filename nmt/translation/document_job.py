"""The job of `nmt translate` for a document."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from nmt.config import NMTError, TranslateConfig, shown
from nmt.items import readable
from nmt.translation.document_lines import (
    DocumentNotes,
    named_lines,
    translated_line,
    warn_without_marks,
)
from nmt.translation.documents import Translated, read_document
from nmt.translation.job import open_document
from nmt.translation.load import open_translator
from nmt.translation.models import find_models, require_languages
from nmt.translation.progress import progress_of
from nmt.translation.reporting import summarize, warn
from nmt.translation.stages import RefusedLine
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from nmt.translation.devices import DeviceTranslator


def translate_document(config: TranslateConfig) -> None:
    """Translate the file `config.input` to `config.output`."""
    with ExitStack() as stack:
        content, output = open_document(config, stack)
        # ZIP archives, such as .docx, begin with these bytes. Their translations are archives, too.
        if content.startswith(b"PK") and output.file.isatty():
            raise NMTError(
                f"{config.format} is not text to show: "
                f"pass output=FILE.{config.format}, or redirect with > FILE"
            )
        # Without weights: a damaged document is reported before they are loaded, which takes long.
        models = find_models(config.translator.run)
        # A line of a document has no tag of its own.
        source, target = require_languages(config.translator, models)
        name = "standard input" if config.input == "-" else config.input
        try:
            document = read_document(config.format, content, target, source, config.document)
        except NMTError as error:
            raise NMTError(f"{name}: {error}") from error
        counts = output.notes.counts
        lines = document.lines
        show = progress_of(config, "translate", 0, len(lines), stack)
        translations = list[Translated]()
        notes = DocumentNotes()
        if lines:
            translator = open_translator(config, stack)
            for best in translate_lines(translator, lines, config.buffer, notes):
                translations.append(best)
                show(len(translations))
        else:
            warn(f"{name}: the document has no text to translate")
        # In one piece, because a format such as .docx is
        # an archive, which cannot be written by lines.
        output.write(document.join(translations), len(translations))
        noted = notes.report(document, translations, counts)
        if document.notice:
            warn(document.notice)
        warn_without_marks(name, document, translations)
    named = {note: named_lines(lines, numbers) for note, numbers in noted.items()}
    summarize(counts, named)


def translate_lines(
    translator: "Translator | DeviceTranslator",
    lines: Sequence[str],
    buffer: int,
    notes: DocumentNotes,
) -> Iterator[Translated]:
    """The best translation of each line, whose notes are added to `notes`.

    Raises NMTError for a line that cannot be translated.
    """
    try:
        for line, ranked in zip(lines, translator.stream(lines, buffer), strict=True):
            best = ranked[0]
            notes.add(translator.stages, line, best)
            yield translated_line(line, best)
    except RefusedLine as error:
        line = lines[error.index]
        raise NMTError(f"{shown(readable(line))!r}: {error.problem}") from error
