"""How a model is searched for translations."""

from dataclasses import dataclass

from nmt.config.rules import require

MOST = 1_000_000
"""Tokens that a translation is ever allowed."""


@dataclass
class DecodeConfig:
    """Beam search (section 6.1), or sampling."""

    beam_size: int = 4
    """Hypotheses kept for each sentence; 1 is greedy search."""
    length_penalty: float = 0.6
    """alpha of ((5 + |Y|) / 6)^alpha, by which log probabilities are divided; |Y| counts the end symbol."""
    max_extra: int = 50
    """A translation has at most this many tokens more than its source."""
    min_length: int = 0
    """A translation has at least this many tokens."""
    max_length: int | None = None
    """And at most this many; null: max_extra alone decides."""
    no_repeat_ngram: int = 0
    """No so many tokens in a row come twice in a translation; 0: they may."""
    sample: bool = False
    """Draw n_best translations by chance instead of searching for the best; beam_size means nothing then."""
    temperature: float = 1.0
    """sample: below 1 likely tokens are drawn more often than their probability says, above 1 less often."""
    top_k: int = 0
    """sample: only so many of the likeliest tokens are drawn from; 0: all."""
    top_p: float = 1.0
    """sample: only the likeliest tokens that together have this probability are drawn from."""
    seed: int = 1
    """sample: decides, with the sentence itself, what is drawn."""
    n_best: int = 1
    """Translations given for each line, best first."""
    batch_tokens: int = 2000
    """Source tokens searched at once; padding counts."""

    def __post_init__(self) -> None:
        require(self.beam_size >= 1, f"decode.beam_size={self.beam_size}: must be at least 1")
        require(
            0 <= self.length_penalty <= 10, f"decode.length_penalty={self.length_penalty}: must be between 0 and 10"
        )
        require(0 <= self.max_extra <= MOST, f"decode.max_extra={self.max_extra}: must be between 0 and {MOST:,}")
        require(self.batch_tokens >= 1, f"decode.batch_tokens={self.batch_tokens}: must be at least 1")
        require(self.min_length >= 0, f"decode.min_length={self.min_length}: must not be negative")
        require(
            self.max_length is None or max(self.min_length, 1) <= self.max_length <= MOST,
            f"decode.max_length={self.max_length}: must be at least 1, at least decode.min_length={self.min_length} "
            f"and at most {MOST:,}",
        )
        require(self.no_repeat_ngram >= 0, f"decode.no_repeat_ngram={self.no_repeat_ngram}: must not be negative")
        require(
            1e-6 <= self.temperature <= 1e6,
            f"decode.temperature={self.temperature}: must be between 0.000001 and 1,000,000; top_k=1 is greedy",
        )
        require(self.top_k >= 0, f"decode.top_k={self.top_k}: must not be negative")
        require(1e-6 <= self.top_p <= 1, f"decode.top_p={self.top_p}: must be between 0.000001 and 1")
        for key, value, unused in (
            ("temperature", self.temperature, 1), ("top_k", self.top_k, 0), ("top_p", self.top_p, 1)
        ):  # fmt: skip
            require(self.sample or value == unused, f"decode.{key}={value} is for drawing; pass decode.sample=true too")
        require(self.seed >= 0, f"decode.seed={self.seed}: must not be negative")
        require(self.n_best >= 1, f"decode.n_best={self.n_best}: must be at least 1")
        require(
            self.sample or self.n_best <= self.beam_size,
            f"decode.n_best={self.n_best}: must be at most decode.beam_size={self.beam_size}",
        )
