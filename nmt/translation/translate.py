"""`nmt translate`: a stream of lines to a stream of translations."""

import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from nmt.config import JobConfig, TranslateConfig, documents, require, shown
from nmt.registry import entries_of
from nmt.translation.job import open_job, warn
from nmt.translation.load import flagger, load_translator
from nmt.translation.translator import Notice, Stage, Translation, Translator


@cache
def summaries() -> dict[str, str]:
    """The end of the summary for each kind of note."""
    kinds = {
        "split": "had sentences longer than the model knows, translated in parts",
        "copied": "held characters that the model was not trained on, which were copied",
    }
    facts = (entry.facts.get("summaries", {}) for entry in entries_of("stage").values())
    return kinds | {kind: words for added in facts for kind, words in added.items()}


def render(number: int, source: str, translations: list[Translation], format: str, more: Mapping[str, Any]) -> str:
    """The output for input line `number`, with the fields of stages in jsonl; tsv has a line for each translation."""
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
    return json.dumps({"line": number, "source": source, "translations": records, **more}, ensure_ascii=False) + "\n"


def open_translator(config: JobConfig, stack: ExitStack) -> Translator:
    """The translator for a processor, a GPU or several, unless there is no input; `stack` ends its processes."""
    require(config.input == "-" or Path(config.input).exists(), f"{config.input}: No such file or directory")
    if config.translator.compute.devices == 1:
        return load_translator(config.translator, warn)
    pools = entries_of("pool")
    require("devices" in pools, "devices: needs the plugin nmt/plugins/devices")
    translator: Translator = stack.enter_context(pools["devices"].load()(config))
    return translator


def report(
    stages: Sequence[Stage], line: str, best: Translation, where: str, counts: dict[str, int], notice: Notice
) -> dict[str, Any]:
    """What stages add to the record of a line; counts its notes, with a notice for the first line of each kind."""
    fields = dict[str, Any]()
    for stage in reversed(stages):  # on the way out
        fields |= stage.report(line, best)
    notes = dict(best.notes)
    if best.copied:
        copied = shown(", ".join(map(repr, best.copied)))
        notes["copied"] = f"characters that the model was not trained on, copied as they are: {copied}"
    for kind in filter(notes.__contains__, summaries()):
        if not counts[kind]:
            notice(f"{where}: {notes[kind]}")
        counts[kind] += 1
    return fields


def summarize(counts: Mapping[str, int], notice: Notice) -> None:
    """Give a notice with the number of lines of each kind, if there is more than one."""
    for kind, words in summaries().items():
        if counts[kind] > 1:
            notice(f"{counts[kind]:,} lines {words}")


def translate(config: TranslateConfig) -> None:
    """Translate `config.input` to `config.output`: lines in order as they arrive, a document as a whole."""
    if document := documents().get(config.format):
        document.load().translate(config)
        return
    with ExitStack() as stack:
        translator = open_translator(config, stack)
        job = open_job(replace(config, translator=translator.options), "translate", stack)
        counts = job.output.notes.counts
        flags_of = flagger(translator.models) if config.format == "jsonl" and translator.models else lambda *line: []
        for number, line, translations in job.run(lambda lines: translator.stream(lines, config.buffer)):
            for translation in translations:
                translation.flags += flags_of(line, translation)
            more = report(translator.stages, line, translations[0], f"line {number}", counts, warn)
            job.output.write(render(number, line, translations, config.format, more), number)
    summarize(counts, warn)
