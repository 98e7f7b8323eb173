"""One update of the Transformer, as a LightningModule (section 5).

An update's arithmetic depends only on the configuration, the seed and the update's number.
"""

from typing import Any

import numpy as np
import torch
from lightning import LightningModule, Trainer
from torch import Tensor
from torch.optim import Adam, Optimizer

from nmt.config import ModelConfig, NMTError, OptimConfig
from nmt.data import STOPPING, Batch
from nmt.extensions import OptimizerEntry
from nmt.model import Transformer
from nmt.registry import entries_of
from nmt.training.frozen import freeze, trained_parameters
from nmt.training.loss import Losses, summed_losses
from nmt.training.reduction import FixedOrderSum, has_fixed_order
from nmt.training.rounding import RoundedAdam
from nmt.training.schedule import learning_rate

SUMS = 3
"""The number of sums: smoothed loss, negative log likelihood, and target tokens."""

REQUESTS = 2 + len(STOPPING)
"""The number of requests: to save, to stop because time is up, and to stop for each signal."""


def adam(model: Transformer, precision: str, **options: Any) -> Adam:
    """The paper's optimizer (section 5.3), with decoupled weight decay (AdamW)."""
    kind = Adam
    if precision == "bf16-true":
        kind = RoundedAdam
        options["fused"] = False  # RoundedAdam needs the count of updates on the host
    return kind(trained_parameters(model), decoupled_weight_decay=True, **options)


def dropout_seed(seed: int, update: int, micro_batch: int) -> int:
    """The dropout seed of a micro-batch. Neighboring updates share no random numbers."""
    sequence = np.random.SeedSequence([seed, update, micro_batch])
    hashed = sequence.generate_state(1, np.uint64)[0]
    return int(hashed >> np.uint64(1))  # not negative as a signed number


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
        freeze(self.model, optim.frozen)
        self.optim = optim
        self.seed = seed
        self.training_losses = losses
        self.reduction = reduction
        # None with trainer.reduction=fast, or where the numbers of devices and of micro-batches per
        # device are not both powers of two: DDP then adds the gradients.
        self.fixed_order: FixedOrderSum | None = None
        # These tensors stay on the device, so that nothing waits for them. They are not buffers,
        # because DDP would overwrite those with the buffers of rank 0.
        # Sums over this update, then the number of devices that make each of the requests (see
        # CheckpointCallback): both travel in one exchange.
        self.update_sums = torch.zeros(SUMS + REQUESTS)
        self.sums = torch.zeros(SUMS)  # since the last report
        self.requests = torch.zeros(REQUESTS)  # of the last update
        self.gradient_norm = torch.zeros(())  # of the last update, before clipping
        # The first update, counted from 0, whose gradient was not finite; -1: none.
        self.first_bad_update = torch.tensor(-1)
        self.skipped = 0  # updates skipped because their gradient was not finite

    def on_fit_start(self) -> None:
        # Lightning moves only parameters and buffers to the device.
        self.update_sums = self.update_sums.to(self.device)
        self.sums = self.sums.to(self.device)
        self.gradient_norm = self.gradient_norm.to(self.device)
        self.first_bad_update = self.first_bad_update.to(self.device)
        if self.has_fixed_order(self.trainer):
            share = self.trainer.accumulate_grad_batches
            self.fixed_order = FixedOrderSum(self.model, share, len(self.update_sums))

    def has_fixed_order(self, trainer: Trainer) -> bool:
        """Whether the processes of this trainer add gradients in the order of a single process."""
        share = trainer.accumulate_grad_batches
        return self.reduction == "exact" and has_fixed_order(share, trainer.world_size)

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The smoothed loss and the negative log likelihood, each summed over a micro-batch."""
        # Validation measures the plain loss, to compare runs with and without consistency training.
        losses = self.training_losses if self.training else summed_losses
        return losses(self.model, batch, self.optim.label_smoothing)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        """Check that the planner, Lightning and the optimizer agree on the next micro-batch."""
        share = self.trainer.accumulate_grad_batches
        update, number = divmod(batch_idx, share)
        due = self.global_step
        micro_batch = self.global_rank * share + number
        # Otherwise nothing would fail, but the run would silently train on other sentences.
        is_due = update == due and batch.update == due and batch.micro_batch == micro_batch
        assert is_due, f"update {due}, micro-batch {micro_batch} is due"

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        self.seed_dropout(batch)
        loss, likelihood = self.losses(batch)
        tokens = torch.full_like(likelihood, len(batch.target_indices))
        # Detached: a sum with a history would keep the graphs of all micro-batches in memory.
        self.update_sums[:SUMS] += torch.stack((loss.detach(), likelihood, tokens))
        share = self.trainer.accumulate_grad_batches
        # Lightning averages over accumulated micro-batches, but the update needs the sum.
        loss = loss / batch.size.target_tokens * share
        if self.fixed_order:
            # `micro_batch` counts over all devices, FixedOrderSum those of this device, from 1.
            self.fixed_order.begin(batch.micro_batch % share + 1)
            return loss
        return loss * self.trainer.world_size  # DDP averages over devices

    def seed_dropout(self, batch: Batch) -> None:
        """Make dropout the same on any number of devices and after any restart."""
        seed = dropout_seed(self.seed, batch.update, batch.micro_batch)
        # torch.manual_seed would take a millisecond, because it seeds all devices.
        torch.default_generator.manual_seed(seed)
        if self.device.type != "cpu":
            torch.get_device_module(self.device).manual_seed(seed)

    def on_after_backward(self) -> None:
        if self.fixed_order:
            self.fixed_order.end(self.update_sums)

    def configure_optimizers(self) -> Optimizer:
        """Adam with the paper's betas and epsilon (section 5.3), or the chosen optimizer."""
        optim = self.optim
        make = entries_of(OptimizerEntry)[optim.optimizer].load()
        return make(
            self.model,
            self.trainer.precision,
            # Only a placeholder: every update sets its own rate.
            lr=self.learning_rate(1),
            betas=(optim.beta1, optim.beta2),
            eps=optim.epsilon,
            weight_decay=optim.weight_decay,
            # With 16-mixed, a fused Adam would unscale the gradients itself, which is too late for
            # clipping.
            fused=self.trainer.scaler is None,
        )

    def learning_rate(self, step: int) -> float:
        return learning_rate(self.optim, self.model.config.d_model, step)

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Finish an update's gradients and sums; Lightning calls this before the optimizer's step.

        An update whose gradient is not finite is skipped with optim.not_finite=skip. Otherwise, its
        number is kept, and `check_finite` stops the run.
        """
        self.set_learning_rate(optimizer)
        # Loss, likelihood and tokens of the update, then the number of processes that request to
        # save or stop. With a fixed order, they are already sums over the processes.
        if not self.fixed_order:
            self.update_sums = self.trainer.strategy.reduce(self.update_sums, reduce_op="sum")
        # This hook runs before Lightning clips gradients, so the norm is reported unclipped.
        self.gradient_norm = self.norm_of_gradients()
        is_bad = self.is_not_finite()
        # `item` waits for the device, so it is only called where the answer is needed here.
        if self.optim.not_finite == "skip" and is_bad.item():
            optimizer.zero_grad()  # Adam leaves parameters without gradients unchanged
            self.skipped += 1
        else:
            self.sums += self.update_sums[:SUMS]  # since the last report
            # Computed on the device; `check_finite` reads it where the host waits anyway.
            is_first = is_bad & (self.first_bad_update < 0)
            self.first_bad_update = torch.where(is_first, self.global_step, self.first_bad_update)
        # A clone, because `update_sums` starts again at 0 for the next update.
        self.requests = self.update_sums[SUMS:].clone()
        self.update_sums.zero_()

    def set_learning_rate(self, optimizer: Optimizer) -> None:
        # A function of the update's number, so there is no scheduler state to restore. Equation 3
        # counts updates from 1, global_step counts those already made.
        rate = self.learning_rate(self.global_step + 1)
        for group in optimizer.param_groups:
            group["lr"] = rate

    def is_not_finite(self) -> Tensor:
        """Whether the update must not be made because its gradient is not finite, a boolean."""
        if self.trainer.scaler is None:
            return ~self.gradient_norm.isfinite()
        # With 16-mixed, the scaler skips updates whose gradients overflow; only the loss shows if
        # anything is wrong.
        return ~self.update_sums[0].isfinite()

    def norm_of_gradients(self) -> Tensor:
        """The norm of all gradients together."""
        gradients = []
        for parameter in self.parameters():
            if parameter.grad is not None:
                gradients.append(parameter.grad)
        return torch.nn.utils.get_total_norm(gradients)

    def check_finite(self) -> None:
        """Raise NMTError if the gradient of an update was not finite."""
        update = int(self.first_bad_update)
        if update >= 0:
            raise NMTError(
                f"update {update + 1:,}: the gradient is not finite. "
                "Pass optim.not_finite=skip, a lower optim.factor or trainer.precision=32-true, "
                "together with name=OTHER"
            )

    def optimizer_step(
        self,
        epoch: int,
        batch_idx: int,
        optimizer: Any,
        optimizer_closure: Any = None,
    ) -> None:
        super().optimizer_step(epoch, batch_idx, optimizer, optimizer_closure)
        # Lightning would keep gradients during the next forward pass, which needs their memory.
        optimizer.zero_grad()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        # A run that resumes between two reports prints the same numbers as an uninterrupted run.
        checkpoint["sums"] = self.sums
        checkpoint["skipped"] = self.skipped

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.sums = checkpoint["sums"]
        self.skipped = checkpoint["skipped"]
        # Lightning steps the optimizer when this count is a multiple of accumulate_grad_batches,
        # which depends on the number of devices.
        done = checkpoint["global_step"] * self.trainer.accumulate_grad_batches
        progress = checkpoint["loops"]["fit_loop"]["epoch_loop.batch_progress"]
        for counts in (progress["total"], progress["current"]):
            counts.update(dict.fromkeys(counts, done))
