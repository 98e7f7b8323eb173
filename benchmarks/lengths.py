"""Sentence lengths like those of WMT 2014 English-German, for benchmarks that need millions of them without a corpus.

- Mean: 4.5 million pairs have 116 million English and 110 million German words (Luong, Pham and Manning 2015, section
  4.1), or 25.8 and 24.4 per sentence. A joint vocabulary of 37,000 yields about a tenth more subwords: 28 per side.
- Shape: lengths of prose sentences are log-normal (Williams 1940). With a spread of 0.65, 1 in 6000 exceeds 256 tokens;
  these are drawn again, because `data.filters.max_tokens` would drop them.
- Difference between the sides of a pair: its variance is 6.8 per character (Gale and Church 1993, section 3.2), or 1.5
  per token of 4.5 characters.
"""

import numpy as np
from numpy.typing import NDArray

MEAN, SPREAD, LONGEST = 28, 0.65, 256
VARIANCE_PER_TOKEN = 1.5
BLOCK = 1_000_000


def text_like_lengths(pairs: int, seed: int = 1) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Source and target lengths in tokens, the end symbol counted."""
    random = np.random.default_rng(seed)
    source, target = np.empty(pairs, np.int32), np.empty(pairs, np.int32)
    done = 0
    while done < pairs:
        one = random.lognormal(np.log(MEAN) - SPREAD**2 / 2, SPREAD, BLOCK)
        other = one + random.normal(0, np.sqrt(VARIANCE_PER_TOKEN * one))
        short = (one <= LONGEST) & (other <= LONGEST)
        size = min(pairs - done, int(short.sum()))
        for side, lengths in ((target, one), (source, other)):
            side[done : done + size] = np.maximum(lengths[short][:size].round(), 1) + 1
        done += size
    return source, target
