"""`nmt synthesise`: pairs of lines for training, of which a model writes one side.

In back-translation (Sennrich 2016) that is the source, in distillation (Kim and Rush 2016) the target.
"""

from dataclasses import dataclass
from functools import partial

from nmt.commands import talker
from nmt.commands.translate import LESS_MEMORY, input_and_run
from nmt.config import (
    MISSING,
    Command,
    TranslateConfig,
    choice,
    inline,
    number,
    require,
)

OFFERED = (
    "run engine precision threads devices device buffer decode target source_prefix target_prefix glossary terms "
    "split protect ray"
)
"""Keys of `nmt translate` that decide translations."""


@dataclass
class SynthesisConfig:
    """The tree of `nmt synthesise`."""

    translation: TranslateConfig = inline(TranslateConfig(format="tsv"), *OFFERED.split())
    input: str = MISSING
    """File of lines, plain or compressed, a folder of such files, or a pattern of their names in quotes."""
    output: str = MISSING
    """Folder for the pairs and what they are made from; after a kill the same command goes on."""
    reference: str | None = None
    """File of references, a line for each of input: of decode.n_best translations, the one most like it is taken."""
    metric: str = choice("chrf", "chrf", "bleu")
    """How like a reference is: chrf or bleu, of the sentence."""
    drop: float = number(0.0, 0.0, 0.99)
    """Share of pairs to leave out, those with the lowest log P per token."""
    flagged: str = choice("drop", "drop", "keep")
    """Pairs with flags of likely failures, as those of `nmt score flags=true`: drop or keep."""
    lines: int = number(2000, 1, 10**9)
    """Lines of each part, which is the most that a worker loses when a run is killed."""

    def __post_init__(self) -> None:
        n_best = self.translation.translator.decode.n_best
        require(
            (n_best > 1) == (self.reference is not None),
            f"reference={self.reference} with decode.n_best={n_best}: the best of several needs both, reference=FILE "
            "and decode.n_best=8 decode.beam_size=8, or so",
        )


def run(config: SynthesisConfig) -> None:
    """Translate the lines, and write the pairs that are good enough."""
    from nmt.plugins.synthesize.synthesis import synthesize

    summary = synthesize(config, talker())
    flags = ", ".join(f"{flag} {count:,}" for flag, count in summary.flags.items())
    reasons = {"empty": "empty", "flagged": f"flagged ({flags})", "unlikely": "least likely by the teacher"}
    dropped = ", ".join(f"{count:,} {reasons[reason]}" for reason, count in summary.dropped.items() if count)
    print(f"{summary.kept:,} of {summary.lines:,} pairs kept" + (f" (dropped: {dropped})" if dropped else ""))
    print(f"{config.output}/train.{summary.written} (by the model) and train.{summary.given}")


COMMAND = Command(
    "synthesise",
    SynthesisConfig,
    run,
    partial(input_and_run, "synthesise", forms="`nmt synthesise FILE RUN output=FOLDER`"),
    usage="FILE [RUN]... output=FOLDER",
    example="mono.de runs/de-en output=synthetic/bt",
    hides="ray.lines",
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
)
