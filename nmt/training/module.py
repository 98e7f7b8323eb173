"""One Transformer update for Lightning (section 5); the Trainer, callbacks per update.

An update's arithmetic depends only on the configuration, the seed and the update's number.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from lightning import Callback, LightningModule, Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.optim import Adam, Optimizer

from nmt import compat, kernels, registry
from nmt.config import (
    ENDING,
    ENDLESS,
    ExperimentConfig,
    ModelConfig,
    NMTError,
    OptimConfig,
    TrainerConfig,
    in_words,
    one_line,
    require,
)
from nmt.data import STOPPING, Batch
from nmt.model import Transformer
from nmt.training.checkpoint_io import checkpoint_io
from nmt.training.loss import Losses, summed_losses
from nmt.training.reduction import FixedOrderSum, has_fixed_order
from nmt.training.run_folder import is_begun, read_config

REQUESTS = 2 + len(
    STOPPING
)  # to save, to stop because time is up, and to stop for each of the signals


def noam(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (section 5.3, equation 3) at `step`, counted from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def learning_rate(optim: OptimConfig, d_model: int, step: int) -> float:
    """The rate at `step` (from 1): it rises to `optim.learning_rate` or equation 3's peak, then follows a schedule."""
    if optim.learning_rate is None and optim.schedule == "noam":
        return optim.factor * noam(step, d_model, optim.warmup)
    peak = optim.factor * (optim.learning_rate or noam(optim.warmup, d_model, optim.warmup))
    if optim.schedule in ENDLESS:
        if step <= optim.warmup:
            return peak * (step / optim.warmup)
        return peak * ENDLESS[optim.schedule](optim.warmup / step)
    top = end_of_warmup(optim)
    if step <= top:
        # Not scaled to `top`: a change during warm-up must not alter a bit of the rates before it.
        return peak * (step / optim.warmup)
    return peak * (top / optim.warmup) * ENDING[optim.schedule](decay_progress(optim, step))


def end_of_warmup(optim: OptimConfig) -> int:
    """The update after which the rate falls, in a schedule that ends.

    If the end moves so close that warm-up would take more than half of the remaining updates, the
    rate falls from the change on.
    """
    for update, end in optim.decay_changes or []:
        if update < optim.warmup and 2 * (optim.warmup - update) > end - update:
            return update
    return optim.warmup


def decay_progress(optim: OptimConfig, step: int) -> float:
    """How far the decay has come at `step`, between 0 at the end of warm-up and almost 1 at its end.

    A change of the end keeps the progress made so far, so that the rate never jumps.
    """
    assert optim.decay_steps is not None
    begin = end_of_warmup(optim)
    end = optim.decay_steps
    progress = 0.0
    for update, new_end in optim.decay_changes or []:
        if update >= step:
            break
        if update > begin:
            progress += (1 - progress) * min((update - begin) / (end + 1 - begin), 1.0)
            begin = update
        end = new_end
    # The + 1 keeps the rate above 0 at the last update; it would reach 0 one update later.
    return progress + (1 - progress) * min((step - begin) / (end + 1 - begin), 1.0)


def adam(model: Transformer, precision: str, **options: Any) -> Adam:
    return Adam(model.parameters(), decoupled_weight_decay=True, **options)


def dropout_seed(seed: int, update: int, micro_batch: int) -> int:
    """The dropout seed for a micro-batch, hashed so that neighboring updates share no random numbers."""
    return int(
        np.random.SeedSequence([seed, update, micro_batch]).generate_state(1, np.uint64)[0]
        >> np.uint64(1)
    )


class TranslationModule(LightningModule):
    """The model, its loss, its optimizer and its learning rate (sections 5.3 and 5.4)."""

    def __init__(
        self,
        model: ModelConfig,
        optim: OptimConfig,
        vocabulary_size: int,
        seed: int,
        losses: Losses = summed_losses,
        reduction: str = "exact",
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)  # for the initial weights; dropout has its own seeds
        self.model = Transformer(model, vocabulary_size)
        self.optim = optim
        self.seed = seed
        self.training_losses = losses
        self.reduction = reduction
        # Kept on the device, so that nothing waits for them; not buffers: DDP would overwrite them with rank 0's.
        # Smoothed loss, negative log likelihood and target tokens, in this update and since the last report. The sums
        # of an update also count the devices that request to save or to stop (see CheckpointCallback).
        self.update_sums = torch.zeros(3 + REQUESTS)
        self.sums = torch.zeros(3)
        self.requests = torch.zeros(REQUESTS)
        self.fixed_order: FixedOrderSum | None = None
        # The last update's gradient norm before clipping; the first update (from 0) whose norm was not finite, or -1.
        self.gradient_norm = torch.zeros(())
        self.first_bad_update = torch.tensor(-1)
        self.skipped = 0  # updates skipped because their gradient was not finite

    def on_fit_start(self) -> None:
        for name in ("update_sums", "sums", "gradient_norm", "first_bad_update"):
            setattr(self, name, getattr(self, name).to(self.device))
        if self.has_fixed_order(self.trainer):
            share = self.trainer.accumulate_grad_batches
            self.fixed_order = FixedOrderSum(self.model, share, len(self.update_sums))

    def has_fixed_order(self, trainer: Trainer) -> bool:
        """Whether the processes of this trainer add gradients in the order of a single process."""
        share = trainer.accumulate_grad_batches
        return self.reduction == "exact" and has_fixed_order(share, trainer.world_size)

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        losses = self.training_losses if self.training else summed_losses
        return losses(self.model, batch, self.optim.label_smoothing)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        update, number = divmod(batch_idx, self.trainer.accumulate_grad_batches)
        share = self.global_rank * self.trainer.accumulate_grad_batches
        due = self.global_step, self.global_step, share + number
        assert (update, batch.update, batch.micro_batch) == due, (
            f"update {due[1]}, micro-batch {due[2]} is due"
        )

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        # A seed for each micro-batch makes dropout the same on any number of devices and after any restart.
        # torch.manual_seed would take a millisecond, because it seeds all devices.
        seed = dropout_seed(self.seed, batch.update, batch.micro_batch)
        torch.default_generator.manual_seed(seed)
        if self.device.type != "cpu":
            torch.get_device_module(self.device).manual_seed(seed)
        loss, likelihood = self.losses(batch)
        tokens = torch.full_like(likelihood, len(batch.target_indices))
        self.update_sums[:3] += torch.stack((loss.detach(), likelihood, tokens))
        share = self.trainer.accumulate_grad_batches
        # Lightning averages over accumulated micro-batches, but the update needs the sum.
        loss = loss / batch.size.target_tokens * share
        if self.fixed_order:
            self.fixed_order.begin(batch.micro_batch % share + 1)
            return loss
        return loss * self.trainer.world_size  # DDP averages over devices

    def on_after_backward(self) -> None:
        if self.fixed_order:
            self.fixed_order.end(self.update_sums)

    def configure_optimizers(self) -> Optimizer:
        """Adam with the paper's betas and epsilon (section 5.3), or a plugin's optimizer with the same options."""
        optim, make = self.optim, registry.entries_of("optimizer")[self.optim.optimizer].load()
        options = {
            "lr": self.learning_rate(1),
            "betas": (optim.beta1, optim.beta2),
            "weight_decay": optim.weight_decay,
        }
        # With 16-mixed, a fused Adam would unscale the gradients itself, which is too late for clipping.
        options |= {"fused": self.trainer.scaler is None, "eps": optim.epsilon}
        return cast(Optimizer, make(self.model, self.trainer.precision, **options))

    def learning_rate(self, step: int) -> float:
        return learning_rate(self.optim, self.model.config.d_model, step)

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Set the learning rate and count the update; optim.not_finite=skip skips updates with non-finite gradients."""
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate(self.global_step + 1)
        if not self.fixed_order:
            self.update_sums = self.trainer.strategy.reduce(self.update_sums, reduce_op="sum")
        gradients = [
            parameter.grad for parameter in self.parameters() if parameter.grad is not None
        ]
        self.gradient_norm = torch.nn.utils.get_total_norm(gradients)
        # With 16-mixed, the scaler skips updates whose gradients overflow; only the loss shows if anything is wrong.
        bad = ~(
            self.gradient_norm if self.trainer.scaler is None else self.update_sums[0]
        ).isfinite()
        if self.optim.not_finite == "skip" and bad.item():
            optimizer.zero_grad()  # Adam leaves parameters without gradients unchanged
            self.skipped += 1
        else:
            self.sums += self.update_sums[:3]
            is_first = bad & (self.first_bad_update < 0)
            self.first_bad_update = torch.where(is_first, self.global_step, self.first_bad_update)
        self.requests = self.update_sums[3:].clone()
        self.update_sums.zero_()

    def check_finite(self) -> None:
        """Raise NMTError if the gradient of an update was not finite."""
        update = int(self.first_bad_update)
        require(
            update < 0,
            f"update {update + 1:,}: the gradient is not finite. Pass optim.not_finite=skip, a lower optim.factor "
            "or trainer.precision=32-true, together with name=OTHER",
        )

    def optimizer_step(
        self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None
    ) -> None:
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)
        optimizer.zero_grad()  # Lightning would keep gradients during the next forward pass, which needs their memory

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        # Saved so that a run resumed between two reports reports the same numbers as an uninterrupted run.
        checkpoint["sums"], checkpoint["skipped"] = self.sums, self.skipped

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.sums, self.skipped = checkpoint["sums"], checkpoint["skipped"]
        # Lightning steps the optimizer when this count is a multiple of accumulate_grad_batches, which depends on the
        # number of devices.
        done = checkpoint["global_step"] * self.trainer.accumulate_grad_batches
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        for counts in (progress["total"], progress["current"]):
            counts.update(dict.fromkeys(counts, done))


OFF = (
    "enable_model_summary",
    "logger",
    "enable_checkpointing",
    "enable_progress_bar",
    "use_distributed_sampler",
)


# Flags that Lightning does not have; with its own max_time, it would stop in the middle of an update.
OURS = ("max_time", "compile", "reduction")
SHORTEST_COMPILED = 10  # minutes=: compiling takes one or two


class UpdateCallback(Callback):
    """Calls `on_update_end(trainer, module, step)` after each update; Lightning's own hooks run per micro-batch."""

    batch: Batch | None = None  # the last micro-batch of the last update

    def on_train_batch_end(
        self, trainer: Trainer, pl_module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        if (batch_idx + 1) % trainer.accumulate_grad_batches == 0:
            self.batch = batch
            self.on_update_end(trainer, pl_module, trainer.global_step)  # type: ignore[arg-type]

    def on_update_end(self, trainer: Trainer, module: TranslationModule, step: int) -> None:
        raise NotImplementedError


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Suppress Lightning's advertisements and its warnings about intentional settings."""
    for name in ("lightning.pytorch", "lightning.fabric"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for category in (UserWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module="lightning")
        yield


def check_devices(trainer: TrainerConfig) -> None:
    """Raise NMTError for devices that this machine lacks; Lightning's messages give no advice."""
    gpus = {"cuda": torch.cuda.is_available, "gpu": torch.accelerator.is_available}
    is_available = gpus.get(trainer.accelerator)
    if is_available and not is_available():
        raise NMTError(
            f"trainer.accelerator={trainer.accelerator}: torch {torch.__version__} finds no GPU; "
            "install a version of torch for your GPU, or pass trainer.accelerator=cpu"
        )
    is_on_cpu = trainer.accelerator == "cpu" or not torch.accelerator.is_available()
    if is_on_cpu and (trainer.devices == -1 or isinstance(trainer.devices, list)):
        raise NMTError(
            f"trainer.devices={in_words(trainer.devices)}: is for GPUs; on a CPU, pass a number of processes"
        )


def make_trainer(config: ExperimentConfig, callbacks: Sequence[Callback] = ()) -> Trainer:
    """A Lightning trainer with the flags in `config.trainer`; NMTError for an invalid flag."""
    flags: dict[str, Any] = dict.fromkeys(OFF, False)
    flags |= {key: value for key, value in vars(config.trainer).items() if value is not None}
    for key in OURS:
        flags.pop(key, None)
    check_devices(config.trainer)
    flags |= {"max_epochs": -1, "limit_val_batches": 0, "callbacks": [*callbacks], "plugins": []}
    # Under SLURM, Lightning would respond to a signal by saving another kind of checkpoint and requeuing the job.
    if SLURMEnvironment.detect() and not TorchElasticEnvironment.detect():
        flags["plugins"].append(SLURMEnvironment(auto_requeue=False))
    try:
        with quiet_lightning():
            trainer = Trainer(**flags)
    except (MisconfigurationException, TypeError, ValueError, RuntimeError) as error:
        raise NMTError(f"trainer: {one_line(error)}") from error
    trainer.strategy.checkpoint_io = checkpoint_io(trainer.strategy.root_device)
    # On a CPU, Lightning would silently compute in bfloat16.
    if config.trainer.precision == "16-mixed" and trainer.strategy.root_device.type == "cpu":
        raise NMTError("trainer.precision=16-mixed: needs a GPU; on a CPU, omit it")
    compat.without_sigterm_broadcast(trainer)  # CheckpointCallback exchanges signals often enough
    return trainer


def settle_trainer(
    config: ExperimentConfig, notice: Callable[[str], None] = lambda text: None
) -> ExperimentConfig:
    """Replace `auto` in trainer.precision and trainer.compile; NMTError if the device cannot compile.

    A run that has begun keeps its own settings, on any device. If `auto` cannot compile on a GPU, `notice` is called
    with the reason.
    """
    asked = config.trainer
    if asked.precision != "auto" and asked.compile is False:
        return config
    run = Path(config.run)
    begun = read_config(run)["trainer"] if is_begun(run) else {}
    exact = replace(asked, precision="32-true", compile=False)
    device = make_trainer(replace(config, trainer=exact)).strategy.root_device
    precision = asked.precision
    if precision == "auto" and begun:
        precision = begun.get("precision", "32-true")
    elif precision == "auto":
        precision = "bf16-mixed" if compat.has_fast_bfloat16(device) else "32-true"
    compiles = asked.compile
    if compiles == "auto" and begun:
        compiles = begun.get("compile", False)
    elif compiles == "auto":
        compiles = is_worth_compiling(config, device)
    # Asked only if it matters, because importing the compiler takes a second.
    problem = why_not_compiled(config, device) if compiles else ""
    if problem and asked.compile == "auto" and not begun:
        notice(f"the model is not compiled, which would make updates faster: {problem}")
        compiles = False
    elif problem:
        advice = "pass trainer.compile=false, together with name=OTHER if the run has begun"
        raise NMTError(f"trainer.compile=true: {problem}; {advice}")
    settled = replace(asked, precision=precision, compile=compiles)
    return replace(config, trainer=settled)


def why_not_compiled(config: ExperimentConfig, device: torch.device) -> str:
    """Why this model cannot be compiled for a device; empty if it can."""
    if config.model.decoder != "attention":
        return f"model.decoder={config.model.decoder} would need a kernel for each length"
    return kernels.why_not_compiled(device)


def is_worth_compiling(config: ExperimentConfig, device: torch.device) -> bool:
    """Whether trainer.compile=auto compiles if it can: on a GPU, unless the run is over before it pays."""
    is_short = config.minutes is not None and config.minutes < SHORTEST_COMPILED
    return device.type == "cuda" and not is_short
