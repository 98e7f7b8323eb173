"""Noise in training pairs: case, typos, numbers, BPE-dropout."""

from dataclasses import dataclass

from nmt.config import number
from nmt.extensions import Add, OptionsEntry, TransformEntry


@dataclass
class NoiseConfig:
    """Noise in training pairs, redrawn in each epoch; validation and test sets have none."""

    upper: float = number(0.0, 0.0, 1.0)
    """Probability of converting both sides to upper case."""
    title: float = number(0.0, 0.0, 1.0)
    """Probability of capitalizing every word on both sides."""
    end_punctuation: float = number(0.0, 0.0, 1.0)
    """Probability of removing the final punctuation from both sides if it is a single mark of the
    same kind."""
    typos: float = number(0.0, 0.0, 1.0)
    """Probability of adding typos to the source: each of eight kinds then occurs at most once, with
    probability 0.1."""
    numbers: float = number(0.0, 0.0, 1.0)
    """Probability of inserting a random number to copy, at about the same place on both sides."""
    bpe_dropout: float = number(0.0, 0.0, 1.0)
    """With tokenizer.kind=bpe: probability of dropping each merge, on both sides
    (Provilkov et al. 2020: 0.1)."""


def register(add: Add) -> None:
    add(OptionsEntry("data.noise", "nmt.plugins.augment.plugin:NoiseConfig"))
    add(TransformEntry("noise", "nmt.plugins.augment.noise:transform"))
