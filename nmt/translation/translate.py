"""`nmt translate`: a stream of lines to a stream of translations."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt.config import JobConfig, TranslateConfig, documents, require, shown
from nmt.plugins.protection.glossary import read_glossary
from nmt.plugins.protection.terms import TermReport
from nmt.registry import entries_of
from nmt.text import Finder
from nmt.translation.job import open_job, warn
from nmt.translation.load import find_models, load_translator, with_engine
from nmt.translation.targets import language_of, languages, target_scripts, with_tags
from nmt.translation.translator import Translation, Translator

if TYPE_CHECKING:
    from nmt.plugins.cluster.devices import DeviceTranslator

SUMMARIES = {
    "split": "had sentences longer than the model knows, translated in parts",
    "copied": "held characters that the model was not trained on, which were copied",
    "cut": "were cut at what is protected and did not arrive otherwise, and translated in parts",
    "protected": "do not hold exactly once what is protected: look at these (format=jsonl has them flagged)",
}
"""The end of the summary for each kind of line that gets a notice."""
PROTECTED = {
    "cut": "cut at what is protected, as that did not arrive otherwise, and translated in parts",
    "protected": "what is protected did not arrive exactly once; look at it",
}
"""The notice for a line with something protected, by how it came out."""
MOST_NAMED = 10
"""Lines of each of these kinds that the summary names."""


def flagger(config: TranslateConfig) -> Callable[[str, Translation], list[str]]:
    """The function that finds the flags of a line's translation."""
    finders = [entry.load() for entry in entries_of("flags").values()]
    _, descriptions, tokenizer = find_models(config.run)
    scripts = target_scripts(descriptions)

    def flags_of(source: str, translation: Translation) -> list[str]:
        details = translation.details
        untagged = source.removeprefix(tokenizer.leading_tag(source))
        log_probabilities = details.token_log_probabilities if details else []
        return [flag for find in finders for flag in find(untagged, translation.text, scripts, log_probabilities)]

    return flags_of


def target_language(config: TranslateConfig) -> str:
    """The language that is translated into, or "" where a model does not say it."""
    _, descriptions, tokenizer = find_models(config.run)
    return language_of(config.target or "") if languages(tokenizer) else descriptions[0].target or ""


def source_language(config: TranslateConfig) -> str:
    """The language that is translated from, or "" where a model does not say it."""
    return find_models(config.run)[1][0].source or ""


def reporter(config: TranslateConfig, counts: dict[str, int]) -> TermReport | None:
    """The report about a glossary's terms."""
    if not config.glossary:
        return None
    return TermReport(read_glossary(config.glossary), target_language(config), counts, Finder(config.protect))


def render(
    number: int, source: str, translations: list[Translation], format: str, terms: list[dict[str, Any]] | None = None
) -> str:
    """The output for input line `number`, counted from 1: one line, or with tsv one for each translation."""
    if format == "text":
        return translations[0].text + "\n"
    if format == "tsv":
        # A translation holds no tab: its white space is single blanks.
        return "".join(f"{number}\t{t.score:.4f}\t{t.text}\n" for t in translations)
    records = [
        {
            "text": t.text,
            "score": t.score,
            "log_probability": t.log_probability,
            "flags": t.flags,
            **(vars(t.details) if t.details else {}),
        }
        for t in translations
    ]
    line: dict[str, Any] = {"line": number, "source": source, "translations": records}
    if terms is not None:
        line["terms"] = terms
    if translations[0].copied:
        line["copied"] = translations[0].copied
    if translations[0].protected:
        line["protection"] = translations[0].protected
    return json.dumps(line, ensure_ascii=False) + "\n"


def open_translator(config: JobConfig, stack: ExitStack) -> "Translator | DeviceTranslator":
    """The translator for a processor, a GPU or several, unless there is no input; `stack` ends its processes."""
    require(config.input == "-" or Path(config.input).exists(), f"{config.input}: No such file or directory")
    if config.translator.compute.devices > 1:
        from nmt.plugins.cluster.devices import device_names, on_devices

        return stack.enter_context(on_devices(config, device_names(config)))
    return load_translator(config.translator, warn)


def remark(translation: Translation, where: str, counts: dict[str, int], notice: Callable[[str], None]) -> None:
    """Count a line that was cut or copied from, with a notice for the first line of each kind."""
    found = shown(", ".join(map(repr, translation.copied)))
    copied = f"characters that the model was not trained on, copied as they are: {found}" if found else ""
    kinds = {"split": translation.split, "copied": copied}
    if translation.protected:
        kinds[translation.protected] = PROTECTED[translation.protected]
    for kind, words in kinds.items():
        if words and not counts[kind]:
            notice(f"{where}: {words}")
        counts[kind] += bool(words)
        if kind in PROTECTED and where.startswith("line ") and counts[kind] <= MOST_NAMED:
            counts[f"{kind} {where}"] = 1  # counts are kept for a command that goes on


def summarize(counts: dict[str, int], notice: Callable[[str], None]) -> None:
    """Give a notice with the number of lines of each kind, if there is more than one, and the first of some kinds."""
    for kind, words in SUMMARIES.items():
        if counts[kind] > 1:
            named = [key.removeprefix(f"{kind} line ") for key in counts if key.startswith(f"{kind} line ")]
            more = ["..."] * (len(named) < counts[kind])
            notice(f"{counts[kind]:,} lines {words}" + (f": {', '.join(named + more)}" if named else ""))


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
            tokenizer = find_models(config.run)[2]
            job.lines = with_tags(job.lines, config.input_format, tokenizer, job.output.notes.lines + 1)
        counts, flags_of = job.output.notes.counts, flagger(config) if config.format == "jsonl" else None
        report = reporter(config, counts)
        for number, source, translations in job.run(lambda lines: translator.stream(lines, config.buffer)):
            if flags_of:
                for translation in translations:
                    translation.flags += flags_of(source, translation)
            terms = report.judged(source, translations[0].text) if report else None
            job.output.write(render(number, source, translations, config.format, terms), number)
            remark(translations[0], f"line {number}", counts, warn)
            if report and terms:
                report.count(terms)
    summarize(counts, warn)
    if report:
        warn(report.summary())
