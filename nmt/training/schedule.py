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
    warmup_end = end_of_warmup(optim)
    if step <= warmup_end:
        # By `warmup`, even if it ends earlier: a change during warm-up must not alter a bit of the
        # rates before it.
        return peak * (step / optim.warmup)
    highest = peak * (warmup_end / optim.warmup)
    return highest * ENDING[optim.schedule](decay_progress(optim, step))


def end_of_warmup(optim: OptimConfig) -> int:
    """The last update of warm-up, in a schedule that ends: usually `optim.warmup`.

    A change [update, new end] in `optim.decay_changes` may leave little time. If warm-up would take
    more than half of the updates from there to the new end, it stops at the change. For example,
    warm-up for 4 updates stops after update 2 with the change [2, 5]: two of the remaining three
    updates would be too many.
    """
    for update, end in optim.decay_changes or []:
        warmup_left = optim.warmup - update
        if warmup_left > 0 and 2 * warmup_left > end - update:
            return update
    return optim.warmup


def decay_progress(optim: OptimConfig, step: int) -> float:
    """The share of the decay that is done at `step`: 0 at the end of warm-up, almost 1 at the end.

    A change [update, new end] in `optim.decay_changes` keeps the progress made so far, so that the
    rate never jumps, and spreads the rest evenly over the updates up to the new end. For example,
    the decay begins at update 0 and ends at 9, and a change at update 5 moves the end to 14. The
    progress is 0.5 at update 5 and 0.55 at update 6.
    """
    assert optim.decay_steps is not None
    begin = end_of_warmup(optim)
    end = optim.decay_steps
    progress = 0.0  # at `begin`
    # Only changes before `step`, so that a change alters no earlier rate.
    changes = [change for change in optim.decay_changes or [] if change[0] < step]
    for update, new_end in changes:
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
