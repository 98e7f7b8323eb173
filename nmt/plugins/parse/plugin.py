"""Constituency trees: treebanks, bracketed trees and scores (section 6.3)."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    here = "nmt.plugins.parse"
    summary = "Parse sentences into bracketed trees with a model trained on a treebank."
    add("command", "parse", f"{here}.command:COMMAND", summary=summary)
    add(
        "corpus",
        "treebank",
        f"{here}.treebank:Treebank",
        structured=True,
        command="parse",
        translate=f"{here}.linear:bracketed_trees",
        metric="brackets",
        column="valid_f1",
    )
    add("metric", "brackets", f"{here}.scores:bracket_scores")
