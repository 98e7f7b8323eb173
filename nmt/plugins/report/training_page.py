"""The HTML page about a training run."""

from datetime import datetime
from functools import partial
from typing import Any

from nmt.config import ModelConfig, build, flatten
from nmt.files import SMALL, count_parameters, read_text
from nmt.plugins.report.charts import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Chart, Curves, draw
from nmt.plugins.report.pages import render
from nmt.plugins.report.quality import Quality, differences, pick
from nmt.plugins.report.run import Facts, Run, last, series
from nmt.plugins.report.tree_drawing import draw_trees

CHARTS = (
    Chart("Loss", "nats per target token", ("loss", "valid_loss"), from_zero=False, best="lowest"),
    Chart("Perplexity", "log axis", ("perplexity", "valid_perplexity"), log=True, best="lowest"),
    Chart("BLEU", "", ("", "valid_bleu"), metric="bleu", best="highest"),
    Chart("F1", "", ("", "valid_f1"), metric="brackets", best="highest"),
    Chart("Sources", "percent of the sentences", ("", "share"), percent=True),
    Chart("Learning rate", "", ("learning_rate", "")),
    Chart("Gradient norm", "log axis", ("gradient_norm", ""), log=True),
    Chart("Throughput", "target tokens per second", ("tokens_per_second", "")),
    Chart("Padding", "percent of all positions", ("padding", ""), percent=True),
    Chart("MFU", "model FLOPs, percent of the devices' peak", ("mfu", ""), percent=True),
    Chart("Skipped updates", "", ("skipped", "")),
)


def curves(run: Run, chart: Chart) -> Curves:
    """The curves of a chart."""
    factor = 100 if chart.percent else 1

    def points(column: str) -> list[tuple[int, float]]:
        return [(step, factor * value) for step, value in series(run.rows, column)]

    if chart.title == "Skipped updates" and not last(run.rows, "skipped"):
        return {}
    score = run.model.score if run.model else None
    averaged = [(run.model.updates, score.value)] if run.model and score and score.metric == chart.metric else []
    names = {key.partition("/")[2] for row in run.rows for key in row if key.startswith(f"{chart.columns[1]}/")}
    of_sources = {name: points(f"{chart.columns[1]}/{name}") for name in sorted(names)}
    training, validation = map(points, chart.columns)
    return {"training": training, "validation": validation, "averaged": averaged, **of_sources}


def parameters(run: Run, facts: Facts | None) -> int | None:
    """The number of parameters of the run's model; None while its vocabulary is unknown."""
    known = facts or run.manifest
    path = f"{run.folder / 'config.yaml'}, model"
    model = build(ModelConfig, run.config.get("model"), path) if known else None
    return count_parameters(model, known.vocabulary_size) if known and model else None


def training_page(
    run: Run,
    facts: Facts | None,
    quality: Quality | None,
    translated: str,
    examples: int,
    defaults: dict[str, Any],
) -> str:
    """The HTML of a run's page.

    `facts` are those of the newest model, `translated` says what was translated or why nothing was, `examples` is the
    number of examples of each kind, and `defaults` is the configuration of `nmt train` without arguments.
    """
    now = datetime.now().astimezone()
    drawings = [draw(chart, curves(run, chart), run.update) for chart in CHARTS]
    return render(
        "training_page.html",
        run=run,
        facts=facts,
        quality=quality,
        translated=translated,
        examples=pick(quality.examples, examples) if quality else {},
        now=now,
        state=run.state(now.timestamp()),
        written=datetime.fromtimestamp(run.written).astimezone(),
        parameters=parameters(run, facts),
        last=partial(last, run.rows),
        drawings={drawing.chart.title: drawing for drawing in drawings if drawing},
        plot={"width": WIDTH, "height": HEIGHT, "left": LEFT, "right": RIGHT, "top": TOP, "bottom": BOTTOM},
        defaults=flatten(defaults),
        config_text=read_text(run.folder / "config.yaml", SMALL),
        **{function.__name__: function for function in (differences, draw_trees, flatten)},
    )
