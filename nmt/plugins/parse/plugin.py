"""Constituency trees: treebanks, bracketed trees and scores (section 6.3)."""

from nmt.extensions import Add, CommandEntry, CorpusEntry, MetricEntry, StructuredTargets


def register(add: Add) -> None:
    here = "nmt.plugins.parse"
    command = CommandEntry(
        "parse",
        f"{here}.command:COMMAND",
        summary="Parse sentences into bracketed trees with a model trained on a treebank.",
    )
    trees = StructuredTargets(
        command="parse",
        translate=f"{here}.linear:bracketed_trees",
        metric="brackets",
        column="valid_f1",
    )
    add(command)
    add(CorpusEntry("treebank", f"{here}.treebank:Treebank", structured=trees))
    add(MetricEntry("brackets", f"{here}.scores:bracket_scores"))
