"""How a model is trained."""

from dataclasses import dataclass
from typing import Any

from nmt.config.rules import check_number, check_numbers, number, require, require_choice


@dataclass
class OptimConfig:
    """Adam and its learning rate (section 5.3), label smoothing (section 5.4)."""

    factor: float = number(1.0, 1e-12, 1e6)
    """Multiplies the paper's learning rate."""
    warmup: int = number(4000, 1, 10**9)
    """Updates of linear warm-up."""
    beta1: float = number(0.9, 0.0, 0.999999)
    """Adam's decay of the mean of gradients."""
    beta2: float = number(0.98, 0.0, 0.999999)
    """Adam's decay of the mean of their squares."""
    epsilon: float = number(1e-9, 0.0, 1.0)
    """Adam's epsilon, added to the root of that mean."""
    label_smoothing: float = number(0.1, 0.0, 0.99)
    """Probability mass spread evenly over the vocabulary."""
    not_finite: str = "stop"
    """What an update whose gradient is not finite does: stop (the run, naming the sentences) or skip (that update)."""

    def __post_init__(self) -> None:
        check_numbers(self, "optim.")
        require_choice("optim.not_finite", self.not_finite, ("stop", "skip"))


@dataclass
class BatchingConfig:
    """What an update consists of (section 5.1)."""

    tokens_per_update: int = number(25_000, 1, 10**9)
    """Source tokens, and as many target tokens, in an update at most; padding counts."""
    micro_batches: int = number(8, 1, 65_536)
    """Micro-batches in an update, each of sentences of similar length; the device count must divide it."""
    max_tokens: Any = None
    """Source tokens, and as many target tokens, that a device takes at once, instead of `micro_batches`: a number, or
    auto (as many as fit in memory). Settled when a run begins; config.yaml has the micro-batches that it came to."""

    def __post_init__(self) -> None:
        check_numbers(self, "batching.")
        if self.max_tokens not in (None, "auto"):
            check_number("batching.max_tokens", self.max_tokens, (1, 10**9), ", or auto, or null")
        require(
            self.tokens_per_update >= self.micro_batches,
            f"batching.tokens_per_update={self.tokens_per_update}: must be at least "
            f"batching.micro_batches={self.micro_batches}",
        )


@dataclass
class CheckpointConfig:
    """When training is saved, and what is averaged at its end (section 6.1)."""

    every_steps: int = number(1400, 1, 10**9)
    """Updates between the checkpoints that are averaged. The paper's ten minutes are about 1,400 updates of base, and
    600 of big, on its hardware."""
    keep: int = number(5, 1, 10_000)
    """So many of these checkpoints, that of the last update among them, are kept and averaged at the end."""
    every_minutes: float | None = number(10.0, 0.0001, 1e6)
    """Minutes after which training is saved for safety, in between: the next checkpoint takes that one's place. null:
    never."""

    def __post_init__(self) -> None:
        check_numbers(self, "checkpoints.")


@dataclass
class ValidationConfig:
    """When and on what training is validated."""

    every_steps: int = number(1000, 1, 10**9)
    """Updates between validations."""
    bleu_sentences: int | None = number(200, 0, 10**9)
    """Validation sentences translated for BLEU, or parsed for F1: 0 for none, null for all."""
    best: str = "perplexity"
    """What checkpoints/best.ckpt is best in: perplexity or bleu (of a treebank, F1)."""
    patience: int | None = number(None, 1, 10**9)
    """Validations in a row that may be no better than the best before training stops early; null: it never does."""

    def __post_init__(self) -> None:
        check_numbers(self, "validation.")
        require_choice("validation.best", self.best, ("perplexity", "bleu"))
        require(
            self.best != "bleu" or self.bleu_sentences != 0,
            "validation.best=bleu with validation.bleu_sentences=0: there is no BLEU to be best in",
        )
