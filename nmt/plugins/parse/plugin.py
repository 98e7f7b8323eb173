"""Constituency trees: treebanks, bracketed trees and scores (section 6.3)."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    summary = "Parse sentences into bracketed trees with a model trained on a treebank."
    add("command", "parse", "nmt.plugins.parse.command:COMMAND", summary=summary)
    facts = {"translate": "nmt.plugins.parse.trees:bracketed_trees", "metric": "brackets", "column": "valid_f1"}
    add("corpus", "treebank", "nmt.plugins.parse.trees:Treebank", **facts)
    add("metric", "brackets", "nmt.plugins.parse.trees:bracket_scores")
