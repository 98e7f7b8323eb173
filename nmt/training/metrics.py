"""The callback that reports loss, speed and cost of a run in its logs and on a terminal line."""

import math
from pathlib import Path
from typing import Any

from lightning import LightningModule, Trainer
from lightning.fabric.loggers.tensorboard import TensorBoardLogger
from lightning.pytorch.loggers import WandbLogger

from nmt import kernels
from nmt.training.callback import UpdateCallback
from nmt.training.cost import NOTHING, TrainingCost
from nmt.training.logbook import Logbook
from nmt.training.machine import (
    PEAK,
    EnvironmentFile,
    changed_bit_keys,
    describe_machine,
    devices_in_words,
    greater_peak,
)
from nmt.training.module import TranslationModule
from nmt.training.progress import ProgressLine

# The most important values come first, because a narrow terminal cuts off the line.
REPORT = (
    "loss {loss:.3f}  ppl {perplexity:.2f}  {tokens_per_second:,.0f} tokens/s  "
    "lr {learning_rate:.2e}  grad {gradient_norm:.2f}  padding {padding:.0%}  MFU {mfu:.0%}  "
    "{cost:.1e} FLOP"
)


class MetricsCallback(UpdateCallback):
    """Reports loss, unsmoothed perplexity, speed, time and cost every `log_every_n_steps` updates.

    See section 5.2 and Table 2. `config` is the run's configuration.
    """

    def __init__(self, config: dict[str, Any], line: ProgressLine) -> None:
        self.run = Path(config["run"])
        self.config = config
        self.line = line
        self.every = int(config["trainer"]["log_every_n_steps"])
        self.columns: list[str] = []  # of metrics.csv, for the domains
        self.cost = TrainingCost()
        self.tokens = 0  # target tokens up to the last report, across all restarts
        self.environment = EnvironmentFile(self.run)
        self.loggers: list[Any] = []  # filled only in the first process

    def on_train_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
        self.devices = devices_in_words(trainer)
        # In all processes at once: on a CPU they share the cores, and each counts as one device.
        self.cost.measure_peak(trainer, pl_module)
        if trainer.is_global_zero:
            self.record_environment(trainer)
            self.open_loggers(trainer)
            self.line.start(trainer.global_step, trainer.max_steps)
        # Last, so that the training time includes neither the measurement nor the opening of logs.
        self.cost.start_clock()

    def record_environment(self, trainer: Trainer) -> None:
        """Write environment.json; print a notice if the last bits of the weights may change."""
        environment = describe_machine(trainer, self.cost.peak)
        # A run that starts from scratch replaces the file of an unfinished attempt.
        before = self.environment.read() if trainer.global_step else None
        if before is not None:
            changed = changed_bit_keys(before, environment)
            if changed:
                self.line.console.print(
                    f"notice: {changed}; from here on, the last bits of the weights may differ"
                )
            self.cost.peak = greater_peak(before, environment)
            environment[PEAK] = self.cost.peak
        self.environment.write(environment)

    def open_loggers(self, trainer: Trainer) -> None:
        step = trainer.global_step
        # No updates since the last report: the checkpoint was saved right after it.
        is_whole = self.cost.interval == NOTHING
        self.loggers = [Logbook(self.run, step, self.columns, whole=is_whole)]
        if "tensorboard" in self.config["logger"]:
            self.loggers.append(
                # The empty version puts all restarts in one folder. purge_step hides the events
                # after the checkpoint, which a killed process wrote and this one repeats.
                TensorBoardLogger(self.run, name="tensorboard", version="", purge_step=step + 1)
            )
        if "wandb" in self.config["logger"]:
            # W&B's run ID is the folder's name, so that a resumed run continues its curves.
            name = self.run.name
            self.loggers.append(
                WandbLogger(name, self.run, version=name, resume="allow", config=self.config)
            )

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        assert self.batch
        is_report = step % self.every == 0
        # If the program runs ahead of the device, the check waits for the device.
        waits = kernels.runs_ahead(module.device)
        if not waits or is_report or step == trainer.max_steps:
            module.check_finite()
        self.cost.add_update(self.batch.size)
        if is_report:
            self.tokens += self.report_updates(trainer, module, step)
            # Only here: between two reports, the line shows the sums so far without clearing them.
            module.sums.zero_()
            self.cost.start_interval()
        elif trainer.is_global_zero:
            # The line follows the clock; the rows of metrics.csv are the same in each repetition of
            # a run.
            report = ""
            if self.line.is_due() and step < trainer.max_steps:
                sums = module.sums.tolist()
                report = REPORT.format(**self.measured(module, step, sums))
            self.line.show(step, report)

    def on_train_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """Report the remaining updates.

        A resumed run reports them again, together with the next ones (see Logbook).
        """
        assert isinstance(pl_module, TranslationModule)
        # The run ended between two regular reports.
        if self.cost.interval != NOTHING:
            self.report_updates(trainer, pl_module, trainer.global_step)
        if trainer.is_global_zero:
            self.environment.write_peak(self.cost.peak)

    def report_updates(self, trainer: Trainer, module: TranslationModule, step: int) -> int:
        """Report the updates since the last report and return their number of target tokens."""
        # This waits for the device, so the time that is added next includes all updates.
        sums = module.sums.tolist()
        metrics = self.measured(module, step, sums)
        self.report(step, metrics)
        if trainer.is_global_zero:
            self.line.show(step, REPORT.format(**metrics))
        return int(sums[2])

    def measured(self, module: TranslationModule, step: int, sums: list[float]) -> dict[str, float]:
        """The metrics of the updates since the last report.

        `sums` are their loss, negative log-likelihood and number of target tokens.
        """
        cost = self.cost
        cost.measure_peak_again()
        cost.add_time()
        loss, likelihood, tokens = sums
        if tokens:
            mean_loss = loss / tokens
            perplexity = math.exp(min(likelihood / tokens, 100))  # without overflow
        else:  # all updates were skipped
            mean_loss = math.nan
            perplexity = math.nan
        return {
            "loss": mean_loss,
            "perplexity": perplexity,
            "learning_rate": module.learning_rate(step),
            "gradient_norm": module.gradient_norm.item(),
            "tokens_per_second": cost.interval.target_tokens / cost.interval_seconds,
            "padding": cost.interval.padding,
            "mfu": cost.speed() / cost.peak,
            "seconds": cost.seconds,
            "flops": cost.flops,
            "cost": cost.cost,
            "skipped": module.skipped,
        }

    def report(self, step: int, metrics: dict[str, float]) -> None:
        for logger in self.loggers:
            logger.log_metrics(metrics, step)

    def state(self, module: TranslationModule) -> dict[str, Any]:
        """The fields of a checkpoint's RunState that this callback measures."""
        self.cost.add_time()
        return {
            "tokens": self.tokens + int(module.sums[2]),
            "seconds": self.cost.seconds,
            "devices": self.devices,
            "metrics": {"tokens": self.tokens, **self.cost.state()},
        }

    def load(self, seconds: float, metrics: dict[str, Any]) -> None:
        """Continue from the fields `seconds` and `metrics` of a checkpoint's RunState."""
        self.tokens = metrics["tokens"]
        self.cost.load(seconds, metrics)

    def close(self) -> None:
        self.line.status.stop()
        for logger in self.loggers[1:]:  # metrics.csv is already complete
            logger.finalize("finished")
