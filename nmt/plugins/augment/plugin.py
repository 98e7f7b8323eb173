"""The keys of noise in training pairs, and what this plugin adds."""

from collections.abc import Callable
from dataclasses import dataclass

from nmt.config import number


@dataclass
class NoiseConfig:
    """Noise in training pairs, drawn anew in each pass; validation and test sets never have any."""

    upper: float = number(0.0, 0.0, 1.0)
    """Probability that both sides are in upper case."""
    title: float = number(0.0, 0.0, 1.0)
    """Probability that every word of both sides begins with a capital."""
    end_punctuation: float = number(0.0, 0.0, 1.0)
    """Probability that both sides lose their final punctuation, if it is a single mark of the same kind."""
    typos: float = number(0.0, 0.0, 1.0)
    """Probability that the source, and it alone, may have typos: each of eight kinds once, with probability 0.1."""
    numbers: float = number(0.0, 0.0, 1.0)
    """Probability that a random number stands at about the same place of both sides, to be copied."""
    bpe_dropout: float = number(0.0, 0.0, 1.0)
    """tokenizer.kind=bpe: probability of leaving out each merge, on both sides (Provilkov et al. 2020: 0.1)."""


def register(add: Callable[..., None]) -> None:
    add("options", "data.noise", "nmt.plugins.augment.plugin:NoiseConfig")
    add("transform", "noise", "nmt.plugins.augment.transform:transform")
