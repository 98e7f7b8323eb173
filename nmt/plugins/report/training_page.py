"""The HTML page about a training run, with its newest model's translations of a held-out set."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from rich.console import Console

from nmt.commands import compose
from nmt.config import Compute, ModelConfig, TranslatorOptions, build, flatten, matches, to_tree, with_plugin_defaults
from nmt.errors import NMTError
from nmt.evaluation import bleu_tokenizer, score
from nmt.files import SMALL, read_text, within
from nmt.model import count_parameters
from nmt.plugins.report.charts import CHARTS, draw
from nmt.plugins.report.command import ReportConfig
from nmt.plugins.report.pages import differences, render
from nmt.plugins.report.run import Run
from nmt.translation import SPLITS, held_out_text, kind_of_corpus, load_translator, translate_lines, warn


def pick(examples: list[dict[str, Any]], count: int) -> dict[str, list[dict[str, Any]]]:
    """The `count` best, median and worst examples; among equals the longest, because short ones say little."""
    best_first = sorted(examples, key=lambda e: (-e["value"], -len(e["source"])))
    best, rest = best_first[:count], best_first[count:]
    worst = sorted(rest, key=lambda e: (e["value"], -len(e["source"])))[:count]
    between = [example for example in rest if not any(example is other for other in worst)]
    middle = max((len(between) - count) // 2, 0)
    groups = {"Best": best, "Median": between[middle : middle + count], "Worst": worst}
    return {name: group for name, group in groups.items() if group}


def sentence_score(hypothesis: str, reference: str, metric: str) -> float:
    """chrF2 of a translation; F1 of a tree, which is 100 if neither tree has a bracket."""
    scores = score([hypothesis], [reference], ["chrf" if metric == "bleu" else metric])
    return max(part.value for part in scores if part.metric in ("chrf", metric, f"{metric}_complete"))


def translate_held_out(run: Run, config: ReportConfig, console: Console) -> tuple[dict[str, Any], str]:
    """Scores and examples of a held-out set, and a sentence about them; NMTError without a corpus."""
    if config.sentences == 0:
        return {}, "No translations were requested (sentences=0)."
    if not run.model:
        return {}, "The run has no model directory yet: training writes it at its end, and `nmt average` before."
    if not run.corpus:
        raise NMTError(f"there is nothing to translate: {run.corpus_problem}, or sentences=0 to translate nothing")
    all_sources, all_references = held_out_text(run.corpus, config.split)
    sources, references = all_sources[: config.sentences], all_references[: config.sentences]
    kind, decode = kind_of_corpus(run.corpus), config.decode
    options = TranslatorOptions([str(run.folder)], Compute("torch", device=config.device), decode=decode)
    if kind.metric == "bleu":
        options = with_plugin_defaults(options)
    else:  # trees are longer than translations, and nothing in them is protected
        longest = run.config.get("decode", {}).get("max_extra_length")
        longest = max(decode.max_extra_length, longest if matches(longest, int) else 0)
        options = replace(options, decode=replace(decode, max_extra_length=longest), split="never")
    is_part = len(sources) < len(all_sources)
    lines = f"the first {len(sources):,} of {len(all_sources):,}" if is_part else f"{len(sources):,}"
    search = f"beam {decode.beam_size}, length penalty {decode.length_penalty}"
    model = f"the model in {run.folder / 'model'}, update {run.model.updates:,}"
    done = f"{lines} lines of the {SPLITS[config.split]} set, {search}, by {model}"
    console.print(f"translating {done}")
    hypotheses = translate_lines(load_translator(options, warn), sources, console, kind.translate)
    tokenize = bleu_tokenizer(within(run.config, "validation", "tokenize"), run.corpus.target_language, all_references)
    metrics = ["bleu", "chrf"] if kind.metric == "bleu" else [kind.metric]
    examples = [
        {"source": s, "reference": r, "hypothesis": h, "value": sentence_score(h, r, kind.metric)}
        for s, r, h in zip(sources, references, hypotheses, strict=True)
    ]
    scores = score(hypotheses, references, metrics, tokenize=tokenize)
    quality = {"metric": kind.metric, "scores": scores, "examples": pick(examples, config.examples)}
    return quality, f"{done[0].upper()}{done[1:]}."


def training_page(run: Run, quality: dict[str, Any], translated: str) -> str:
    now, sized = datetime.now().astimezone(), run.model or (run.corpus and run.corpus.manifest)
    drawings = {}
    for chart in CHARTS if run.last("skipped") else CHARTS[:-1]:
        sides = ([(step, chart.factor * value) for step, value in run.series(key)] for key in chart.columns)
        drawings[chart.title] = draw(chart, dict(zip(("training", "validation"), sides, strict=True)), run.update)
    model = build(ModelConfig, run.config.get("model"), f"{run.folder / 'config.yaml'}, model") if sized else None
    return render(
        "training_page.html",
        run=run,
        quality=quality,
        translated=translated,
        now=now,
        state=run.state(now.timestamp()),
        written=datetime.fromtimestamp(run.written).astimezone(),
        parameters=count_parameters(model, sized.vocabulary_size) if sized and model else None,
        drawings={title: drawing for title, drawing in drawings.items() if drawing},
        defaults=flatten(to_tree(compose("train", []))),
        config_text=read_text(run.folder / "config.yaml", SMALL),
        differences=differences,
        flatten=flatten,
    )
