"""What this plugin adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add(
        "command",
        "parse",
        "nmt.plugins.parse.command:COMMAND",
        summary="Parse each sentence into a bracketed tree, with a model that was trained on a treebank.",
    )
    add(
        "corpus",
        "treebank",
        "nmt.plugins.parse.treebank:Treebank",
        translate="nmt.plugins.parse.parser:bracketed_trees",
        metric="brackets",
        column="valid_f1",
        draw="nmt.plugins.parse.tree_drawing:draw_trees",
    )
    add("options", "data.treebank", "nmt.plugins.parse.config:TreebankConfig", inline=True)
    add("metric", "brackets", "nmt.plugins.parse.brackets:bracket_scores")
