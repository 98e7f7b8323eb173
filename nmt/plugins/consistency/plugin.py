"""Consistency training (SimCut, R-Drop): a loss that also compares each pair with a noisy copy."""

from collections.abc import Callable
from dataclasses import dataclass

from nmt.config import number


@dataclass
class ConsistencyConfig:
    """Consistency training (SimCut, Gao et al. 2022): predict the same from a pair as from its
    noisy copy."""

    weight: float = number(0.0, 0.0, 1e3)
    """Weight of the divergence KL(pair || copy); 0: no copy; SimCut uses 3. An update then costs
    twice the time."""
    cut: float = number(0.05, 0.0, 0.99)
    """Probability of hiding a token of the copy, on both sides; 0: only dropout differs, as in
    R-Drop."""


def register(add: Callable[..., None]) -> None:
    add("options", "optim.consistency", "nmt.plugins.consistency.plugin:ConsistencyConfig")
    add("losses", "consistency", "nmt.plugins.consistency.consistency:losses")
