"""What the core itself adds."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    add("command", "preprocess", "nmt.commands.preprocess:COMMAND")
    add("command", "train", "nmt.commands.train:COMMAND")
    add("command", "translate", "nmt.commands.translate:COMMAND")
    add("command", "score", "nmt.commands.score:COMMAND")
    add("command", "average", "nmt.commands.average:COMMAND")
    for metric in ("bleu", "chrf", "chrf++", "ter"):
        add("metric", metric, "nmt.evaluation.scores:sacrebleu_score", text=True, paired=True)
    for metric in ("tokenised", "split"):
        add("metric", metric, "nmt.evaluation.scores:paper_bleu", text=True)
    add("engine", "torch", "nmt.search.torch_engine:load", precisions=("float32", "bfloat16"))
