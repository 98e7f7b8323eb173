"""`nmt translate`: a stream of lines to a stream of translations."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from nmt.config import JobConfig, TranslateConfig, documents, require, shown
from nmt.errors import NMTError
from nmt.files import parse_json
from nmt.registry import entries_of
from nmt.text import Tokenizer, is_text
from nmt.translation.job import open_job, warn
from nmt.translation.load import find_models, language_tag, load_translator, target_scripts, with_engine
from nmt.translation.stages import Stage, Translation
from nmt.translation.translator import Translator

MOST_NAMED = 10
"""Lines of each kind of a stage that the summary names."""


@cache
def summaries() -> dict[str, str]:
    """The end of the summary for each kind of note."""
    kinds = {
        "split": "had sentences longer than the model knows, translated in parts",
        "copied": "held characters that the model was not trained on, which were copied",
    }
    facts = (entry.facts.get("summaries", {}) for entry in entries_of("stage").values())
    return kinds | {kind: words for added in facts for kind, words in added.items()}


def fields(line: str, format: str) -> tuple[str, str]:
    """The text of a line of TSV or JSON, and its target language or ""; NMTError where there is no text."""
    if format == "tsv":
        target, tab, text = line.partition("\t")
        require(bool(tab), "no tab; a target language, a tab and a text, please, as 'fr\tGood morning'")
        return text, target.strip()
    try:
        record: Any = parse_json(line)
    except ValueError as error:
        raise NMTError(f"no JSON ({error})") from error
    source, language = (record.get("source"), record.get("target", "")) if isinstance(record, dict) else (None, "")
    if not is_text(source) or not isinstance(language, str):
        raise NMTError('no text; {"source": "Good morning", "target": "fr"}, please')
    return " ".join(source.split()), language


def with_tags(lines: Iterable[str], format: str, tokenizer: Tokenizer, first: int) -> Iterator[str]:
    """The texts of lines of TSV or JSON, each after the tag of its target language if it has one.

    `first` is the number of the first line. Raises NMTError, which names the line, for one that cannot be read.
    """
    tag_of = cache(lambda target: language_tag(target, tokenizer))
    for number, line in enumerate(lines, first):
        try:
            text, target = fields(line, format) if line.strip() else ("", "")
            yield tag_of(target) + text
        except NMTError as error:
            raise NMTError(f"line {number:,}: {error}") from error


def flagger(config: JobConfig) -> Callable[[str, Translation], list[str]]:
    """The function that finds the flags of a line's translation."""
    finders = [entry.load() for entry in entries_of("flags").values()]
    _, descriptions, tokenizer = find_models(config.translator.run)
    scripts = target_scripts(descriptions)

    def flags_of(source: str, translation: Translation) -> list[str]:
        details = translation.details
        untagged = source.removeprefix(tokenizer.leading_tag(source))
        log_probabilities = details.token_log_probabilities if details else []
        return [flag for find in finders for flag in find(untagged, translation.text, scripts, log_probabilities)]

    return flags_of


def render(
    number: int, source: str, translations: list[Translation], format: str, more: Mapping[str, Any] | None = None
) -> str:
    """The output for input line `number`, counted from 1: one line, or with tsv one for each translation.

    `more` are the fields that stages add to a record.
    """
    if format == "text":
        return translations[0].text + "\n"
    if format == "tsv":
        # A translation holds no tab: its white space is single blanks.
        return "".join(f"{number}\t{t.score:.4f}\t{t.text}\n" for t in translations)
    records = [
        {"text": t.text, "score": t.score, "log_probability": t.log_probability, "flags": t.flags}
        | (vars(t.details) if t.details else {})
        for t in translations
    ]
    line = {"line": number, "source": source, "translations": records, **(more or {})}
    return json.dumps(line, ensure_ascii=False) + "\n"


def open_translator(config: JobConfig, stack: ExitStack) -> Translator:
    """The translator for a processor, a GPU or several, unless there is no input; `stack` ends its processes."""
    require(config.input == "-" or Path(config.input).exists(), f"{config.input}: No such file or directory")
    if config.translator.compute.devices == 1:
        return load_translator(config.translator, warn)
    pools = entries_of("pool")
    require("devices" in pools, "devices: needs the plugin nmt/plugins/cluster")
    translator: Translator = stack.enter_context(pools["devices"].load()(config))
    return translator


def report(
    stages: Sequence[Stage], line: str, translations: list[Translation]
) -> tuple[dict[str, Any], Mapping[str, int]]:
    """What stages add to the record of a line, and what they count for the summary."""
    fields, counts = dict[str, Any](), Counter[str]()
    for stage in reversed(stages):  # on the way out
        fields |= stage.report(line, translations, counts)
    return fields, counts


def remark(translation: Translation, where: str, counts: dict[str, int], notice: Callable[[str], None]) -> None:
    """Count a line that was cut or copied from, with a notice for the first line of each kind."""
    notes = dict(translation.notes)
    if translation.copied:
        copied = shown(", ".join(map(repr, translation.copied)))
        notes["copied"] = f"characters that the model was not trained on, copied as they are: {copied}"
    for kind in summaries() if notes else ():
        if words := notes.get(kind):
            if not counts[kind]:
                notice(f"{where}: {words}")
            counts[kind] += 1
            if kind not in ("split", "copied") and where.startswith("line ") and counts[kind] <= MOST_NAMED:
                counts[f"{kind} {where}"] = 1  # counts are kept for a command that resumes


def summarize(counts: dict[str, int], notice: Callable[[str], None], stages: Sequence[Stage] = ()) -> None:
    """Give a notice with the number of lines of each kind, if there is more than one, and the first of some kinds.

    The summaries of the stages follow.
    """
    for kind, words in summaries().items():
        if counts[kind] > 1:
            named = [key.removeprefix(f"{kind} line ") for key in counts if key.startswith(f"{kind} line ")]
            more = ["..."] * (len(named) < counts[kind])
            notice(f"{counts[kind]:,} lines {words}" + (f": {', '.join(named + more)}" if named else ""))
    for summary in filter(None, (stage.summary(counts) for stage in stages)):
        notice(summary)


def translate(config: TranslateConfig) -> None:
    """Translate `config.input` to `config.output`: lines in order as they arrive, a document as a whole."""
    require(config.input == "-" or Path(config.input).exists(), f"{config.input}: No such file or directory")
    config = replace(config, translator=with_engine(config.translator, warn))
    if document := documents().get(config.format):
        document.load().translate(config)
        return
    with ExitStack() as stack:
        translator = open_translator(config, stack)
        job = open_job(config, {"command": "translate", "format": config.format}, stack)
        if config.input_format != "text":
            tokenizer = find_models(config.translator.run)[2]
            job.lines = with_tags(job.lines, config.input_format, tokenizer, job.output.notes.lines + 1)
        counts, flags_of = job.output.notes.counts, flagger(config) if config.format == "jsonl" else None
        for number, line, translations in job.run(lambda lines: translator.stream(lines, config.buffer)):
            if flags_of:
                for translation in translations:
                    translation.flags += flags_of(line, translation)
            more, counted = report(translator.stages, line, translations)
            job.output.write(render(number, line, translations, config.format, more), number)
            counts.update(counted)
            remark(translations[0], f"line {number}", counts, warn)
    summarize(counts, warn, translator.stages)
