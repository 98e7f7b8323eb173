"""The HTML page about a training run: its files, its curves, and its newest model's translations of a held-out set."""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from nmt import commands, data, translation
from nmt.config import ModelConfig, NMTError, TranslatorOptions, build, flatten, matches, to_tree
from nmt.evaluation import Score, score
from nmt.files import SMALL, parse_json, read_description, read_mapping, read_text, within
from nmt.model import described
from nmt.plugins.results.commands import ReportConfig, metrics_of
from nmt.plugins.results.pages import render
from nmt.plugins.results.test_set import SPLITS, held_out_text
from nmt.plugins.results.translating import open_translator, translate_lines
from nmt.training import read_config, run_state

LEFT, RIGHT, TOP, BOTTOM = 52, 390, 10, 176  # the edges of the plot within its chart
MAX_POINTS = 1000  # of a curve, so that the page of a long run stays small
Curves = dict[str, list[tuple[int, float]]]  # "training" and "validation" -> (update, value) points


@dataclass
class ModelScore(Score):
    """The score of the model directory on the validation set."""

    sentences: int


@dataclass
class Facts:
    """The training record of a model directory; `corpus` is a fingerprint, `tokens` the number of target tokens."""

    updates: int
    vocabulary_size: int
    corpus: str
    averaged: list[int] = field(default_factory=list)  # the updates of the averaged checkpoints
    tokens: int | None = None
    devices: str | None = None
    versions: dict[str, str] = field(default_factory=dict)
    score: ModelScore | None = None


@dataclass
class Run:
    folder: Path
    config: dict[str, Any]
    rows: list[dict[str, float]]
    written: datetime  # the last time that metrics.csv was written
    environment: dict[str, Any] = field(default_factory=dict)
    model: Facts | None = (
        None  # None before the end of training, or if the model directory is unreadable
    )
    corpus: data.PreparedCorpus | None = None
    corpus_problem: str = ""

    @property
    def update(self) -> int:
        return max(
            int(max(row["step"] for row in self.rows)), self.model.updates if self.model else 0
        )

    @property
    def updates(self) -> int:
        planned = self.config.get("trainer", {}).get("max_steps")
        return max(planned if matches(planned, int) else 0, self.update)

    def series(self, column: str) -> list[tuple[int, float]]:
        """(update, value) for every value in a column of metrics.csv."""
        return [(int(row["step"]), row[column]) for row in self.rows if column in row]

    def last(self, column: str) -> float | None:
        return next(
            (
                row[column]
                for row in reversed(self.rows)
                if math.isfinite(row.get(column, math.nan))
            ),
            None,
        )


def open_run(folder: Path, prepared: str | None) -> Run:
    """Read a run folder; NMTError if its configuration or its metrics are unreadable."""
    config, rows = read_config(folder), list[dict[str, float]]()
    for cells in metrics_of(folder):
        rows.append({})
        for key, text in cells.items():
            with suppress(ValueError):
                rows[-1][key] = float(text)
    run = Run(
        folder,
        config,
        rows,
        datetime.fromtimestamp((folder / "metrics.csv").stat().st_mtime).astimezone(),
    )
    with suppress(NMTError):
        run.environment = read_mapping(folder / "environment.json", parse_json)
    with suppress(NMTError):
        description = read_description(folder / "model")
        record = {**description.training, "vocabulary_size": description.vocabulary_size}
        facts = {
            key.name: record[key.name] for key in fields(Facts) if record.get(key.name) is not None
        }
        if "score" in facts:
            facts["score"] = build(ModelScore, facts["score"])
        run.model = build(Facts, facts)
    try:
        run.corpus = data.corpus_of(
            folder, {"config": config, "corpus": run.model and run.model.corpus}, prepared
        )
    except NMTError as error:
        if prepared:
            raise
        run.corpus_problem = str(error)
    return run


class Chart(NamedTuple):
    title: str
    unit: str
    training: str  # columns of metrics.csv; "" for none
    validation: str = ""
    choose_best: Callable[..., tuple[int, float]] | None = None  # the validation point to mark


CHARTS = (
    Chart("Loss", "nats per target token", "loss", "valid_loss", min),
    Chart("Perplexity", "", "perplexity", "valid_perplexity", min),
    Chart("BLEU", "", "", "valid_bleu", max),
    Chart("F1", "", "", "valid_f1", max),
    Chart("Learning rate", "", "learning_rate"),
    Chart("Gradient norm", "", "gradient_norm"),
    Chart("Throughput", "target tokens per second", "tokens_per_second"),
    Chart("Padding", "share of all positions", "padding"),
    Chart("MFU", "model FLOPs, share of the devices' peak", "mfu"),
    Chart("Skipped updates", "", "skipped"),
)


def round_ticks(low: float, high: float, intervals: int = 5) -> list[float]:
    """Evenly spaced round numbers that cover `low` to `high`."""
    power = 10.0 ** math.floor(math.log10((high - low) / intervals))
    step = next(
        factor * power for factor in (1, 2, 5, 10, 20) if factor * power * intervals >= high - low
    )
    return [step * number for number in range(math.floor(low / step), math.ceil(high / step) + 1)]


def draw(chart: Chart, curves: Curves, last_update: int) -> dict[str, Any] | None:
    """A chart's ticks, lines and best point, with their positions; None if no value is finite."""
    finite = {
        kind: [point for point in points if math.isfinite(point[1])]
        for kind, points in curves.items()
    }
    curves, last_update = (
        {kind: points for kind, points in finite.items() if points},
        max(last_update, 1),
    )
    if not curves:
        return None
    values = [value for points in curves.values() for _, value in points]
    lower, upper = np.percentile(values, [25, 75])
    fence = 5 * (upper - lower) or math.inf  # so that one bad value does not hide the others
    shown = [value for value in values if lower - fence <= value <= upper + fence]
    low, high = min(0.0, *shown), max(0.0, *shown)
    ticks = round_ticks(low, high if high > low else 1.0)

    def place(update: float, value: float) -> tuple[float, float]:
        """The position of a point; a value off the scale is drawn at the edge."""
        share = (min(max(value, ticks[0]), ticks[-1]) - ticks[0]) / (ticks[-1] - ticks[0])
        return round(LEFT + (RIGHT - LEFT) * update / last_update, 1), round(
            BOTTOM - (BOTTOM - TOP) * share, 1
        )

    best = None
    if chart.choose_best and "validation" in curves:
        best = chart.choose_best(
            curves["validation"], key=lambda point: point[1]
        )  # the first in a tie
    return {
        "chart": chart,
        "curves": curves,
        "lines": {
            k: [place(*point) for point in p[:: len(p) // MAX_POINTS + 1]]
            for k, p in curves.items()
        },
        "columns": [
            (place(tick, 0)[0], tick)
            for tick in round_ticks(0, last_update, 4)
            if tick <= last_update
        ],
        "rows": [(place(0, tick)[1], tick) for tick in ticks],
        "best": best,
        "best_place": best and place(*best),
        "stray": sum(not ticks[0] <= value <= ticks[-1] for value in values),
    }


def pick(examples: list[dict[str, Any]], count: int) -> dict[str, list[dict[str, Any]]]:
    """The `count` best, median and worst examples; of equal ones, the longest are better: short ones say little."""
    ranked = sorted(examples, key=lambda e: (-e["value"], -len(e["source"])))
    rest = ranked[count:]
    between = rest[: max(len(rest) - count, 0)]
    middle = max(len(between) - count, 0) // 2
    groups = {
        "Best": ranked[:count],
        "Median": between[middle : middle + count],
        "Worst": rest[::-1][:count],
    }
    return {name: group for name, group in groups.items() if group}


def sentence_score(hypothesis: str, reference: str, metric: str) -> float:
    """chrF2 of a translation; F1 of a tree, which is 100 if neither tree has a bracket."""
    scores = score([hypothesis], [reference], ["chrf" if metric == "bleu" else metric])
    return max(
        part.value for part in scores if part.metric in ("chrf", metric, f"{metric}_complete")
    )


def translate_held_out(
    run: Run, config: ReportConfig, console: Console
) -> tuple[dict[str, Any], str]:
    """Scores and examples for a held-out set, and a sentence that describes them; NMTError if there is no corpus."""
    if config.sentences == 0:
        return {}, "No translations were requested (sentences=0)."
    if not run.model:
        return (
            {},
            "The run has no model directory yet: training writes it at the end, and `nmt average` before that.",
        )
    if not run.corpus:
        raise NMTError(
            f"there is nothing to translate: {run.corpus_problem}, or sentences=0 to translate nothing"
        )
    all_sources, all_references = held_out_text(run.corpus, config.split)
    sources, references = all_sources[: config.sentences], all_references[: config.sentences]
    kind, decode = translation.kind_of_corpus(run.corpus), config.translator.decode
    options = replace(config.translator, run=[str(run.folder)])
    if kind.metric == "bleu":
        options, metrics = build(TranslatorOptions, {}, base=options), ["bleu", "chrf"]
    else:  # trees are longer than translations, and nothing in them is protected
        metrics = [kind.metric]
        trained = within(run.config, "decode", "max_extra_length")
        longest = max(decode.max_extra_length, trained if matches(trained, int) else 0)
        options = replace(options, decode=replace(decode, max_extra_length=longest), split="never")
    count = f"{len(sources):,} of {len(all_sources):,} lines of the {SPLITS[config.split]} set"
    search = f"beam {decode.beam_size}, length penalty {decode.length_penalty}"
    translator = open_translator(options, kind.translate)
    engine = translator.options.compute.engine
    model = f"the model in {run.folder / 'model'}, update {run.model.updates:,}"
    task = f"{count}, {search}, engine {engine}, with {model}"
    console.print(f"translating {task}")
    hypotheses = translate_lines(translator, sources, console, best=kind.translate)
    examples = [
        {"source": s, "reference": r, "hypothesis": h, "value": sentence_score(h, r, kind.metric)}
        for s, r, h in zip(sources, references, hypotheses, strict=True)
    ]
    scores = score(hypotheses, references, metrics, run.corpus.target_language)
    return {
        "metric": kind.metric,
        "scores": scores,
        "examples": pick(examples, config.examples),
    }, f"{task}."


def training_page(config: ReportConfig, console: Console) -> str:
    run, drawings, parameters = open_run(Path(config.run), config.prepared), dict[str, Any](), None
    quality, translated = translate_held_out(run, config, console)
    for chart in CHARTS if run.last("skipped") else CHARTS[:-1]:
        curves = {
            "training": run.series(chart.training),
            "validation": run.series(chart.validation),
        }
        if drawing := draw(chart, curves, run.update):
            drawings[chart.title] = drawing
    if sized := run.model or (run.corpus and run.corpus.manifest):
        model = build(ModelConfig, run.config.get("model"), f"{run.folder / 'config.yaml'}, model")
        parameters = sum(
            weights.numel() for weights in described(model, sized.vocabulary_size).parameters()
        )
    return render(
        "training_page.html",
        run=run,
        quality=quality,
        translated=translated,
        state=run_state(run.folder, run.update, run.updates, run.model.updates if run.model else 0),
        parameters=parameters,
        drawings=drawings,
        defaults=flatten(to_tree(commands.compose("train", []))),
        config_text=read_text(run.folder / "config.yaml", SMALL),
        flatten=flatten,
        edges=(LEFT, RIGHT, BOTTOM),
    )
