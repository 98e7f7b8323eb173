"""The job of `nmt translate` for a document."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING

from nmt.config import NMTError, TranslateConfig, shown
from nmt.items import readable
from nmt.plugins.documents.document import Translated, read_document

if TYPE_CHECKING:
    from nmt.translation import Translator


def translate_document(config: TranslateConfig) -> None:
    """Translate the file `config.input` to `config.output`."""
    import nmt.translation as steps

    with ExitStack() as stack:
        content, output = steps.open_document(config, stack)
        if content.startswith(b"PK") and output.file.isatty():
            raise NMTError(
                f"{config.format} is not text to show: "
                f"pass output=FILE.{config.format}, or redirect with > FILE"
            )
        models = steps.find_models(config.translator.run)
        source = models.descriptions[0].source
        target = models.target(config.translator)
        try:
            document = read_document(config.format, content, target, source)
        except NMTError as error:
            name = "standard input" if config.input == "-" else config.input
            raise NMTError(f"{name}: {error}") from error
        counts = output.notes.counts
        lines = document.lines
        show = steps.progress_of(config, "translate", 0, len(lines), stack)
        translations = list[Translated]()
        if lines:
            translator = steps.open_translator(config, stack)
            for best in translate_lines(translator, lines, config.buffer, counts):
                translations.append(best)
                show(len(translations))
        else:
            steps.warn(f"{config.format}: the document has no text to translate")
        output.write(document.join(translations), len(translations))
        if document.notice:
            steps.warn(document.notice)
    steps.summarize(counts)


def translate_lines(
    translator: "Translator",
    lines: Sequence[str],
    buffer: int,
    counts: dict[str, int],
) -> Iterator[Translated]:
    """The best translation of each line; `counts` are those of its notes.

    Raises NMTError for a line that cannot be translated.
    """
    import nmt.translation as steps

    try:
        for line, ranked in zip(lines, translator.stream(lines, buffer), strict=True):
            best = ranked[0]
            steps.report(translator.stages, line, best, repr(shown(readable(line))), counts)
            yield Translated(best.text, best.details.alignment if best.details else None)
    except steps.RefusedLine as error:
        line = lines[error.index]
        raise NMTError(f"{shown(readable(line))!r}: {error.problem}") from error
