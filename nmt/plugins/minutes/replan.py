"""Keep a run with `minutes=` within its time: the number of updates follows the measured speed until the end."""

import time
from dataclasses import dataclass, replace
from typing import Any

import yaml
from lightning import Trainer

from nmt import files, training
from nmt.config import ENDING, ExperimentConfig
from nmt.data import BatchPlanner
from nmt.plugins.minutes import limit

WINDOW_SHARE = 0.04
"""Measure the speed over at least this share of the time, and then decide on the number of updates."""

TOLERANCE = 0.02
"""Move the end if the run would otherwise miss its time by more than this share of it."""

UNTIMED_UPDATES = 2  # the first updates of a process build kernels and allocate memory
ANNOUNCED = 1.5  # report a new number of updates if it differs from the last report by this factor
SHARED_DECISIONS = 200  # several processes agree on the end at most this many times
TOKENS_PER_PARAMETER = 3.0  # with fewer target tokens and less than a pass, a model is undertrained


def with_max_steps(config: ExperimentConfig, updates: int) -> ExperimentConfig:
    """Set the number of updates, and the end of a schedule that ends with them, from the start."""
    optim = config.optim
    if optim.schedule in ENDING and optim.end == config.trainer.max_steps:
        optim = replace(optim, decay_steps=updates, decay_changes=None)
    return replace(config, optim=optim, trainer=replace(config.trainer, max_steps=updates))


def with_new_end(config: ExperimentConfig, update: int, end: int) -> ExperimentConfig:
    """Move the end of a run that has made `update` updates, and that of a schedule that ends with it."""
    optim = config.optim
    if optim.schedule in ENDING and optim.end == config.trainer.max_steps:
        changes = [*(optim.decay_changes or []), [update, end]]
        optim = replace(optim, decay_changes=changes)
    return replace(config, optim=optim, trainer=replace(config.trainer, max_steps=end))


@dataclass
class Speed:
    """How long updates and validations take now, in seconds; without validations and checkpoints."""

    update: float = 0.0
    checkpoint: float = 0.0
    validation: float | None = None
    measured_at: float = 0.0  # the time of an update when the validation was measured

    def of_validation(self) -> float:
        """The time of a validation, which depends on other programs as much as that of an update."""
        if self.validation is None:
            return limit.VALIDATION_SECONDS
        if not self.measured_at or not self.update:
            return self.validation
        return self.validation * self.update / self.measured_at


class Replan(training.UpdateCallback):
    """Moves the end of a run with `minutes=`, so that the run ends in time on a machine that others use too.

    Each change is an entry of optim.decay_changes in the run's config.yaml and in later checkpoints.
    The learning rate is a function of these entries and the update, so the run can be repeated.
    """

    started = 0.0  # when the command began, on the clock of time.monotonic()

    def __init__(
        self,
        config: ExperimentConfig,
        planner: BatchPlanner,
        metrics: training.MetricsCallback,
    ) -> None:
        self.config = config
        self.planner = planner
        self.metrics = metrics
        self.limit = limit.seconds_of(config) if config.minutes is not None else None
        self.before = 0.0  # the time that the run took until it was stopped
        self.speed = Speed()
        self.untimed = UNTIMED_UPDATES
        self.window_updates = 0
        self.window_seconds = 0.0
        self.mark: float | None = None  # when the current update began
        self.pause = ""  # what follows the last update: validation, checkpoint or nothing
        self.announced: int | None = None  # the number of updates that was reported last

    def state_dict(self) -> dict[str, Any]:
        return {} if self.limit is None else {"spent": self.spent()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.before = float(state_dict["spent"])

    def spent(self) -> float:
        """Seconds since the command began, and those of the commands that this one resumes."""
        return self.before + time.monotonic() - self.started

    def on_train_batch_start(self, trainer: Trainer, pl_module: Any, batch: Any, batch_idx: int) -> None:
        if self.mark is None or self.pause:
            now = time.monotonic()
            self.end_pause(0.0 if self.mark is None else now - self.mark)
            self.mark = now

    def end_pause(self, seconds: float) -> None:
        """Note how long the validation or the checkpoint after the last update took."""
        if self.pause == "validation":
            self.speed.validation = seconds
            self.speed.measured_at = self.speed.update
        elif self.pause == "checkpoint":
            self.speed.checkpoint = seconds
        self.pause = ""

    def on_update_end(self, trainer: Trainer, module: training.TranslationModule, step: int) -> None:
        if self.limit is None:
            return
        if step % self.config.validation.every_steps == 0:
            self.pause = "validation"
        elif step % self.config.checkpoints.every_steps == 0:
            self.pause = "checkpoint"
        if self.pause:
            training.synchronize(module.device)
        self.time_update()
        changes = module.optim.decay_changes
        is_recorded = changes is not None and step <= changes[-1][0]  # a resumed run repeats its changes
        shared = trainer.world_size > 1
        is_due = not shared or step % self.interval(trainer) == 0
        if is_due and not is_recorded and step < trainer.max_steps:
            self.decide(trainer, module, step)

    def decide(self, trainer: Trainer, module: training.TranslationModule, step: int) -> None:
        """Move the end if the run would otherwise miss its time; all processes take the decision of the first."""
        planned = trainer.max_steps
        end = self.new_end(planned, step)
        if trainer.world_size > 1:
            end = trainer.strategy.broadcast(end)
        if end is None:
            return
        self.announce(module, end)
        if end != planned:
            self.change(trainer, module, step, end)

    def interval(self, trainer: Trainer) -> int:
        """Updates between two decisions of several processes."""
        return max(1, trainer.max_steps // SHARED_DECISIONS)

    def time_update(self) -> None:
        now = time.monotonic()
        assert self.mark is not None
        seconds = now - self.mark
        self.mark = now
        if self.untimed:
            self.untimed -= 1
            return
        self.window_updates += 1
        self.window_seconds += seconds

    def new_end(self, planned: int, step: int) -> int | None:
        """The number of updates for the rest of the time, or `planned` if it fits; None if it is too early to say."""
        assert self.limit is not None
        spent = self.spent()
        if self.window_updates:
            self.speed.update = self.window_seconds / self.window_updates
        final = limit.FINAL_VALIDATIONS * (self.speed.of_validation() + self.speed.checkpoint)
        left = limit.AIM * self.limit - spent - final
        if left > 0 and self.window_seconds < WINDOW_SHARE * self.limit:
            return None
        self.window_updates = 0
        self.window_seconds = 0.0
        if left <= 0 or not self.speed.update:
            return step + 1
        seconds = self.seconds_per_update()
        if abs(left - (planned - step) * seconds) <= TOLERANCE * self.limit:
            return planned
        return step + max(1, int(left / seconds))

    def seconds_per_update(self) -> float:
        """The time of an update with its share of validations and checkpoints."""
        validations = self.speed.of_validation() / self.config.validation.every_steps
        checkpoints = self.speed.checkpoint / self.config.checkpoints.every_steps
        return self.speed.update + validations + checkpoints

    def announce(self, module: training.TranslationModule, end: int) -> None:
        """Report the first decision, and later ones only if the number of updates changes much."""
        assert self.limit is not None
        if self.announced and 1 / ANNOUNCED < end / self.announced < ANNOUNCED:
            return
        if self.announced:
            text = f"this machine has become {'faster' if end > self.announced else 'slower'}: "
        else:
            text = "at the speed of this machine, "
        text += f"{end:,} updates ({self.passes(end):.2g} passes over the corpus) fit in the time"
        if self.is_undertrained(module, end):
            text += ", too few to train a good model: allow more time or close other programs"
        self.announced = end
        if self.metrics.loggers:  # only in the first process
            self.metrics.line.console.print(text)

    def passes(self, updates: int) -> float:
        return updates * self.planner.micro_batches / self.planner.micro_batches_per_pass

    def is_undertrained(self, module: training.TranslationModule, updates: int) -> bool:
        """Whether a model sees only a part of the corpus, and few tokens for its size."""
        parameters = sum(parameter.numel() for parameter in module.parameters())
        tokens = updates * self.config.batching.tokens_per_update
        return self.passes(updates) < 1 and tokens < TOKENS_PER_PARAMETER * parameters

    def change(self, trainer: Trainer, module: training.TranslationModule, step: int, end: int) -> None:
        """Move the end of the run after update `step`, and record that."""
        self.config = with_new_end(self.config, step, end)
        module.optim = self.config.optim
        trainer.fit_loop.epoch_loop.max_steps = end
        self.metrics.line.total = end
        tree = self.metrics.config  # also the configuration in checkpoints
        tree["trainer"]["max_steps"] = end
        tree["optim"]["decay_changes"] = self.config.optim.decay_changes
        if trainer.is_global_zero:
            text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
            files.write_file(self.metrics.run / "config.yaml", text)

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        updates = trainer.global_step
        if self.limit is None or updates < trainer.max_steps or not trainer.is_global_zero:
            return
        if self.is_undertrained(pl_module, updates):
            self.metrics.line.console.print(
                f"notice: the model is undertrained: {updates:,} updates are {self.passes(updates):.2g} passes "
                "over the corpus; pass more minutes to continue it"
            )
