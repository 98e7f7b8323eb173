"""The HTML page about a training run, with translations of a held-out set by its newest model."""

from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console

from nmt.config import (
    Compute,
    DecodeConfig,
    ModelConfig,
    TranslatorOptions,
    build,
    flatten,
    matches,
    with_plugin_defaults,
)
from nmt.errors import NMTError
from nmt.evaluation import Score, bleu_tokenizer, score
from nmt.files import SMALL, read_text, within
from nmt.model import count_parameters
from nmt.plugins.report.charts import CHARTS, PLOT, Chart, Curves, draw
from nmt.plugins.report.pages import differences, length_bucket, length_label, render
from nmt.plugins.report.run import Run
from nmt.training import Average, tokenizer_of, write_average
from nmt.translation import SPLITS, Translator, held_out_text, kind_of_corpus, load_translator, translate_lines, warn

BLOCK_LINES = 128
"""Lines between two steps of the progress bar."""


@dataclass
class Example:
    """A source sentence, its reference and its translation, with its sentence-level score."""

    source: str
    reference: str
    hypothesis: str
    value: float


@dataclass
class Quality:
    """Scores and examples of a held-out set."""

    metric: str
    """bleu, or that of the kind of corpus, such as brackets."""
    scores: list[Score]
    buckets: list[dict[str, Any]]
    """Of the sentences with 1-5 source words, 6-10, ..., from the shortest to the longest: label, count, and value."""
    histogram: list[int]
    """The numbers of sentences with a score in 0-10, 10-20, ... 90-100."""
    examples: list[Example]


def pick(examples: list[Example], count: int) -> dict[str, list[Example]]:
    """The `count` best examples, as many from the middle, and as many worst; none twice.

    Among equals the longest come first: a short sentence that is all right or all wrong says little.
    """
    best_first = sorted(examples, key=lambda e: (-e.value, -len(e.source)))
    best, rest = best_first[:count], best_first[count:]
    worst = sorted(rest, key=lambda e: (e.value, -len(e.source)))[:count]
    between = [example for example in rest if not any(example is other for other in worst)]
    middle = max((len(between) - count) // 2, 0)
    groups = {"Best": best, "Median": between[middle : middle + count], "Worst": worst}
    return {name: group for name, group in groups.items() if group}


def assess(
    sources: list[str], references: list[str], hypotheses: list[str], metric: str, tokenize: str | None = None
) -> Quality:
    """Scores of translations, or of trees by their own metric; `tokenize` is for BLEU."""

    def sentence_score(hypothesis: str, reference: str) -> float:
        """chrF2 of a translation; F1 of a tree, which is 100 if neither tree has a bracket."""
        scores = score([hypothesis], [reference], ["chrf" if metric == "bleu" else metric])
        return max(part.value for part in scores if part.metric in ("chrf", metric, f"{metric}_complete"))

    triples, lengths = zip(sources, references, hypotheses, strict=True), [length_bucket(source) for source in sources]
    buckets = []
    for length in range(min(lengths), max(lengths) + 1):
        chosen = [index for index, number in enumerate(lengths) if number == length]
        sides = [hypotheses[i] for i in chosen], [references[i] for i in chosen]
        value = score(*sides, [metric], tokenize=tokenize)[0].value if chosen else 0.0
        buckets.append({"label": length_label(length), "count": len(chosen), "value": value})
    examples = [Example(s, r, h, sentence_score(h, r)) for s, r, h in triples]
    return Quality(
        metric=metric,
        scores=score(hypotheses, references, [metric, "chrf"][: 2 if metric == "bleu" else 1], tokenize=tokenize),
        buckets=buckets,
        histogram=[sum(min(int(example.value // 10), 9) == tenth for example in examples) for tenth in range(10)],
        examples=examples,
    )


def load_newest(run: Run, options: TranslatorOptions) -> tuple[Translator, str]:
    """A translator with the model directory, or else the last checkpoint, and the name of that."""
    if run.model:
        return load_translator(options, warn), f"the model in {run.folder / 'model'}, update {run.model.updates:,}"
    assert run.checkpoint
    average = Average(run.checkpoint)
    with TemporaryDirectory() as folder:
        write_average(average, tokenizer_of(run.checkpoint, average.state), Path(folder))
        translator = load_translator(replace(options, run=[folder]), warn)
    return translator, f"the checkpoint of update {average.updates[0]:,}"


def translate_held_out(
    run: Run, split: str, sentences: int | None, decode: DecodeConfig, device: str, console: Console
) -> tuple[Quality | None, str]:
    """Scores of the first `sentences` of a held-out set, None for all, and a sentence that says what was translated.

    Without scores, that sentence gives the reason. Raises NMTError if the corpus is missing.
    """
    if sentences == 0:
        return None, "None were asked for (sentences=0)."
    if not run.model and not run.checkpoint:
        return None, "The run has no checkpoint yet."
    if not run.corpus:
        raise NMTError(f"there is nothing to translate: {run.corpus_problem}, or sentences=0 to translate nothing")
    all_sources, all_references = held_out_text(run.corpus, split)
    sources, references = all_sources[:sentences], all_references[:sentences]
    kind = kind_of_corpus(run.corpus)
    options = TranslatorOptions([str(run.folder)], Compute("torch", device=device), decode=decode)
    if kind.metric == "bleu":
        options = with_plugin_defaults(options)
    else:  # trees are longer than translations, and nothing in them is protected
        longest = run.config.get("decode", {}).get("max_extra_length")
        longest = max(decode.max_extra_length, longest if matches(longest, int) else 0)
        options = replace(options, decode=replace(decode, max_extra_length=longest), split="never")
    translator, model = load_newest(run, options)
    whole = len(sources) == len(all_sources)
    lines = f"{len(sources):,}" if whole else f"the first {len(sources):,} of {len(all_sources):,}"
    search = f"beam {decode.beam_size}, length penalty {decode.length_penalty}"
    done = f"{lines} lines of the {SPLITS[split]} set, {search}, by {model}"
    console.print(f"translating {done}")
    hypotheses = translate_lines(translator, sources, console, kind.translate, BLOCK_LINES)
    tokenize = bleu_tokenizer(within(run.config, "validation", "tokenize"), run.corpus.target_language, all_references)
    return assess(sources, references, hypotheses, kind.metric, tokenize), f"{done[0].upper()}{done[1:]}."


def curves(run: Run, chart: Chart) -> Curves:
    """The curves of a chart."""
    factor = 100 if chart.percent else 1

    def points(column: str) -> list[tuple[int, float]]:
        return [(step, factor * value) for step, value in run.series(column)]

    if chart.title == "Skipped updates" and not run.last("skipped"):
        return {}
    score = run.model.score if run.model else None
    averaged = [(run.model.updates, score.value)] if run.model and score and score.metric == chart.metric else []
    names = {key.partition("/")[2] for row in run.rows for key in row if key.startswith(f"{chart.columns[1]}/")}
    of_sources = {name: points(f"{chart.columns[1]}/{name}") for name in sorted(names)}
    training, validation = map(points, chart.columns)
    return {"training": training, "validation": validation, "averaged": averaged, **of_sources}


def training_page(run: Run, quality: Quality | None, translated: str, examples: int, defaults: dict[str, Any]) -> str:
    """The HTML of a run's page.

    `translated` says what was translated or why nothing was, `examples` is the number of examples of each kind, and
    `defaults` is the configuration of `nmt train` without arguments.
    """
    now = datetime.now().astimezone()
    drawings = [draw(chart, curves(run, chart), run.update) for chart in CHARTS]
    sized = run.facts or run.manifest
    model = build(ModelConfig, run.config.get("model"), f"{run.folder / 'config.yaml'}, model") if sized else None
    trees = quality is not None and quality.metric != "bleu"
    return render(
        "training_page.html",
        run=run,
        facts=run.facts,
        quality=quality,
        trees=trees,
        translated=translated,
        examples=pick(quality.examples, examples) if quality else {},
        now=now,
        state=run.state(now.timestamp()),
        written=datetime.fromtimestamp(run.written).astimezone(),
        parameters=count_parameters(model, sized.vocabulary_size) if sized and model else None,
        drawings={drawing.chart.title: drawing for drawing in drawings if drawing},
        plot=PLOT,
        defaults=flatten(defaults),
        config_text=read_text(run.folder / "config.yaml", SMALL),
        differences=differences,
        flatten=flatten,
    )
