"""The learning rate of each update: warm-up, then a schedule (section 5.3).

Updates are counted from 1.
"""

from nmt.config import ENDING, ENDLESS, OptimConfig


def noam(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (section 5.3, equation 3)."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def learning_rate(optim: OptimConfig, d_model: int, step: int) -> float:
    """The learning rate at `step`: a linear rise to the peak, then `optim.schedule`.

    The peak is `optim.factor` times `optim.learning_rate`, or times the peak of equation 3.
    """
    if optim.learning_rate is None:
        if optim.schedule == "noam":
            return optim.factor * noam(step, d_model, optim.warmup)
        # Equation 3 is highest at the end of warm-up; other schedules inherit its peak.
        peak = optim.factor * noam(optim.warmup, d_model, optim.warmup)
    else:
        peak = optim.factor * optim.learning_rate
    if optim.schedule in ENDLESS:
        if step <= optim.warmup:
            return peak * (step / optim.warmup)
        return peak * ENDLESS[optim.schedule](optim.warmup / step)
    top = end_of_warmup(optim)
    if step <= top:
        # Not scaled to `top`: a change during warm-up must not alter a bit of the rates before it.
        return peak * (step / optim.warmup)
    height = ENDING[optim.schedule](decay_progress(optim, step))
    return peak * (top / optim.warmup) * height


def end_of_warmup(optim: OptimConfig) -> int:
    """The update after which the rate falls, in a schedule that ends.

    If the end moves so close that warm-up would take more than half of the remaining updates, the
    rate falls from the change on.
    """
    for update, end in optim.decay_changes or []:
        rise = optim.warmup - update
        if rise > 0 and 2 * rise > end - update:
            return update
    return optim.warmup


def decay_progress(optim: OptimConfig, step: int) -> float:
    """The share of the decay that is done at `step`: 0 at the end of warm-up, almost 1 at the end.

    A change of the end keeps the progress made so far, so that the rate never jumps.
    """
    assert optim.decay_steps is not None
    begin = end_of_warmup(optim)
    end = optim.decay_steps
    progress = 0.0
    # A rate depends only on the changes before it, so that a later change alters no earlier update.
    for update, new_end in optim.decay_changes or []:
        if update >= step:
            break
        # A change during warm-up moves the end before any of the decay is done.
        if update > begin:
            progress = advanced(progress, begin, end, update)
            begin = update
        end = new_end
    return advanced(progress, begin, end, step)


def advanced(progress: float, begin: int, end: int, step: int) -> float:
    """The progress at `step` of a decay that had `progress` at `begin` and ends at `end`."""
    # The + 1 keeps the rate above 0 at the last update; it would reach 0 one update later.
    share = min((step - begin) / (end + 1 - begin), 1.0)
    return progress + (1 - progress) * share
