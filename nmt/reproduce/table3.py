"""Table 3: variations of the base model, on the development set (newstest2013), without averaging."""

from dataclasses import replace

from nmt.commands.reproduce import ReproduceConfig
from nmt.reproduce.document import NONE, Document, Grid, Line, given, shown, signed
from nmt.reproduce.paper import COMPARISONS, VARIATIONS, Variation
from nmt.reproduce.results import Result
from nmt.reproduce.scales import Scale
from nmt.reproduce.table import Row, Table
from nmt.reproduce.translation import Experiment

LAST_ALONE = ("checkpoints.keep=1",)
"""The model of a run is the mean of the checkpoints that it keeps."""
PARAMETERS = 1e6
"""The paper counts them in millions."""


def rows(config: ReproduceConfig, scale: Scale) -> list[Row]:
    """Table 3 (section 6.2), and the comparisons that the paper tells of elsewhere."""
    return [experiment(config, scale, variation).row() for variation in (*VARIATIONS, *COMPARISONS)]


def experiment(config: ReproduceConfig, scale: Scale, variation: Variation) -> Experiment:
    training = scale.trainings["variation_big" if variation.name == "big" else "variation"]
    return Experiment(
        config,
        scale,
        name=f"table3-{variation.name}",
        corpus="en-de",
        model=(f"experiment=table3/{variation.name}",),
        training=replace(training, words=(*training.words, *LAST_ALONE)),
        split="valid",
        metrics=("bleu", "split"),
    )


def document(scale: Scale, results: dict[str, Result]) -> Document:
    found = {variation.name: results.get(f"table3-{variation.name}") for variation in (*VARIATIONS, *COMPARISONS)}
    return Document(
        "table3",
        "Table 3: variations of the Transformer",
        scale.name,
        scale.said,
        notes=[
            f"Each row changes the base model as the second column says, in the paper's own sizes{scaled(scale)}. "
            "Perplexity is per subword token, BLEU is of the whole development set with beam 4 and length penalty "
            "0.6, both with the weights after the last update: no checkpoints are averaged."
        ],
        grids=[figures_grid(found), differences_grid(found), comparisons_grid(found)],
        results=[result for result in found.values() if result],
    )


def scaled(scale: Scale) -> str:
    """What became of the sizes, in words; empty where they are the paper's."""
    if scale.width == scale.depth == 1:
        return ""
    return f"; here d_model, d_ff, d_k, d_v and r are divided by {scale.width}, and N by {scale.depth}"


def perplexity(result: Result | None) -> float | None:
    return result.figure("perplexity") if result else None


def bleu(result: Result | None, metric: str = "split") -> float | None:
    return result.score(metric) if result else None


def parameters(result: Result | None) -> float | None:
    count = result.figure("parameters") if result else None
    return None if count is None else count / PARAMETERS


Found = dict[str, Result | None]


def figures_grid(found: Found) -> Grid:
    columns = ["row", "changed from base", "PPL, paper", "PPL, ours", "BLEU, paper", "BLEU, ours"]
    columns += ["sacreBLEU, ours", "parameters (M), paper", "parameters (M), ours"]
    lines = []
    for v in VARIATIONS:
        ours = found[v.name]
        cells = [v.letter, v.change or NONE, given(v.perplexity), shown(perplexity(ours))]
        cells += [given(v.bleu), shown(bleu(ours)), shown(bleu(ours, "bleu"))]
        lines.append(Line([*cells, given(v.parameters), shown(parameters(ours))]))
    notes = ["BLEU is the paper's protocol: Moses tokens, hyphenated compounds split."]
    return Grid("Perplexity, BLEU, parameters", columns, lines, notes, words=2)


def differences_grid(found: Found) -> Grid:
    columns = ["row", "changed from base", "PPL, paper", "PPL, ours", "BLEU, paper", "BLEU, ours"]
    columns += ["parameters (M), paper", "parameters (M), ours"]
    base = VARIATIONS[0]
    lines = [
        Line([v.letter, v.change, *papers_and_ours(v, base, (found[v.name], found[base.name]))]) for v in VARIATIONS[1:]
    ]
    notes = [
        "Parameters depend on the vocabulary, which the paper does not give for this table, so differences tell more "
        "than counts."
    ]
    return Grid("Differences to base", columns, lines, notes, words=2)


def papers_and_ours(v: Variation, base: Variation, results: tuple[Result | None, Result | None]) -> list[str]:
    """Differences in perplexity, BLEU and parameters, each the paper's and ours."""
    cells = []
    for printed, printed_base, measure, digits in (
        (v.perplexity, base.perplexity, perplexity, 2),
        (v.bleu, base.bleu, bleu, 1),
        (v.parameters, base.parameters, parameters, 0),
    ):
        ours, ours_base = map(measure, results)
        both = ours is not None and ours_base is not None
        theirs = (
            NONE if printed is None or printed_base is None else signed(float(printed) - float(printed_base), digits)
        )
        cells += [theirs, signed(ours - ours_base if both else None)]  # type: ignore[operator]
    return cells


def comparisons_grid(found: Found) -> Grid:
    columns = ["section", "changed from base", "PPL, ours", "BLEU, ours", "parameters (M), ours", "hours of training"]
    lines = []
    for v in (VARIATIONS[0], *COMPARISONS):
        ours = found[v.name]
        seconds = ours.figure("training_seconds") if ours else None
        hours = None if seconds is None else seconds / 3600
        cells = [shown(perplexity(ours)), shown(bleu(ours)), shown(parameters(ours)), shown(hours, 3)]
        lines.append(Line([v.letter, v.change or NONE, *cells]))
    notes = ["The paper compares these in words (sections 3.2.1 and 4), and prints no figures."]
    return Grid("Other attention functions", columns, lines, notes, words=2)


TABLE = Table("table3", rows, document)
