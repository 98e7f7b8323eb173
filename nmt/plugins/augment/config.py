"""Noise in training pairs, and sampled subwords."""

from dataclasses import dataclass

from nmt.config import number, require


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
    emoji: float = number(0.0, 0.0, 1.0)
    """Probability that a random emoji stands at about the same place of both sides, to be copied."""
    bpe_dropout: float = number(0.0, 0.0, 1.0)
    """tokenizer.kind=bpe: probability of leaving out each merge, on both sides (Provilkov et al. 2020: 0.1)."""
    sampling_alpha: float | None = number(None, 0.0, 1000.0)
    """tokenizer.kind=unigram: draw segmentations of both sides by their probability to this power (Kudo 2018: 0.1 to
    0.5); null: take the most probable."""

    def __post_init__(self) -> None:
        require(
            not self.bpe_dropout or self.sampling_alpha is None,
            f"data.noise.bpe_dropout={self.bpe_dropout} with data.noise.sampling_alpha={self.sampling_alpha}: "
            "a vocabulary is either bpe or unigram",
        )
