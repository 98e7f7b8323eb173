"""Sentence lengths like those of WMT 2014 English-German, for benchmarks that need millions of them and no corpus.

- The mean: 4.5 million pairs hold 116 million English and 110 million German words (Luong, Pham and Manning 2015,
  section 4.1), 25.8 and 24.4 for each; pieces of a joint vocabulary of 37,000 are about a tenth more, so 28 a side.
- The shape: sentences of prose are log-normal in length (Williams 1940); a spread of 0.65 leaves out 1 in 6000 beyond
  256 tokens, which are drawn again, as `data.filters.max_tokens` would drop them.
- How far the sides of a pair lie apart: the difference has a variance of 6.8 for each character (Gale and Church
  1993, section 3.2), which is 1.5 for each token of 4.5 characters.
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
