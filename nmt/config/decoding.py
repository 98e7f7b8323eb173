"""How a model is searched for translations."""

from dataclasses import dataclass

from nmt.config.rules import check_numbers, number, require

MOST = 1_000_000
"""Tokens that a translation is ever allowed."""


@dataclass
class DecodeConfig:
    """Beam search (section 6.1), or sampling."""

    beam_size: int = number(4, 1, 10_000)
    """Hypotheses kept for each sentence; 1 is greedy search."""
    length_penalty: float = number(0.6, 0.0, 10.0)
    """alpha of ((5 + |Y|) / 6)^alpha, by which log probabilities are divided; |Y| counts the end symbol."""
    max_extra_length: int = number(50, 0, MOST)
    """A translation has at most this many tokens more than its source."""
    min_length: int = number(0, 0, MOST)
    """A translation has at least this many tokens."""
    max_length: int | None = number(None, 1, MOST)
    """And at most this many; null: max_extra_length alone decides."""
    no_repeat_ngram_size: int = number(0, 0, MOST)
    """No so many tokens in a row come twice in a translation; 0: they may."""
    do_sample: bool = False
    """Draw n_best translations by chance instead of searching for the best; beam_size means nothing then."""
    temperature: float = number(1.0, 1e-6, 1e6)
    """do_sample: below 1 likely tokens are drawn more often than their probability says, above 1 less often."""
    top_k: int = number(0, 0, MOST)
    """do_sample: only so many of the likeliest tokens are drawn from; 0: all."""
    top_p: float = number(1.0, 1e-6, 1.0)
    """do_sample: only the likeliest tokens that together have this probability are drawn from."""
    seed: int = number(1, 0, 2**63 - 1)
    """do_sample: decides, with the sentence itself, what is drawn."""
    n_best: int = number(1, 1, 10_000)
    """Translations given for each line, best first."""
    batch_tokens: int = number(2000, 1, 10**9)
    """Source tokens searched at once; padding counts."""

    def __post_init__(self) -> None:
        check_numbers(self, "decode.")
        require(
            self.max_length is None or self.min_length <= self.max_length,
            f"decode.max_length={self.max_length}: must be at least decode.min_length={self.min_length}",
        )
        for key, value, unused in (
            ("temperature", self.temperature, 1), ("top_k", self.top_k, 0), ("top_p", self.top_p, 1)
        ):  # fmt: skip
            require(
                self.do_sample or value == unused,
                f"decode.{key}={value} is for drawing; pass decode.do_sample=true too",
            )
        require(
            self.do_sample or self.n_best <= self.beam_size,
            f"decode.n_best={self.n_best}: must be at most decode.beam_size={self.beam_size}",
        )
