"""How a model is searched for translations."""

from dataclasses import dataclass

from nmt.config.rules import require


@dataclass
class DecodeConfig:
    """Beam search (section 6.1)."""

    beam_size: int = 4
    """Hypotheses kept for each sentence; 1 is greedy search."""
    length_penalty: float = 0.6
    """alpha of ((5 + |Y|) / 6)^alpha, by which log probabilities are divided; |Y| counts the end symbol."""
    max_extra: int = 50
    """A translation has at most this many tokens more than its source."""
    n_best: int = 1
    """Translations given for each line, best first."""
    batch_tokens: int = 2000
    """Source tokens searched at once; padding counts."""

    def __post_init__(self) -> None:
        require(self.beam_size >= 1, f"decode.beam_size={self.beam_size}: must be at least 1")
        require(self.length_penalty >= 0, f"decode.length_penalty={self.length_penalty}: must not be negative")
        require(self.max_extra >= 0, f"decode.max_extra={self.max_extra}: must not be negative")
        require(self.batch_tokens >= 1, f"decode.batch_tokens={self.batch_tokens}: must be at least 1")
        require(
            1 <= self.n_best <= self.beam_size,
            f"decode.n_best={self.n_best}: must be between 1 and decode.beam_size={self.beam_size}",
        )
