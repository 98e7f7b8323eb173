"""Keep a run with `minutes=` within its time: the number of updates follows the measured speed."""

import time
from dataclasses import replace
from math import ceil
from typing import Any

import yaml
from lightning import Trainer

from nmt import files
from nmt.config import ENDING, ExperimentConfig
from nmt.data import Planner
from nmt.training import time_limit
from nmt.training.callback import UpdateCallback
from nmt.training.metrics import MetricsCallback
from nmt.training.module import TranslationModule
from nmt.training.pacer import Pacer
from nmt.training.peak import synchronize

ANNOUNCED = 1.5
"""Report a new number of updates if it differs from the last report by this factor."""

SHARED_DECISIONS = 200
"""Several processes agree on the end about this many times, because agreeing makes them wait."""

SMALL_PART = 0.1
"""A model that sees less than this share of the corpus is undertrained, whatever its size."""

TOKENS_PER_PARAMETER = 3.0
"""A model is undertrained if it sees fewer target tokens and less than a whole pass."""


def with_max_steps(config: ExperimentConfig, updates: int) -> ExperimentConfig:
    """Set the number of updates, and the end of a schedule that ends with them, from the start."""
    optim = config.optim
    if optim.schedule in ENDING and optim.end == config.trainer.max_steps:
        optim = replace(optim, decay_steps=updates, decay_changes=None)
    return replace(config, optim=optim, trainer=replace(config.trainer, max_steps=updates))


def with_new_end(config: ExperimentConfig, update: int, end: int) -> ExperimentConfig:
    """Move the end of a run after `update` updates, along with a schedule that ends there."""
    optim = config.optim
    if optim.schedule in ENDING and optim.end == config.trainer.max_steps:
        # A new list, because the old one also belongs to other copies of the configuration.
        changes = [*(optim.decay_changes or []), [update, end]]
        optim = replace(optim, decay_changes=changes)
    return replace(config, optim=optim, trainer=replace(config.trainer, max_steps=end))


class Replan(UpdateCallback):
    """Moves the end of a run with `minutes=`, so that the run ends in time on a busy machine.

    Each change is an entry of optim.decay_changes in the run's config.yaml and in later
    checkpoints. The learning rate is a function of these entries and the update, so the run can be
    repeated.
    """

    def __init__(
        self,
        config: ExperimentConfig,
        planner: Planner,
        metrics: MetricsCallback,
    ) -> None:
        self.config = config
        self.planner = planner
        self.metrics = metrics
        self.pacer: Pacer | None = None  # None: a run without minutes=
        if config.minutes is not None:
            self.pacer = Pacer(
                time_limit.seconds_of(config),
                validate_every=config.validation.every_steps,
                save_every=config.checkpoints.every_steps,
            )
        self.before = 0.0  # seconds that the run took until it was stopped
        self.announced: int | None = None  # the number of updates that was reported last

    def state_dict(self) -> dict[str, Any]:
        return {} if self.pacer is None else {"spent": self.spent()}

    def on_load_checkpoint(
        self, trainer: Trainer, pl_module: Any, checkpoint: dict[str, Any]
    ) -> None:
        # Lightning calls load_state_dict after this, but only if the checkpoint has this callback's
        # state.
        self.before = checkpoint["nmt"]["seconds"]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.before = float(state_dict["spent"])

    def spent(self) -> float:
        """Seconds since the command began, plus the seconds of the commands that it resumes."""
        return self.before + time_limit.command_clock.seconds()

    def on_train_batch_start(
        self, trainer: Trainer, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        if self.pacer is not None:
            self.pacer.begin_update(time.monotonic())

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        if self.pacer is None:
            return
        # A GPU may still be computing this update, which must not count as the pause after it.
        if self.pacer.pause_after(step):
            synchronize(module.device)
        self.pacer.end_update(time.monotonic(), step)
        changes = module.optim.decay_changes
        if changes is not None and step <= changes[-1][0]:
            return  # a resumed run repeats its changes
        # All processes must take part in a decision's broadcast, so it cannot follow their clocks.
        if trainer.world_size > 1 and step % self.interval(trainer) != 0:
            return
        if step < trainer.max_steps:
            self.decide(trainer, module, step)

    def decide(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        """Move the end if the run would otherwise miss its time.

        All processes follow the decision of the first process.
        """
        assert self.pacer is not None
        planned = trainer.max_steps
        end = self.pacer.new_end(planned, step, self.spent())
        if trainer.world_size > 1:
            # Each process has measured a different speed.
            end = trainer.strategy.broadcast(end)
        if end is None:
            return
        self.announce(module, end)
        if end != planned:
            self.change(trainer, module, step, end)

    def interval(self, trainer: Trainer) -> int:
        """Updates between two decisions of several processes."""
        return max(1, trainer.max_steps // SHARED_DECISIONS)

    def announce(self, module: TranslationModule, end: int) -> None:
        """Report the first decision, and later ones only if the number of updates changes much."""
        assert self.pacer is not None
        if self.announced and 1 / ANNOUNCED < end / self.announced < ANNOUNCED:
            return
        if self.announced is None:
            text = "at the speed of this machine, "
        elif end > self.announced:
            text = "this machine has become faster: "
        else:
            text = "this machine has become slower: "
        passes = self.passes(end)
        text += f"{end:,} updates ({passes:.2g} passes over the corpus) fit in the time"
        if self.is_undertrained(module, end):
            minutes = ceil(self.pacer.limit / 60 / passes)
            text += (
                f", too few to train a good model: allow about {minutes:,} minutes for one pass "
                "or close other programs"
            )
        self.announced = end
        if self.metrics.loggers:  # only in the first process
            self.metrics.line.console.print(text)

    def passes(self, updates: int) -> float:
        """The number of passes over the corpus in this number of updates."""
        return updates * self.planner.micro_batches / self.planner.micro_batches_per_pass

    def is_undertrained(self, module: TranslationModule, updates: int) -> bool:
        """Whether a model sees a small part of the corpus.

        If it sees a larger part, but not all of it, it also needs enough tokens for its size.
        """
        passes = self.passes(updates)
        if passes < SMALL_PART:
            return True
        parameters = sum(parameter.numel() for parameter in module.parameters())
        tokens = updates * self.config.batching.tokens_per_update
        return passes < 1 and tokens < TOKENS_PER_PARAMETER * parameters

    def change(self, trainer: Trainer, module: TranslationModule, step: int, end: int) -> None:
        """Move the end of the run after update `step`, and record the change."""
        self.config = with_new_end(self.config, step, end)
        module.optim = self.config.optim
        # trainer.max_steps, which callbacks read, returns this.
        trainer.fit_loop.epoch_loop.max_steps = end
        self.metrics.line.total = end
        tree = self.metrics.config  # also the configuration in checkpoints
        tree["trainer"]["max_steps"] = end
        tree["optim"]["decay_changes"] = self.config.optim.decay_changes
        # Written at once: a run that is killed before its next checkpoint repeats this change.
        if trainer.is_global_zero:
            text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
            files.write_file(self.metrics.run / "config.yaml", text)

    def on_train_end(self, trainer: Trainer, pl_module: Any) -> None:
        updates = trainer.global_step
        # A run that stopped early will be resumed, and may still see enough.
        if self.pacer is None or updates < trainer.max_steps or not trainer.is_global_zero:
            return
        if self.is_undertrained(pl_module, updates):
            self.metrics.line.console.print(
                f"notice: the model is undertrained: {updates:,} updates are "
                f"{self.passes(updates):.2g} passes over the corpus; "
                "pass more minutes to continue it"
            )
