"""The HTML page about a training run: its curves, and translations of a held-out set."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from nmt import commands, translation
from nmt.config import ModelConfig, NMTError, TranslatorOptions, build, flatten, matches, to_tree
from nmt.evaluation import Score, score
from nmt.files import SMALL, expected_search, read_description, read_text, within
from nmt.model import described
from nmt.plugins.results.charts import BOTTOM, CHARTS, LEFT, RIGHT, SKIPPED, Drawing, draw
from nmt.plugins.results.options import ReportConfig
from nmt.plugins.results.pages import render
from nmt.plugins.results.risk_chart import risk_of
from nmt.plugins.results.test_set import SPLITS, held_out_text
from nmt.plugins.results.training_run import Run, open_run
from nmt.plugins.results.translating import open_translator, translate_lines
from nmt.training import run_state

Example = dict[str, Any]  # source, reference, hypothesis, and the value of the sentence's score


@dataclass
class Quality:
    """Scores of a held-out set, and examples in groups."""

    metric: str
    scores: list[Score]
    examples: dict[str, list[Example]]


def pick(examples: list[Example], count: int) -> dict[str, list[Example]]:
    """The `count` best, median and worst examples, none of them twice.

    Of equal examples, the longest are better: short ones say little.
    """
    ranked = sorted(examples, key=best_first)
    # From what is left, so that no example is in two groups.
    rest = ranked[count:]
    worst = rest[::-1][:count]
    between = rest[: len(rest) - len(worst)]
    middle = max(len(between) - count, 0) // 2
    groups = {
        "Best": ranked[:count],
        "Median": between[middle : middle + count],
        "Worst": worst,
    }
    return {name: group for name, group in groups.items() if group}


def best_first(example: Example) -> tuple[float, int]:
    return -example["value"], -len(example["source"])


def sentence_score(hypothesis: str, reference: str, metric: str) -> float:
    """chrF2 of a translation; F1 of a tree, which is 100 if neither tree has a bracket."""
    if metric == "bleu":
        [chrf] = score([hypothesis], [reference], ["chrf"])
        return chrf.value
    scores = score([hypothesis], [reference], [metric])
    # Without brackets F1 is 0, but the share of trees that are completely right is 100.
    names = (metric, f"{metric}_complete")
    return max(one.value for one in scores if one.metric in names)


def translate_held_out(
    run: Run, config: ReportConfig, console: Console
) -> tuple[Quality | None, str]:
    """The quality on a held-out set, and a sentence that describes the translations.

    NMTError if there is no corpus.
    """
    if config.sentences == 0:
        return None, "No translations were requested (sentences=0)."
    if not run.model:
        when = "training writes it at the end, and `nmt average` before that"
        return None, f"The run has no model directory yet: {when}."
    if not run.corpus:
        advice = "or sentences=0 to translate nothing"
        raise NMTError(f"there is nothing to translate: {run.corpus_problem}, {advice}")
    all_sources, all_references = held_out_text(run.corpus, config.split)
    sources = all_sources[: config.sentences]
    references = all_references[: config.sentences]
    kind = translation.kind_of_corpus(run.corpus)
    options = replace(config.translator, run=[str(run.folder)])
    if kind.metric == "bleu":
        # Adds the options of plugins, such as protection; nothing in a tree is protected.
        options = build(TranslatorOptions, {}, base=options)
    else:
        options = options_for_trees(options, run)
    translator = open_translator(options, kind.translate)

    count = f"{len(sources):,} of {len(all_sources):,} lines of the {SPLITS[config.split]} set"
    description = read_description(run.folder / "model")
    decode = expected_search(config.translator.decode, description)
    search = f"beam {decode.beam_size}, length penalty {decode.length_penalty}"
    engine = f"engine {translator.options.compute.engine}"
    model = f"the model in {run.folder / 'model'}, update {run.model.updates:,}"
    task = f"{count}, {search}, {engine}, with {model}"
    console.print(f"translating {task}")
    lines = run.corpus.tagged(config.split, sources)
    hypotheses = translate_lines(translator, lines, console, best=kind.translate)

    examples = []
    for source, reference, hypothesis in zip(sources, references, hypotheses, strict=True):
        example = {
            "source": source,
            "reference": reference,
            "hypothesis": hypothesis,
            "value": sentence_score(hypothesis, reference, kind.metric),
        }
        examples.append(example)
    metrics = ["bleu", "chrf"] if kind.metric == "bleu" else [kind.metric]
    scores = score(hypotheses, references, metrics, run.corpus.target_language)
    return Quality(kind.metric, scores, pick(examples, config.examples)), f"{task}."


def options_for_trees(options: TranslatorOptions, run: Run) -> TranslatorOptions:
    """Trees are longer than translations: search as far as training did, and keep lines whole."""
    trained = within(run.config, "decode", "max_extra_length")
    longest = options.decode.max_extra_length
    if matches(trained, int):
        longest = max(longest, trained)
    decode = replace(options.decode, max_extra_length=longest)
    return replace(options, decode=decode, split="never")


def count_parameters(run: Run) -> int | None:
    """The number of the model's weights; None if the size of its vocabulary is unknown."""
    if run.model:
        vocabulary_size = run.model.vocabulary_size
    elif run.corpus:
        vocabulary_size = run.corpus.manifest.vocabulary_size
    else:
        return None
    where = f"{run.folder / 'config.yaml'}, model"
    # On the meta device: a report needs the number of weights, not their memory.
    model = described(build(ModelConfig, run.config.get("model"), where), vocabulary_size)
    return sum(weights.numel() for weights in model.parameters())


def draw_charts(run: Run) -> dict[str, Drawing]:
    """The charts of the columns that metrics.csv has, and of a calibration, by title."""
    drawings = {}
    for chart in CHARTS:
        # Most runs skip no update.
        if chart is SKIPPED and not run.last("skipped"):
            continue
        curves = {
            "training": run.series(chart.training),
            "validation": run.series(chart.validation),
        }
        drawing = draw(chart, curves, run.update)
        if drawing:
            drawings[chart.title] = drawing
    risk = risk_of(run.folder / "model")
    if risk:
        drawings[risk.chart.title] = risk
    return drawings


def training_page(config: ReportConfig, console: Console) -> str:
    run = open_run(Path(config.run), config.prepared)
    quality, translated = translate_held_out(run, config, console)
    return render(
        "training_page.html",
        run=run,
        quality=quality,
        translated=translated,
        state=run_state(run.folder, run.update, run.updates, run.model_update),
        parameters=count_parameters(run),
        drawings=draw_charts(run),
        defaults=flatten(to_tree(commands.compose("train", []))),
        config_text=read_text(run.folder / "config.yaml", SMALL),
        flatten=flatten,
        edges=(LEFT, RIGHT, BOTTOM),
    )
