"""COMET (Rei et al. 2020), a trained metric, computed by the program `comet-score`."""

from nmt.extensions import Add, MetricEntry, OptionsEntry


def register(add: Add) -> None:
    path = "nmt.plugins.comet.comet"
    add(OptionsEntry("metrics.comet", "nmt.plugins.comet.program:CometConfig"))
    add(
        MetricEntry(
            "comet",
            f"{path}:comet_score",
            title="COMET",
            scores_text=True,
            is_paired=True,
            needs_source=True,
            line_scores=f"{path}:score_lines",
            check=f"{path}:check",
        )
    )
