"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "parse",
        "nmt.plugins.parse.command:COMMAND",
        summary="Parse each sentence into a bracketed tree, with a model that was trained on a treebank.",
    )
    corpus = "nmt.plugins.parse.treebank:Treebank"
    translate = "nmt.plugins.parse.treebank:bracketed_trees"
    add("corpus", "treebank", corpus, translate=translate, metric="brackets", column="valid_f1")
    add("metric", "brackets", "nmt.plugins.parse.brackets:bracket_scores")
