"""`nmt translate`: translate raw text line by line, or a document."""

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from nmt import translation
from nmt.commands import addresses_among, paths_and_texts
from nmt.config import Command, NMTError, TranslateConfig, documents

LESS_MEMORY = (
    "pass a lower decode.batch_tokens, decode.beam_size or buffer, or fewer threads or devices"
)


def render(
    number: int,
    source: str,
    translations: "list[translation.Translation]",
    format: str,
    more: Mapping[str, Any],
) -> str:
    """The output for input line `number`.

    tsv has one line per translation, and its probability if a minimum was given; jsonl includes the
    fields in `more`.
    """
    if format == "text":
        return f"{translations[0].marked_text}\n"
    if format == "tsv":
        # Translations contain no tabs: their only white space is single spaces.
        return "".join(row_of_table(number, candidate) for candidate in translations)
    line = {
        "line": number,
        "source": source,
        "translations": [record_of(candidate) for candidate in translations],
        **more,
    }
    # Readable in any script; jsonl is UTF-8 in any case.
    return json.dumps(line, ensure_ascii=False) + "\n"


def row_of_table(number: int, candidate: "translation.Translation") -> str:
    cells = [str(number), f"{candidate.score:.4f}", candidate.text_to_write]
    # Behind the other columns, so that programs find these at the same places.
    if candidate.probability is not None:
        cells.append(f"{candidate.probability:.4f}")
    return "\t".join(cells) + "\n"


def record_of(candidate: "translation.Translation") -> dict[str, Any]:
    record = {
        "text": candidate.text_to_write,
        "score": candidate.score,
        "log_probability": candidate.log_probability,
        "flags": candidate.flags,
    }
    if candidate.probability is not None:
        record["probability"] = candidate.probability
    if candidate.trust:
        record["below_minimum"] = candidate.is_below
    if candidate.details:
        record |= vars(candidate.details)
    return record


def run(config: TranslateConfig) -> None:
    """Translate `config.input` to `config.output`.

    Lines are translated in order as they arrive, a document as a whole.
    """
    with translation.naming_part(config.part):
        run_job(config)


def run_job(config: TranslateConfig) -> None:
    """See `run`."""
    if config.on_cluster:
        work = translation.TranslationWork(config, config.cluster_options)
        translation.summarize(translation.run_on_cluster(work))
        return
    if config.is_folder:
        run_folder(config)
        return
    format = translation.format_of_file(config.input) if config.is_guess else ""
    if format:
        config = replace(config, format=format)
    if config.dry_run:
        print_report(translation.count_input(config))
        return
    if config.format in documents():
        translation.translate_document(config)
        return
    # Before the model loads: a spreadsheet as input costs no waiting.
    translation.check_lines(config)
    with ExitStack() as stack:
        translator = translation.open_translator(config, stack)
        # With all defaults filled in, so that a partial output resumes only under the same options.
        settled = replace(config, translator=translator.options)
        job = translation.open_job(settled, "translate", stack)
        counts = job.output.notes.counts
        flags_of = None
        # Only jsonl has a place for flags.
        if config.format == "jsonl" and translator.models:
            flags_of = translation.flagger(
                translator.models, translator.models.direction(translator.options)
            )
        for number, line, translations in job.run(
            lambda lines: translator.stream(lines, config.buffer)
        ):
            if flags_of:
                for candidate in translations:
                    candidate.flags += flags_of(line, candidate)
            where = f"line {number}"
            more = translation.report(translator.stages, line, translations[0], where, counts)
            job.write(render(number, line, translations, config.format, more), number)
    # After the output is closed, so that it ends the messages.
    translation.summarize(counts)


def run_folder(config: TranslateConfig) -> None:
    """Translate the files of a folder, or count their words, and print a table of them."""
    if config.dry_run:
        result = translation.count_folder(config)
    else:
        result = translation.translate_folder(config)
    print_report(result)
    failed = result.count(translation.FAILED)
    if failed:
        of_total = f"{failed:,} of {len(result.files):,} files"
        raise NMTError(f"{config.input}: {of_total} failed; see the messages above")


def print_report(result: "translation.FolderReport") -> None:
    """Print a table of the files that are new or need attention, and what became of all files."""
    from nmt.commands.overview.tables import print_tables  # it imports rich, which takes long

    rows = list[dict[str, Any]]()
    for item in result.files:
        if item.status != translation.UNCHANGED:
            rows.append(row_of(item))
    if rows:
        print_tables(rows)
    print(summary_of(result))
    for pattern in result.unused_patterns:
        translation.warn(f"{pattern}: this pattern matches no file")
    # Not in the table, in which long sentences would be cut.
    for item in result.files:
        if item.problem:
            translation.warn(f"{item.file.name}: {item.problem}")


def row_of(item: "translation.FileReport") -> dict[str, Any]:
    file = item.file
    is_renamed = file.translated_name != file.name
    return {
        "kind": "file",
        "name": file.name,
        "translation": file.translated_name if is_renamed else "",
        "format": file.format,
        "segments": item.lines,
        "words": item.words,
        "status": item.status,
    }


def summary_of(result: "translation.FolderReport") -> str:
    """One line that counts what became of the files."""
    statuses = Counter(item.status for item in result.files)
    counts = [f"{status}: {number:,}" for status, number in statuses.items()]
    words = sum(item.words for item in result.files)
    if words:
        counts.append(f"words: {words:,}")
    others = {
        "other files copied": result.copied,
        "other files left out": result.left,
        "links left out": result.links,
        "translations into other languages left out": result.translations,
        "translations without a source": len(result.gone),
    }
    for name, number in others.items():
        if number:
            counts.append(f"{name}: {number:,}")
    return "; ".join(counts)


def input_and_run(command: str, words: list[str], forms: str = "") -> dict[str, Any]:
    """Return the file, address or text to translate or parse, and the run or runs.

    `forms` is the usage of a command that differs from `nmt translate`.
    """

    def usage(output: str) -> str:
        of_file = f"`nmt {command} [FILE] [RUN] [output={output}]`"
        return f"{of_file} or `nmt {command} 'SOME TEXT' [RUN]`"

    addresses = list[str]()
    # Parsing has no cluster, which could read addresses and patterns.
    if command != "parse":
        addresses, words = addresses_among(words)
    if forms:
        files, folders, texts = paths_and_texts(words, forms, command)
    else:
        forms = usage("OUTPUT")
        files, folders, texts = paths_and_texts(words, forms, command, usage)
        # Beside a file or text, every folder is a model.
        if command == "translate" and not addresses and not files and not texts:
            files, folders = inputs_among(folders)
    files = [*addresses, *files]
    inputs = [*files, *texts]
    if len(inputs) > 1:
        raise NMTError(f"{', '.join(inputs)}: give one file or text; {forms}")
    values: dict[str, Any] = {}
    if files:
        values["input"] = files[0]
    if texts:
        values["text"] = texts[0]
    if folders:
        # Several runs are an ensemble.
        values["run"] = folders[0] if len(folders) == 1 else folders
    return values


def inputs_among(folders: list[str]) -> tuple[list[str], list[str]]:
    """The folders of files to translate, and those of models."""
    inputs = list[str]()
    models = list[str]()
    for folder in folders:
        group = inputs if has_files(folder) else models
        group.append(folder)
    return inputs, models


def has_files(folder: str) -> bool:
    """Whether a folder contains files that may be translated, and is not one that nmt wrote."""
    from nmt.files import is_prefixed, kind_of_folder

    path = Path(folder)
    # In runs/, a folder without a model is a run that has not finished.
    if is_prefixed(folder) or path.parent.name == "runs" or path.parts[:1] == ("runs",):
        return False
    return kind_of_folder(path) is None and any(path.iterdir())


COMMAND = Command(
    name="translate",
    config=TranslateConfig,
    run=run,
    words=partial(input_and_run, "translate"),
    usage="[FILE, FOLDER or 'SOME TEXT'] [RUN]...",
    examples=("'A dog runs across the grass.'", "runs/corpus-30min < input.en > output.de"),
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
    options={"--dry-run": "dry_run=true"},
)
