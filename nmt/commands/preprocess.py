"""`nmt preprocess`: a parallel corpus, prepared for training."""

from nmt.commands.console import talker
from nmt.compose import Command
from nmt.config import ExperimentConfig


def run(config: ExperimentConfig) -> None:
    """Prepare the corpus, and tell what was kept and left out."""
    from nmt.preparation.preprocess import preprocess
    from nmt.text.filters import large_losses

    console = talker()
    with console.status("preparing") as status:
        manifest, done = preprocess(config, lambda words: status.update(words))
    if not done:
        console.print(f"{config.prepared} is already prepared with this configuration: nothing to do")
        return
    for split, counts in manifest.counts.items():
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in counts["dropped"].items())
        console.print(
            f"{split}: {counts['kept']:,} of {counts['read']:,} pairs kept"
            + (f" (dropped: {dropped})" if dropped else "")
        )
        if found := counts.get("in_train"):
            console.print(f"notice: {found:,} pairs of {split} are in train too: a score on them says little")
    for line in large_losses(manifest.counts["train"]):
        console.print(f"notice: {line}")
    if manifest.vocabulary_size < config.tokenizer.vocabulary_size:
        console.print(
            f"notice: the corpus fills only {manifest.vocabulary_size:,} of "
            f"tokenizer.vocabulary_size={config.tokenizer.vocabulary_size:,} entries; the vocabulary is that small"
        )
    console.print(f"prepared corpus: {config.prepared}")


COMMAND = Command(
    "preprocess",
    "Prepare a parallel corpus for training.",
    ExperimentConfig,
    run,
    root="train",
    memory="pass fewer workers",
)
