"""One Transformer update for Lightning, with its label-smoothed loss (section 5); the Trainer, callbacks per update.

An update's arithmetic depends only on the configuration, the seed and the update's number.
Shapes: M target tokens, D d_model, N vocabulary.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from lightning import Callback, LightningModule, Trainer
from lightning.fabric.plugins.environments.slurm import SLURMEnvironment
from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Adam, Optimizer

from nmt import compat, kernels, registry
from nmt.config import ENDING, ENDLESS, ExperimentConfig, ModelConfig, NMTError, OptimConfig, one_line, require
from nmt.data import STOPPING, Batch
from nmt.model import Transformer
from nmt.training.checkpoint_io import checkpoint_io

CHUNK_LOGITS = 2**23
"""The number of logits to compute at a time: 32 MB in float32, however large the batch and the vocabulary."""
REQUESTS = 2 + len(STOPPING)  # to save, to stop because time is up, and to stop for each of the signals


def noam(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (section 5.3, equation 3) at `step`, counted from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def learning_rate(optim: OptimConfig, d_model: int, step: int) -> float:
    """The rate at `step` (from 1): it rises to `optim.learning_rate` or equation 3's peak, then follows a schedule."""
    warmup = optim.warmup
    if optim.learning_rate is None and optim.schedule == "noam":
        return optim.factor * noam(step, d_model, warmup)
    peak = optim.factor * (optim.learning_rate or noam(warmup, d_model, warmup))
    if step <= warmup:
        return peak * (step / warmup)
    if optim.schedule in ENDLESS:
        return peak * ENDLESS[optim.schedule](warmup / step)
    assert optim.decay_steps is not None
    # The + 1 keeps the rate above 0 at the last update; it would reach 0 one update later.
    progress = min((step - warmup) / (optim.decay_steps + 1 - warmup), 1.0)
    return peak * ENDING[optim.schedule](progress)


def adam(model: Transformer, precision: str, **options: Any) -> Adam:
    return Adam(model.parameters(), decoupled_weight_decay=True, **options)


class LabelSmoothedCrossEntropy(torch.autograd.Function):
    """Loss (section 5.4) and gradient in one pass over chunks of the logits, which are never all in memory at once.

    forward(hidden [M, D], weight [N, D], targets [M], smoothing, bias [N] or None). In mixed precision, only the
    products use lower precision: their factors are cast once, and the sums are computed in float32.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, bias: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        vocabulary, device = len(weight), hidden.device.type
        rows = max(1, CHUNK_LOGITS // vocabulary)
        nll, normalizers = hidden.new_zeros((), dtype=torch.float32), hidden.new_zeros((), dtype=torch.float32)
        grad_hidden, grad_weight, grad_bias = [], None, None if bias is None else torch.zeros_like(bias)
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden.dtype
        matrix = weight.to(dtype)
        for x, y in zip(hidden.to(dtype).split(rows), targets.split(rows), strict=True):
            logits = kernels.linear(x, matrix, None if bias is None else bias.to(dtype)).float()
            highest, target_logits = logits.amax(dim=-1, keepdim=True), logits.gather(1, y[:, None])
            grad = torch.softmax(logits, dim=-1, out=logits)  # the probabilities, which will become the gradient
            # Get log-sum-exp from the largest probability, which cannot underflow; this needs only softmax and maxima.
            normalizer = highest - grad.amax(dim=-1, keepdim=True).log()
            nll += (normalizer - target_logits).sum()
            normalizers += normalizer.sum()
            if not ctx.needs_input_grad[0]:
                continue
            # d loss / d logits = softmax - (1 - smoothing) onehot - smoothing / N; the last term is subtracted below.
            grad.scatter_add_(1, y[:, None], grad.new_full((len(y), 1), smoothing - 1))
            if grad_bias is not None:
                grad_bias += grad.sum(0)
            grad = grad.to(dtype)
            grad_hidden.append(kernels.linear(grad, matrix.t()))
            chunk = kernels.outer_product(grad, x) if kernels.has_fast_product(x, matrix) else grad.t() @ x
            grad_weight = chunk.float() if grad_weight is None else grad_weight.add_(chunk)
        # For the uniform part, the summed weights and summed hidden states suffice to sum the logits and gradients.
        sum_hidden, sum_weight = (x.sum(0, dtype=torch.float32) for x in (hidden, weight))
        uniform, share = normalizers - sum_hidden.dot(sum_weight) / vocabulary, smoothing / vocabulary
        if bias is not None and grad_bias is not None:
            uniform -= len(hidden) * bias.mean()
            grad_bias -= len(hidden) * share
        if grad_weight is not None:
            whole = torch.cat(grad_hidden).sub_(sum_weight * share)
            ctx.gradients = whole, grad_weight.sub_(sum_hidden * share), grad_bias
        ctx.mark_non_differentiable(nll)
        return (1 - smoothing) * nll + smoothing * uniform, nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        # Scale in place: nothing else refers to these tensors, and they are used only once.
        grad_hidden, grad_weight, grad_bias = (x if x is None else x.mul_(grads[0]) for x in ctx.gradients)
        del ctx.gradients
        return grad_hidden, grad_weight, None, None, grad_bias


def label_smoothed_cross_entropy(
    hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float, bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Sums over tokens: cross-entropy with (1 - smoothing) onehot + smoothing / N (section 5.4), and -log p(target)."""
    loss, likelihood = LabelSmoothedCrossEntropy.apply(hidden, weight, targets, smoothing, bias)  # type: ignore[no-untyped-call]
    return loss, likelihood


def dropout_seed(seed: int, update: int, micro_batch: int) -> int:
    """The dropout seed for a micro-batch, hashed so that neighboring updates share no random numbers."""
    return int(np.random.SeedSequence([seed, update, micro_batch]).generate_state(1, np.uint64)[0] >> np.uint64(1))


def summed_losses(model: Transformer, batch: Batch, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """The smoothed loss and the negative log likelihood, summed over the target tokens of a micro-batch."""
    hidden = model.decoder_states(batch.source, batch.target_in, batch.padded).flatten(0, 1)
    targets, real = batch.target_out.flatten(), batch.target_indices
    if len(real) < len(targets):  # compute no logits for padding
        hidden, targets = hidden.index_select(0, real), targets.index_select(0, real)
    weight: Tensor = model.output.weight
    bias: Tensor | None = model.output.bias
    if first := model.config.unpredicted:  # slice only if needed: its gradient takes up another matrix
        weight, bias, targets = weight[first:], None if bias is None else bias[first:], targets - first
    return label_smoothed_cross_entropy(hidden, weight, targets, label_smoothing, bias)


Losses = Callable[[Transformer, Batch, float], tuple[Tensor, Tensor]]
"""A function like `summed_losses`."""


def training_losses(config: ExperimentConfig) -> Losses:
    """`summed_losses`, unless a plugin's options ask for another function."""
    others = (entry.load()(config) for entry in registry.entries_of("losses").values())
    return next(filter(None, others), summed_losses)


def exchange(tensors: list[Tensor]) -> None:
    """Sum tensors over 2^n processes in place, with the same bits in each process, because a + b equals b + a."""
    for level in range(dist.get_world_size().bit_length() - 1 if dist.is_initialized() else 0):
        received, other = [torch.empty_like(tensor) for tensor in tensors], dist.get_rank() ^ (1 << level)
        operations = [dist.P2POp(dist.isend, tensor, other, tag=tag) for tag, tensor in enumerate(tensors)]
        operations += [dist.P2POp(dist.irecv, tensor, other, tag=tag) for tag, tensor in enumerate(received)]
        for work in dist.batch_isend_irecv(operations):
            work.wait()
        for tensor, addend in zip(tensors, received, strict=True):
            tensor += addend


class TranslationModule(LightningModule):
    """The model, its loss, its optimizer and its learning rate (sections 5.3 and 5.4)."""

    def __init__(
        self, model: ModelConfig, optim: OptimConfig, vocabulary_size: int, seed: int, losses: Losses = summed_losses
    ) -> None:
        super().__init__()
        torch.manual_seed(seed)  # for the initial weights; dropout has its own seeds
        self.model = Transformer(model, vocabulary_size)
        self.optim, self.seed, self.training_losses = optim, seed, losses
        # Kept on the device, so that nothing waits for them; not buffers: DDP would overwrite them with rank 0's.
        # Smoothed loss, negative log likelihood and target tokens, in this update and since the last report:
        # The sums of an update also count the devices that request to save or to stop (see CheckpointCallback).
        self.update_sums, self.sums, self.requests = torch.zeros(3 + REQUESTS), torch.zeros(3), torch.zeros(REQUESTS)
        # Sums over 2^n neighboring micro-batches of this update: (2^n, gradients and update_sums).
        self.subtrees: list[tuple[int, list[Tensor]]] = []
        self.done = 0  # this device's micro-batches in this update
        # The last update's gradient norm before clipping; the first update (from 0) whose norm was not finite, or -1.
        self.gradient_norm, self.first_bad_update = torch.zeros(()), torch.tensor(-1)
        self.skipped = 0  # updates skipped because their gradient was not finite

    def on_fit_start(self) -> None:
        for name in ("update_sums", "sums", "gradient_norm", "first_bad_update"):
            setattr(self, name, getattr(self, name).to(self.device))
        share, devices = self.trainer.accumulate_grad_batches, self.trainer.world_size
        self.has_tree = all(number & (number - 1) == 0 for number in (share, devices))
        if self.has_tree and isinstance(self.trainer.strategy.model, DistributedDataParallel):
            self.trainer.strategy.model.require_backward_grad_sync = False  # `on_after_backward` adds the gradients

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        losses = self.training_losses if self.training else summed_losses
        return losses(self.model, batch, self.optim.label_smoothing)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        update, number = divmod(batch_idx, self.trainer.accumulate_grad_batches)
        share = self.global_rank * self.trainer.accumulate_grad_batches
        due = self.global_step, self.global_step, share + number
        assert (update, batch.update, batch.micro_batch) == due, f"update {due[1]}, micro-batch {due[2]} is due"

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
        self.done = batch.micro_batch % share + 1
        # Lightning averages over accumulated micro-batches and DDP over devices, but the update needs the sum.
        return loss / batch.size.target_tokens * share * (1 if self.has_tree else self.trainer.world_size)

    def on_after_backward(self) -> None:
        """Add gradients in a fixed tree, ((0 + 1) + (2 + 3)) + ..., whichever devices computed the micro-batches.

        PyTorch adds each second micro-batch's gradients to those of the one before. Devices exchange their sums in
        pairs (recursive doubling), so that all get the same bits.
        """
        size, is_last = 2, self.done == self.trainer.accumulate_grad_batches
        if not self.has_tree or (self.done % 2 and not is_last):
            return
        parameters = [parameter for parameter in self.parameters() if parameter.grad is not None]
        tensors = [*(cast(Tensor, parameter.grad) for parameter in parameters), self.update_sums]
        while self.subtrees and self.subtrees[-1][0] == size:
            for total, other in zip(tensors, self.subtrees.pop()[1], strict=True):
                total += other
            size *= 2
        if is_last:
            exchange(tensors)
            return
        self.subtrees.append((size, tensors))
        self.update_sums = torch.zeros_like(self.update_sums)
        for parameter in parameters:
            parameter.grad = None

    def configure_optimizers(self) -> Optimizer:
        """Adam with the paper's betas and epsilon (section 5.3), or a plugin's optimizer with the same options."""
        optim, make = self.optim, registry.entries_of("optimizer")[self.optim.optimizer].load()
        options = {"lr": self.learning_rate(1), "betas": (optim.beta1, optim.beta2), "weight_decay": optim.weight_decay}
        # With 16-mixed, a fused Adam would unscale the gradients itself, which is too late for clipping.
        options |= {"fused": self.trainer.scaler is None, "eps": optim.epsilon}
        return cast(Optimizer, make(self.model, self.trainer.precision, **options))

    def learning_rate(self, step: int) -> float:
        return learning_rate(self.optim, self.model.config.d_model, step)

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        """Set the learning rate and count the update; optim.not_finite=skip skips updates with non-finite gradients."""
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate(self.global_step + 1)
        if not self.has_tree:
            self.update_sums = self.trainer.strategy.reduce(self.update_sums, reduce_op="sum")
        gradients = [parameter.grad for parameter in self.parameters() if parameter.grad is not None]
        self.gradient_norm = torch.nn.utils.get_total_norm(gradients)
        # With 16-mixed, the scaler skips updates whose gradients overflow; only the loss shows if anything is wrong.
        bad = ~(self.gradient_norm if self.trainer.scaler is None else self.update_sums[0]).isfinite()
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

    def optimizer_step(self, epoch: int, batch_idx: int, optimizer: Any, optimizer_closure: Any = None) -> None:
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


OFF = ("enable_model_summary", "logger", "enable_checkpointing", "enable_progress_bar", "use_distributed_sampler")


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


def make_trainer(config: ExperimentConfig, callbacks: Sequence[Callback] = ()) -> Trainer:
    """A Lightning trainer with the flags in `config.trainer`; NMTError for an invalid flag."""
    flags: dict[str, Any] = dict.fromkeys(OFF, False)
    flags |= {key: value for key, value in vars(config.trainer).items() if value is not None}
    flags.pop("max_time", None)  # with it, Lightning would stop in the middle of an update
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


def settle_precision(config: ExperimentConfig) -> ExperimentConfig:
    """Replace trainer.precision=auto by the precision that suits the device."""
    if config.trainer.precision != "auto":
        return config
    exact = replace(config, trainer=replace(config.trainer, precision="32-true"))
    is_fast = compat.has_fast_bfloat16(make_trainer(exact).strategy.root_device)
    return replace(exact, trainer=replace(exact.trainer, precision="bf16-mixed")) if is_fast else exact
