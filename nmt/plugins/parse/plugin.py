"""Constituency trees: treebanks, bracketed trees and scores (section 6.3)."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    here = "nmt.plugins.parse.trees"
    summary = "Parse sentences into bracketed trees with a model trained on a treebank."
    add("command", "parse", "nmt.plugins.parse.command:COMMAND", summary=summary)
    facts = {"structured": True, "command": "parse", "metric": "brackets", "column": "valid_f1"}
    add("corpus", "treebank", f"{here}:Treebank", translate=f"{here}:bracketed_trees", **facts)
    add("metric", "brackets", f"{here}:bracket_scores")
