"""How a model is trained."""

from dataclasses import dataclass
from typing import Any

from nmt.config.rules import require, require_choice


@dataclass
class OptimConfig:
    """Adam and its learning rate (section 5.3), label smoothing (section 5.4)."""

    factor: float = 1.0
    """Multiplies the paper's learning rate."""
    warmup: int = 4000
    """Updates of linear warm-up."""
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9
    label_smoothing: float = 0.1
    """Probability mass spread evenly over the vocabulary."""
    not_finite: str = "stop"
    """What an update whose gradient is not finite does: stop (the run, naming the sentences) or skip (that update)."""

    def __post_init__(self) -> None:
        require_choice("optim.not_finite", self.not_finite, ("stop", "skip"))
        require(self.warmup >= 1, f"optim.warmup={self.warmup}: must be at least 1")
        require(0 <= self.label_smoothing < 1, f"optim.label_smoothing={self.label_smoothing}: must be in [0, 1)")


@dataclass
class BatchingConfig:
    """What an update consists of (section 5.1)."""

    tokens: int = 25_000
    """Source tokens, and as many target tokens, in an update at most; padding counts."""
    shards: int = 8
    """Micro-batches in an update, each of sentences of similar length; the device count must divide it."""
    tokens_per_device: Any = None
    """Source tokens, and as many target tokens, that a device takes at once, instead of `shards`: a number, or auto (as
    many as fit in memory). Settled when a run begins; its config.yaml has the shards that it came to."""

    def __post_init__(self) -> None:
        wanted = self.tokens_per_device
        require(
            wanted in (None, "auto") or (isinstance(wanted, int) and wanted >= 1),
            f"batching.tokens_per_device={wanted}: must be a number of tokens, auto, or null",
        )
        require(self.shards >= 1, f"batching.shards={self.shards}: must be at least 1")
        require(
            self.tokens >= self.shards,
            f"batching.tokens={self.tokens}: must be at least batching.shards={self.shards}",
        )


@dataclass
class CheckpointConfig:
    """When training is saved, and what is averaged at its end (section 6.1)."""

    every_steps: int = 1400
    """Updates between the checkpoints that are averaged. The paper's ten minutes are about 1,400 updates of base, and
    600 of big, on its hardware."""
    keep: int = 5
    """So many of these checkpoints, that of the last update among them, are kept and averaged at the end."""
    every_minutes: float | None = 10.0
    """Minutes after which training is saved for safety, in between: the next checkpoint takes that one's place. null:
    never."""

    def __post_init__(self) -> None:
        require(self.keep >= 1, f"checkpoints.keep={self.keep}: must be at least 1")
        require(self.every_steps >= 1, f"checkpoints.every_steps={self.every_steps}: must be at least 1")


@dataclass
class ValidationConfig:
    """When and on what training is validated."""

    every_steps: int = 1000
    """Updates between validations."""
    bleu_sentences: int | None = 200
    """Validation sentences translated for BLEU, or parsed for F1: 0 for none, null for all."""
    best: str = "perplexity"
    """What checkpoints/best.ckpt is best in: perplexity or bleu (of a treebank, F1)."""
    patience: int | None = None
    """Validations in a row that may be no better than the best before training stops early; null: it never does."""

    def __post_init__(self) -> None:
        require_choice("validation.best", self.best, ("perplexity", "bleu"))
        require(
            self.best != "bleu" or self.bleu_sentences != 0,
            "validation.best=bleu with validation.bleu_sentences=0: there is no BLEU to be best in",
        )
        require(
            self.patience is None or self.patience >= 1,
            f"validation.patience={self.patience}: must be at least 1, or null",
        )
        require(self.every_steps >= 1, f"validation.every_steps={self.every_steps}: must be at least 1")
