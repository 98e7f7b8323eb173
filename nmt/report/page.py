"""The page itself: one HTML file that asks nothing of any other place, and runs no script."""

from pathlib import Path

from nmt import __version__
from nmt.report.content import Content
from nmt.report.curves import Chart, Series, draw_chart
from nmt.report.details import configuration, corpus, environment, figure, section, translations
from nmt.report.markup import Markup, tag
from nmt.report.run import Run, last, series
from nmt.report.summary import heading

# Whatever a corpus holds, the page loads nothing and runs nothing.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def charts(run: Run) -> list[Chart]:
    """The curves that metrics.csv holds values for."""

    def curves(column: str, valid: str = "") -> list[Series]:
        return [
            Series("training", series(run.rows, column)),
            Series("validation", series(run.rows, valid), "validation"),
        ]

    sentences = run.config.get("validation", {}).get("bleu_sentences")
    lines = f"the first {sentences:,} validation lines" if isinstance(sentences, int) else "the validation set"
    skipped = [Series("skipped", series(run.rows, "skipped"))] if last(run.rows, "skipped") else []
    return [
        Chart("Loss", "nats per target token", curves("loss", "valid_loss"), best="lowest"),
        Chart("Perplexity", "log axis", curves("perplexity", "valid_perplexity"), log=True, best="lowest"),
        Chart("BLEU", lines, curves("", "valid_bleu"), from_zero=True, best="highest"),
        Chart("F1", lines, curves("", "valid_f1"), from_zero=True, best="highest"),
        Chart("Learning rate", "", curves("learning_rate"), from_zero=True),
        Chart("Gradient norm", "log axis", curves("gradient_norm"), log=True),
        Chart("Throughput", "target tokens per second", curves("tokens_per_second"), from_zero=True),
        Chart("Padding", "share of all positions", curves("padding"), from_zero=True, percent=True),
        Chart("MFU", "model FLOPs, of the devices' peak", curves("mfu"), from_zero=True, percent=True),
        Chart("Skipped updates", "", skipped, from_zero=True),
    ]


def figures(run: Run) -> Markup:
    """All charts, those that have nothing to show left out."""
    drawn = []
    for chart in charts(run):
        picture = draw_chart(chart, run.update)
        if picture:
            keys = [tag("span", s.name, class_=f"key {s.kind}") for s in chart.series if s.points]
            legend = tag("span", *keys, class_="legend") if len(keys) > 1 else None
            drawn.append(figure(chart.title, chart.unit, picture, legend))
    return tag("div", *drawn, class_="charts")


def head(title: str, *styles: str) -> Markup:
    """The head of a page with these style sheets."""
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name_="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        *(tag("style", Markup(style)) for style in styles),
    )


def style_sheet(name: str) -> str:
    """A style sheet that comes with nmt."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def page(content: Content) -> str:
    """The HTML of a run's page."""
    name = content.run.config.get("name") or content.run.folder.resolve().name
    made = f"nmt {__version__}, {content.now:%Y-%m-%d %H:%M}, "
    body = tag(
        "body",
        heading(content),
        section("Curves", figures(content.run)),
        translations(content),
        corpus(content.run),
        configuration(content),
        environment(content),
        tag("footer", made, tag("code", f"nmt report {content.run.folder}")),
    )
    return (
        f"<!DOCTYPE html>\n{tag('html', head(f'{name}: training report', style_sheet('page.css')), body, lang='en')}\n"
    )
