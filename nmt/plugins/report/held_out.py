"""Translations or parses of a held-out set by the newest model of a run."""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track

from nmt.config import Compute, DecodeConfig, TranslatorOptions, matches, with_plugin_defaults
from nmt.data import PreparedCorpus
from nmt.errors import NMTError
from nmt.evaluation import bleu_tokenizer
from nmt.files import within
from nmt.plugins.parse.parser import choose_tree
from nmt.plugins.parse.treebank import model_sentence
from nmt.plugins.report.quality import Quality, assess
from nmt.plugins.report.run import Facts, Run, read_facts
from nmt.training import averaged_model, list_checkpoints, load_checkpoint, tokenizer_of, write_average
from nmt.translation import Translator, load_translator, warn

BUFFER_LINES = 128
"""Lines between two steps of the progress bar."""


def newest_facts(run: Run) -> Facts | None:
    """The facts of a run's model directory, or else of its last checkpoint; None before the first.

    Removes the manifest from `run` if it is of another corpus than the one in these facts.
    """
    facts, checkpoints = run.model, list_checkpoints(run.folder)
    if not facts and checkpoints:
        content = load_checkpoint(checkpoints[-1])
        facts = read_facts({**content["nmt"], "updates": content["global_step"]}, str(checkpoints[-1]))
    if facts and run.manifest and facts.corpus != run.manifest.fingerprint:
        run.manifest = None
        run.corpus_problem = (
            f"{run.prepared} holds another corpus than the one that this run was trained on "
            f"(fingerprint {facts.corpus[:16]}); pass prepared=FOLDER where that lies"
        )
    return facts


def load_newest(run: Run, decode: DecodeConfig, device: str) -> tuple[Translator, str]:
    """A translator with the model directory, or else the last checkpoint, and the name of that."""
    settings = TranslatorOptions([str(run.folder)], Compute("torch", device=device), decode=decode)
    is_treebank = run.manifest and run.manifest.is_treebank
    settings = replace(settings, split="never") if is_treebank else with_plugin_defaults(settings)
    if run.model:
        return load_translator(settings, warn), f"the model in {run.folder / 'model'}, update {run.model.updates:,}"
    path = list_checkpoints(run.folder)[-1]
    average = averaged_model([path])
    with TemporaryDirectory() as folder:
        write_average(average, tokenizer_of(path, average.state), Path(folder))
        translator = load_translator(replace(settings, run=[folder]), warn)
    return translator, f"the checkpoint of update {average.updates[0]:,}"


def as_parser(run: Run, decode: DecodeConfig) -> DecodeConfig:
    """Allow outputs as long as in the run's own validation: trees are longer than translations."""
    found = run.config.get("decode", {}).get("max_extra_length")
    longest = found if matches(found, int) else decode.max_extra_length
    return replace(decode, max_extra_length=max(decode.max_extra_length, longest))


def translate_held_out(
    run: Run, split: str, sentences: int | None, decode: DecodeConfig, device: str, console: Console
) -> tuple[Quality | None, str]:
    """Scores of the first `sentences` of a held-out set, None for all, and a sentence that says what was translated.

    Without scores, that sentence gives the reason. Raises NMTError if the corpus is missing.
    """
    if sentences == 0:
        return None, "None were asked for (sentences=0)."
    if not run.model and not list_checkpoints(run.folder):
        return None, "The run has no checkpoint yet."
    if not run.manifest:
        raise NMTError(f"there is nothing to translate: {run.corpus_problem}, or sentences=0 to translate nothing")
    all_sources, all_references = PreparedCorpus(run.prepared, run.manifest).text(split)
    if not all_sources:
        raise NMTError(f"split={split}: {run.prepared} holds no {split} set; use split=valid")
    sources, references = all_sources[:sentences], all_references[:sentences]
    parses = run.manifest.is_treebank
    decode = as_parser(run, decode) if parses else decode
    translator, model = load_newest(run, decode, device)
    whole = len(sources) == len(all_sources)
    lines = f"{len(sources):,}" if whole else f"the first {len(sources):,} of {len(all_sources):,}"
    name = {"valid": "validation", "test": "test"}[split]
    search = f"beam {decode.beam_size}, length penalty {decode.length_penalty}"
    done = f"{lines} lines of the {name} set, {search}, by {model}"
    doing = "parsing" if parses else "translating"
    console.print(f"{doing} {done}")
    found = translator.stream(map(model_sentence, sources) if parses else sources, BUFFER_LINES)
    texts = (
        choose_tree(translations, line)[0].bracketed() if parses else translations[0].text
        for translations, line in zip(found, sources, strict=True)
    )
    hypotheses = list(track(texts, doing, len(sources), console=console, disable=not console.is_terminal))
    tokenize, language = within(run.config, "validation", "tokenize"), run.manifest.content["data"]["target"]
    tokenize = "13a" if parses else bleu_tokenizer(tokenize, language, all_references)
    return assess(sources, references, hypotheses, parses, tokenize), f"{done[0].upper()}{done[1:]}."
