"""How many updates fit in the rest of a run's time, given the time of the last updates."""

from nmt.training import time_limit

WINDOW_SHARE = 0.04
"""Measure the speed over at least this share of the time, then decide on the number of updates."""

TOLERANCE = 0.02
"""Move the end if the run would otherwise miss its time by more than this share of it."""

UNTIMED_UPDATES = 2
"""The first updates of a process build kernels and allocate memory."""


class Pacer:
    """Times updates, validations and checkpoints, in seconds; `now` is the time on any clock.

    `limit` is the time for the whole run. The run validates after every `validate_every` updates
    and saves after every `save_every` updates.
    """

    def __init__(self, limit: float, validate_every: int, save_every: int) -> None:
        self.limit = limit
        self.validate_every = validate_every
        self.save_every = save_every
        self.update_seconds = 0.0  # without validations and checkpoints
        self.checkpoint_seconds = 0.0
        self.validation_seconds: float | None = None
        self.measured_at = 0.0  # the time of an update when the validation was measured
        self.untimed = UNTIMED_UPDATES
        self.window_updates = 0
        self.window_seconds = 0.0
        self.mark: float | None = None  # when the current update began
        self.pause = ""  # what follows the last update: validation, checkpoint or nothing

    def begin_update(self, now: float) -> None:
        """Call this before each micro-batch; it ends the pause before an update."""
        # The previous update ended in `end_update`, which set the mark.
        if self.mark is not None and not self.pause:
            return
        seconds = 0.0 if self.mark is None else now - self.mark
        if self.pause == "validation":
            self.validation_seconds = seconds
            # To scale the validation's time later, when the machine has become slower or faster.
            self.measured_at = self.recent_seconds()
        elif self.pause == "checkpoint":
            self.checkpoint_seconds = seconds
        self.pause = ""
        self.mark = now

    def pause_after(self, step: int) -> str:
        """The pause after update `step`: "validation", "checkpoint" or ""."""
        # The time of a checkpoint after the same update counts as part of the validation.
        if step % self.validate_every == 0:
            return "validation"
        if step % self.save_every == 0:
            return "checkpoint"
        return ""

    def end_update(self, now: float, step: int) -> None:
        assert self.mark is not None
        seconds = now - self.mark
        self.mark = now
        self.pause = self.pause_after(step)
        if self.untimed:
            self.untimed -= 1
            return
        self.window_updates += 1
        self.window_seconds += seconds

    def new_end(self, planned: int, step: int, spent: float) -> int | None:
        """The number of updates in the time, `planned` if that fits; None: too early to say.

        `spent` is the time since the run began, after update `step`.
        """
        self.update_seconds = self.recent_seconds()
        left = time_limit.AIM * self.limit - spent - self.seconds_at_end()
        # Towards the end, decide sooner: the run could end before it notices a higher speed.
        window = min(WINDOW_SHARE * self.limit, (planned - step) * self.update_seconds)
        is_measured = self.window_updates and self.window_seconds >= window
        # If no time is left, do not wait for a measurement.
        if left > 0 and not is_measured:
            return None
        self.window_updates = 0
        self.window_seconds = 0.0
        # The next update is the earliest end: a change must come before the end that it sets.
        if left <= 0 or not self.update_seconds:
            return step + 1
        seconds = self.seconds_per_update()
        needed = (planned - step) * seconds
        # Small differences are noise, and each change of the end is recorded for good.
        if abs(left - needed) <= TOLERANCE * self.limit:
            return planned
        return step + max(1, int(left / seconds))

    def recent_seconds(self) -> float:
        """The time of an update since the last decision; without updates since then, before it."""
        if self.window_updates:
            return self.window_seconds / self.window_updates
        return self.update_seconds

    def seconds_at_end(self) -> float:
        """The time for the last validation and checkpoint, the averages and the final score."""
        pauses = self.seconds_per_validation() + self.checkpoint_seconds
        return time_limit.FINAL_VALIDATIONS * pauses

    def seconds_per_validation(self) -> float:
        """The time of a validation, scaled like updates, which other programs delay as much."""
        if self.validation_seconds is None:
            return time_limit.assumed_validation(self.update_seconds)
        if not self.measured_at or not self.update_seconds:
            return self.validation_seconds
        return self.validation_seconds * self.update_seconds / self.measured_at

    def seconds_per_update(self) -> float:
        """The time of an update with its share of validations and checkpoints."""
        validations = self.seconds_per_validation() / self.validate_every
        checkpoints = self.checkpoint_seconds / self.save_every
        return self.update_seconds + validations + checkpoints
