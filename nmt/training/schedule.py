"""The learning rate of each update (section 5.3)."""

from math import cos, pi, sqrt

from nmt.config import OptimConfig


def noam(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (section 5.3, equation 3) at `step`, counted from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def learning_rate(optim: OptimConfig, d_model: int, step: int) -> float:
    """The learning rate of update `step`, counted from 1.

    Every schedule rises linearly to its peak at `optim.warmup`: to `optim.learning_rate`, or to that of equation 3.
    """
    if optim.learning_rate is None and optim.schedule == "noam":
        return optim.factor * noam(step, d_model, optim.warmup)
    peak = optim.factor * (optim.learning_rate or noam(optim.warmup, d_model, optim.warmup))
    return peak * share_of_peak(optim, step)


def share_of_peak(optim: OptimConfig, step: int) -> float:
    """The learning rate of update `step` as a share of the highest one."""
    warmup = optim.warmup
    if step <= warmup:
        return step / warmup
    if optim.schedule == "noam":
        return sqrt(warmup / step)
    if optim.schedule == "constant":
        return 1.0
    assert optim.decay_steps is not None
    # The update after the last one would have a rate of 0.
    passed = min((step - warmup) / (optim.decay_steps + 1 - warmup), 1.0)
    return 1 - passed if optim.schedule == "linear" else (1 + cos(pi * passed)) / 2
