"""The learning rate (section 5.3)."""


def noam(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (equation 3) at `step`, counted from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
