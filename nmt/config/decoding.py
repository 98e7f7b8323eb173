"""Search and sampling."""

from dataclasses import dataclass

from nmt.config.fields import choice, number, require

MAX_TOKENS = 1_000_000
"""Limit for any key that counts tokens of a translation."""


@dataclass
class DecodeConfig:
    """Beam search (section 6.1), or sampling."""

    beam_size: int = number(4, 1, 10_000)
    """Hypotheses kept for each sentence; 1 is greedy search."""
    length_penalty: float = number(0.6, 0.0, 10.0)
    """alpha in ((5 + |Y|) / 6)^alpha, which divides log probabilities; |Y| counts the end symbol."""
    length_penalty_kind: str | None = choice(None, "gnmt", "marian")
    """gnmt (that formula) or marian (|Y|^alpha); null: gnmt, but for an imported model its own kind and alpha."""
    max_extra_length: int = number(50, 0, MAX_TOKENS)
    """Most tokens that a translation may have beyond the length of its source."""
    min_length: int = number(0, 0, MAX_TOKENS)
    """Fewest tokens of a translation."""
    max_length: int | None = number(None, 1, MAX_TOKENS)
    """Most tokens of a translation; null: max_extra_length alone decides."""
    no_repeat_ngram_size: int = number(0, 0, MAX_TOKENS)
    """No n-gram of this many tokens occurs twice in a translation; 0: no restriction."""
    do_sample: bool = False
    """Sample n_best translations instead of searching for the best; beam_size is then ignored."""
    temperature: float = number(1.0, 1e-6, 1e6)
    """do_sample: divides the logits; below 1 likely tokens are sampled more often, above 1 less often."""
    top_k: int = number(0, 0, MAX_TOKENS)
    """do_sample: sample from this many of the likeliest tokens; 0: from all."""
    top_p: float = number(1.0, 1e-6, 1.0)
    """do_sample: sample from the likeliest tokens that together have this probability."""
    seed: int = number(1, 0, 2**63 - 1)
    """do_sample: the samples depend on this seed and the sentence itself."""
    n_best: int = number(1, 1, 10_000)
    """Translations of each line, best first."""
    batch_tokens: int = number(2000, 1, 10**9)
    """Source tokens in a search batch, padding included."""

    def __post_init__(self) -> None:
        ordered = self.max_length is None or self.max_length >= self.min_length
        require(ordered, f"decode.max_length={self.max_length}: must be at least decode.min_length={self.min_length}")
        for key, unused in (("temperature", 1), ("top_k", 0), ("top_p", 1)):
            is_used = self.do_sample or getattr(self, key) == unused
            require(is_used, f"decode.{key}={getattr(self, key)} is for sampling; pass decode.do_sample=true too")
        fits = self.do_sample or self.n_best <= self.beam_size
        require(fits, f"decode.n_best={self.n_best}: must be at most decode.beam_size={self.beam_size}")
