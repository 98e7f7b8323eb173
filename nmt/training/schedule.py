"""The learning rate (section 5.3)."""


def noam(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (section 5.3, equation 3) at `step`, from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))
