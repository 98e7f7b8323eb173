"""Adjust the number of updates after warm-up, because trials are short and other programs may start or end."""

import time
from typing import Any

import yaml
from lightning import Trainer

from nmt.config import ExperimentConfig
from nmt.data import BatchPlanner
from nmt.files import write_file
from nmt.plugins.minutes.minutes import CHOOSING_SHARE, LEARNING_SHARE, SECONDS_BESIDE, seconds_of, with_max_steps
from nmt.training import MetricsCallback, TranslationModule, UpdateCallback

TOLERANCE = 0.1  # relative change in the number of updates that is worth making
LATE = 1.2  # print a notice if a run is expected to take this many times as long as planned


class Replan(UpdateCallback):
    """Changes the number of updates at most once, at the end of warm-up, which does not depend on this number."""

    def __init__(self, config: ExperimentConfig, planner: BatchPlanner, metrics: MetricsCallback) -> None:
        self.config, self.metrics, self.is_late = config, metrics, False
        self.limit = seconds_of(config) if config.minutes is not None else 0.0
        self.start, self.before, self.first = time.monotonic(), 0.0, (0, 0.0)

    def on_load_checkpoint(self, trainer: Trainer, pl_module: Any, checkpoint: dict[str, Any]) -> None:
        self.before = checkpoint["nmt"]["seconds"]

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        now, (first, begin), config = time.monotonic(), self.first, self.config
        if self.limit and not first and step >= module.optim.warmup // 2:
            self.first = step, now  # ignore the updates before it, which compile kernels
        if not first:
            return
        spent, pace, planned = self.before + now - self.start, (now - begin) / (step - first), trainer.max_steps
        if step == module.optim.warmup and module.optim.decay_steps == planned:
            left = LEARNING_SHARE * ((1 - CHOOSING_SHARE) * self.limit - SECONDS_BESIDE) - spent
            updates = trainer.strategy.broadcast(max(step + int(left / pace), 2 * step))
            if abs(updates - planned) > TOLERANCE * planned:
                self.change(trainer, module, updates)
        elif step % config.checkpoints.every_steps == 0 and not self.is_late:
            end = spent + pace * (planned - step)
            self.is_late = end > LATE * self.limit
            if self.is_late:
                self.metrics.line.console.print(
                    f"notice: other programs are slowing this run down; it will take about {end / 60:.0f} minutes "
                    f"instead of {self.limit / 60:.3g}. To get a model, press Ctrl-C and run `nmt average {config.run}`"
                )

    def change(self, trainer: Trainer, module: TranslationModule, updates: int) -> None:
        config, line, tree = with_max_steps(self.config, updates), self.metrics.line, self.metrics.config
        line.console.print(f"warm-up shows that {updates:,} updates fit in the time, not {trainer.max_steps:,}")
        trainer.fit_loop.epoch_loop.max_steps = line.total = updates
        module.optim, self.config = config.optim, config
        tree["trainer"]["max_steps"], tree["optim"]["decay_steps"] = updates, config.optim.decay_steps
        if trainer.is_global_zero:
            text = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
            write_file(self.metrics.run / "config.yaml", text)
