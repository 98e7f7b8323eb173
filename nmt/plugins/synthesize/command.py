"""`nmt synthesize`: training pairs with one side written by a model.

In back-translation (Sennrich et al. 2016), that side is the source; in distillation (Kim and Rush
2016), the target.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from nmt.commands.translate import LESS_MEMORY, input_and_run
from nmt.config import (
    MISSING,
    PATTERN,
    ClusterOptions,
    Command,
    JobConfig,
    NMTError,
    choice,
    inline,
    number,
)

OFFERED = (
    "run",
    "engine",
    "precision",
    "threads",
    "devices",
    "device",
    "buffer",
    "decode",
    "source",
    "target",
    "source_prefix",
    "target_prefix",
    "glossary",
    "terms",
    "split",
    "protect",
    "part",
)
"""The keys that this command shares with `nmt translate`."""


@dataclass
class SynthesisConfig:
    """Options of `nmt synthesize`."""

    job: JobConfig = inline(JobConfig(), *OFFERED)
    input: str = MISSING
    """File of lines to translate, plain or compressed."""
    output: str = MISSING
    """Folder for the translations and pairs; after an interruption, the same command resumes."""
    cluster_options: ClusterOptions = inline(ClusterOptions())
    overwrite: bool = False
    """Replace the translations and pairs in the output folder if it has any."""
    reference: str | None = None
    """File with a reference for each line; of decode.n_best translations, the one most like its
    reference is kept."""
    metric: str = choice("chrf", "chrf", "bleu")
    """Measure of similarity to the reference: sentence-level chrf or bleu."""
    drop: float = number(0.0, 0.0, 0.99)
    """Share of pairs to drop, after empty and flagged ones: those with the lowest log P per
    token."""
    flagged: str = choice("drop", "drop", "keep")
    """What to do with pairs flagged as likely failures (see `nmt score flags=true`): drop or keep
    them."""

    def __post_init__(self) -> None:
        # Also on a cluster: the pairs are chosen here, from all translations.
        for key, name in (("input", self.input), ("output", self.output)):
            if "://" in name:
                problem = f"{key}={name}: must be on this machine"
                raise NMTError(f"{problem}; copy the files, or mount the storage")
        if PATTERN.intersection(self.input) and not Path(self.input).exists():
            raise NMTError(f"input={self.input}: must be one file; join the files with cat")
        n_best = self.job.translator.decode.n_best
        chooses = self.reference is not None
        # Several translations without a reference would cost time for nothing, and a reference
        # cannot choose from one.
        if chooses != (n_best > 1):
            problem = f"reference={self.reference} with decode.n_best={n_best}"
            both = "reference=FILE and, for example, decode.n_best=8 decode.beam_size=8"
            raise NMTError(f"{problem}: to choose the best of several, pass both {both}")


def run(config: SynthesisConfig) -> None:
    from nmt.plugins.synthesize.synthesis import synthesize
    from nmt.translation import naming_part

    with naming_part(config.job.part):
        synthesize(config)


COMMAND = Command(
    name="synthesize",
    config=SynthesisConfig,
    run=run,
    words=partial(input_and_run, "synthesize", forms="`nmt synthesize FILE RUN output=FOLDER`"),
    usage="FILE [RUN]... output=FOLDER",
    examples=("mono.de runs/de-en output=synthetic/bt", "mono.en output=synthetic/distilled"),
    memory=LESS_MEMORY,
    groups={"decode": "paper"},
)
