"""What the core itself adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("command", "preprocess", "nmt.commands.preprocess:COMMAND", summary="Prepare a parallel corpus for training.")
    add("command", "train", "nmt.commands.train:COMMAND", summary="Train a model, or resume a run.")
    add("command", "translate", "nmt.commands.translate:COMMAND", summary="Translate raw text, line by line.")
    add(
        "command",
        "score",
        "nmt.commands.score:COMMAND",
        summary="Score translations, with signatures; or by a model, as to filter a corpus.",
    )
    add("command", "average", "nmt.commands.average:COMMAND", summary="Average checkpoints into a model.")
    add("command", "plugins", "nmt.commands.plugins:COMMAND", summary="List the plugins, and what each adds.")
    for metric in ("bleu", "chrf", "chrf++", "ter"):
        add("metric", metric, "nmt.evaluation.scores:sacrebleu_score", text=True, paired=True)
    for metric in ("tokenised", "split"):
        add("metric", metric, "nmt.evaluation.scores:paper_bleu", text=True)
    add("engine", "torch", "nmt.search.torch_engine:load", precisions=("float32", "bfloat16"))
    add("corpus", "files", "nmt.preparation.corpora:Files")
    add("corpus", "hub", "nmt.preparation.corpora:Hub")
    add("stage", "tags", "nmt.translation.stages:tags", order=10)
    add("stage", "characters", "nmt.translation.stages:characters", order=25)
