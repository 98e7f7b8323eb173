"""Options of the search for translations."""

from dataclasses import dataclass

from nmt.config.fields import choice, number
from nmt.errors import NMTError, SettingError

MAX_TOKENS = 1_000_000
"""The upper limit for every key that counts a translation's tokens."""


@dataclass
class DecodeConfig:
    """Beam search (section 6.1), or sampling."""

    # The paper's search (section 6.1): beam 4, alpha 0.6, at most 50 tokens longer than the source.
    beam_size: int = number(4, 1, 10_000)
    """Number of hypotheses per sentence; 1: greedy search."""
    length_penalty: float = number(0.6, 0.0, 10.0)
    """alpha in ((5 + |Y|) / 6)^alpha, the divisor of log probabilities; |Y| includes the end
    symbol."""
    length_penalty_kind: str | None = choice(None, "gnmt", "marian")
    """gnmt (the formula of length_penalty) or marian (|Y|^alpha); null: gnmt, or an imported
    model's own setting."""
    max_extra_length: int = number(50, 0, MAX_TOKENS)
    """Maximum number of tokens by which a translation may be longer than its source."""
    min_length: int = number(0, 0, MAX_TOKENS)
    """Minimum number of tokens in a translation."""
    max_length: int | None = number(None, 1, MAX_TOKENS)
    """Maximum number of tokens in a translation; null: only max_extra_length applies."""
    no_repeat_ngram_size: int = number(0, 0, MAX_TOKENS)
    """Length of token n-grams that may not repeat within a translation; 0: no restriction."""
    do_sample: bool = False
    """Sample n_best translations instead of using beam search."""
    temperature: float = number(1.0, 1e-6, 1e6)
    """do_sample: divisor of the logits; below 1, likely tokens become more likely."""
    top_k: int = number(0, 0, MAX_TOKENS)
    """do_sample: number of most likely tokens to sample from; 0: all."""
    top_p: float = number(1.0, 1e-6, 1.0)
    """do_sample: sample from the smallest set of likeliest tokens with a total probability of at
    least this value."""
    seed: int = number(1, 0, 2**63 - 1)
    """do_sample: random seed; samples also depend on the sentence."""
    n_best: int = number(1, 1, 10_000)
    """Number of translations per line, best first."""
    batch_tokens: int | None = number(None, 1, 10**9, affects_output=False)
    """Maximum source tokens per search batch, including padding; null: 2,000 on a CPU, 16,000 on
    a GPU, and four times as many for greedy search."""

    def __post_init__(self) -> None:
        if self.max_length is not None and self.max_length < self.min_length:
            raise SettingError(
                f"must be at least decode.min_length={self.min_length}",
                key="decode.max_length",
                value=str(self.max_length),
            )
        # Without do_sample, these keys would silently have no effect.
        is_sampling = (self.temperature, self.top_k, self.top_p) != (1, 0, 1)
        if is_sampling and not self.do_sample:
            raise NMTError(
                "decode.temperature, top_k and top_p are for sampling; pass decode.do_sample=true"
            )
        # Samples are drawn one by one, but a beam holds no more hypotheses than its size.
        if not self.do_sample and self.n_best > self.beam_size:
            raise SettingError(
                f"must be at most decode.beam_size={self.beam_size}",
                key="decode.n_best",
                value=str(self.n_best),
            )
