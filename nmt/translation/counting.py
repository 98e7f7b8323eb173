"""The files that a command would translate, and the number of their words."""

from contextlib import ExitStack
from pathlib import Path

from nmt.config import NMTError, TranslateConfig
from nmt.text import words
from nmt.translation.directions import Direction
from nmt.translation.documents import read_document
from nmt.translation.folder_files import FolderFile
from nmt.translation.folder_job import FolderJob
from nmt.translation.folder_report import (
    TO_TRANSLATE,
    FileReport,
    FolderReport,
    count_file,
    fail,
    report_of,
)
from nmt.translation.inputs import check_lines
from nmt.translation.job import input_lines, name_of_input, open_source, read_content
from nmt.translation.models import find_models


def count_folder(config: TranslateConfig) -> FolderReport:
    """The files in the folder `config.input` and their words; nothing is translated."""
    languages = languages_of(config)
    has_model = languages.source != ""
    output = None if config.output == "-" else Path(config.output)
    job = FolderJob(config, languages, output, has_model)
    content = job.read()
    result = report_of(content)
    if output is not None:
        job.select(result.files)
    for item in result.files:
        if item.status != TO_TRANSLATE:
            continue
        try:
            count_file(item, job.document_of(item))
        except NMTError as error:
            fail(item, error)
    result.left = len(content.others)
    return result


def languages_of(config: TranslateConfig) -> Direction:
    """The languages of the model; "" where they are unknown."""
    # Whoever only counts words need not have a model.
    try:
        return find_models(config.translator.run).direction(config.translator)
    except NMTError:
        return Direction(config.translator.source or "", config.translator.target or "")


def count_input(config: TranslateConfig) -> FolderReport:
    """The words of a single file, or of standard input."""
    if config.is_document:
        format = config.format
    else:
        check_lines(config)
        format = "text"
    item = FileReport(FolderFile(name_of_input(config), name_of_input(config), format))
    with ExitStack() as stack:
        if config.is_document:
            source, target = languages_of(config)
            content = read_content(config, stack)
            count_file(item, read_document(format, content, target, source, config.document))
        else:
            # One by one, because a corpus may be larger than the memory.
            for line in input_lines(open_source(config, stack)):
                item.lines += 1
                item.words += round(words(line))
    return FolderReport([item])
