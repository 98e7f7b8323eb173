"""`nmt translate`: translate raw text line by line, or a document."""

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from nmt import translation
from nmt.commands import paths_and_texts
from nmt.config import Command, TranslateConfig, documents, require

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
    """The output for input line `number`: jsonl includes the fields in `more`; tsv has one line per translation."""
    if format == "text":
        return translations[0].text + "\n"
    if format == "tsv":
        # Translations contain no tabs: their only white space is single spaces.
        return "".join(f"{number}\t{t.score:.4f}\t{t.text}\n" for t in translations)
    records = [
        {"text": t.text, "score": t.score, "log_probability": t.log_probability, "flags": t.flags}
        | (vars(t.details) if t.details else {})
        for t in translations
    ]
    return (
        json.dumps(
            {"line": number, "source": source, "translations": records, **more}, ensure_ascii=False
        )
        + "\n"
    )


def run(config: TranslateConfig) -> None:
    """Translate `config.input` to `config.output`: lines in order as they arrive, a document as a whole."""
    if config.format in documents():
        translation.translate_document(config)
        return
    translation.check_lines(config)
    with ExitStack() as stack:
        translator = translation.open_translator(config, stack)
        job = translation.open_job(
            replace(config, translator=translator.options), "translate", stack
        )
        counts, models = job.output.notes.counts, translator.models
        flags_of = (
            translation.flagger(models) if config.format == "jsonl" and models else lambda *line: []
        )
        for number, line, translations in job.run(
            lambda lines: translator.stream(lines, config.buffer)
        ):
            for candidate in translations:
                candidate.flags += flags_of(line, candidate)
            more = translation.report(
                translator.stages, line, translations[0], f"line {number}", counts
            )
            job.output.write(render(number, line, translations, config.format, more), number)
    translation.summarize(counts)


def input_and_run(command: str, words: list[str], forms: str = "") -> dict[str, Any]:
    """Return the file or text to translate or parse, and the run or runs."""
    usage = f"`nmt {command} [FILE] [RUN] [output=OUTPUT]` or `nmt {command} 'SOME TEXT' [RUN]`"
    forms = forms or usage
    files, folders, texts = paths_and_texts(words, forms, command)
    require(
        len(files) + len(texts) < 2,
        f"{', '.join([*files, *texts])}: give one file or text; {forms}",
    )
    values = {"input": files, "text": texts, "run": folders}
    return {key: items[0] if len(items) == 1 else items for key, items in values.items() if items}


COMMAND = Command(
    *("translate", TranslateConfig, run, lambda words: input_and_run("translate", words)),
    usage="[FILE or 'SOME TEXT'] [RUN]...",
    examples=("'A dog runs across the grass.'", "runs/corpus-30min < input.en > output.de"),
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
)
