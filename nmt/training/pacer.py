"""How many updates fit in the rest of a run's time, given the time of the last updates."""

from nmt.training import time_limit

WINDOW_SHARE = 0.04
"""Measure the speed over at least this share of the time, then decide on the number of updates.

In a shorter window, brief work of other programs would count too much.
"""

TOLERANCE = 0.02
"""Move the end if the run would otherwise miss its time by more than this share of it."""

UNTIMED_UPDATES = 2
"""The first updates of a process build kernels and allocate memory."""


class Pacer:
    """Times updates, and the pauses for validations and checkpoints between them, in seconds.

    `limit` is the time for the whole run. The run validates after every `validate_every` updates
    and saves after every `save_every` updates. `now` is the time on any clock.
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
        # The updates since the last decision.
        self.window_updates = 0
        self.window_seconds = 0.0
        self.started: float | None = None  # when the current update or pause began
        self.pause = ""  # "validation" or "checkpoint" during such a pause

    def begin_update(self, now: float) -> None:
        """Call this before each micro-batch. If a pause precedes the update, this ends it."""
        if self.started is None:  # the first update of this process
            self.started = now
            return
        # Without a pause, the update began where `end_update` ended the one before.
        if not self.pause:
            return
        seconds = now - self.started
        if self.pause == "validation":
            self.validation_seconds = seconds
            # To scale the validation's time later, when the machine has become slower or faster.
            self.measured_at = self.recent_seconds()
        else:
            self.checkpoint_seconds = seconds
        self.pause = ""
        self.started = now

    def pause_after(self, step: int) -> str:
        """What follows update `step`: "validation", "checkpoint" or nothing."""
        # A checkpoint after the same update counts as a part of the validation.
        if step % self.validate_every == 0:
            return "validation"
        if step % self.save_every == 0:
            return "checkpoint"
        return ""

    def end_update(self, now: float, step: int) -> None:
        assert self.started is not None
        seconds = now - self.started
        self.started = now
        self.pause = self.pause_after(step)
        if self.untimed:
            self.untimed -= 1
            return
        self.window_updates += 1
        self.window_seconds += seconds

    def new_end(self, planned: int, step: int, spent: float) -> int | None:
        """Decide after update `step` how many updates the run should make in all.

        `planned` is the number so far, which stays if it fits the time. `spent` is the time since
        the run began. None: too early to decide.
        """
        self.update_seconds = self.recent_seconds()
        left = time_limit.AIM * self.limit - spent - self.seconds_at_end()
        # With no time left, it does not wait for a measurement.
        if left > 0 and not self.has_measured(planned - step):
            return None
        self.window_updates = 0
        self.window_seconds = 0.0
        # The next update is the earliest end: a change must come before the end that it sets.
        if left <= 0:
            return step + 1
        seconds = self.seconds_per_update()
        needed = (planned - step) * seconds
        # Small differences are noise, and each change of the end is recorded for good.
        if abs(left - needed) <= TOLERANCE * self.limit:
            return planned
        updates_that_fit = int(left / seconds)
        return step + max(1, updates_that_fit)

    def has_measured(self, remaining: int) -> bool:
        """Whether enough updates have been timed to decide, with `remaining` updates to come."""
        window = WINDOW_SHARE * self.limit
        # Towards the end, decide sooner: the run could end before it notices a higher speed.
        window = min(window, remaining * self.update_seconds)
        return self.window_updates > 0 and self.window_seconds >= window

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
