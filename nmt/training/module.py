"""One update of the Transformer as Lightning wants it (section 5).

A step's arithmetic depends on the configuration, the seed and the step alone.
"""

from typing import Any

import numpy as np
import torch
from lightning import LightningModule
from torch import Tensor
from torch.optim import Adam, Optimizer

from nmt.config import PAD, ModelConfig, OptimConfig
from nmt.data.prepared import Batch
from nmt.model import Transformer
from nmt.training.loss import label_smoothed_cross_entropy
from nmt.training.schedule import noam
from nmt.training.strategies import Sharded, shard


def dropout_seed(seed: int, update: int, shard: int) -> int:
    """The seed of dropout in one micro-batch."""
    return int(np.random.SeedSequence([seed, update, shard]).generate_state(1, np.uint64)[0] >> np.uint64(1))


class TranslationModule(LightningModule):
    """The model, its loss, its optimizer and its learning rate."""

    def __init__(self, model: ModelConfig, optim: OptimConfig, vocabulary_size: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.model = Transformer(model, vocabulary_size)
        self.optim, self.seed = optim, seed
        # Smoothed loss, negative log likelihood and target tokens since they were last taken. No buffer: DDP would
        # overwrite every rank's with the first one's.
        self.sums = torch.zeros(3)

    def configure_model(self) -> None:
        if isinstance(self.trainer.strategy, Sharded):
            shard(self, self.model)

    def losses(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Sums over the target tokens of a micro-batch: the smoothed loss, and the negative log likelihood."""
        hidden = self.model.hidden(batch.source, batch.target_in)
        real = batch.target_out != PAD
        return label_smoothed_cross_entropy(
            hidden[real], self.model.output.weight, batch.target_out[real], self.optim.label_smoothing
        )

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        torch.manual_seed(dropout_seed(self.seed, batch.update, batch.shard))
        loss, likelihood = self.losses(batch)
        tokens = (batch.target_out != PAD).sum()
        self.sums += torch.stack((loss.detach(), likelihood, tokens.float()))
        # Lightning divides by the micro-batches accumulated and averages over devices; the update's sum is wanted.
        return loss / batch.update_tokens * (self.trainer.accumulate_grad_batches * self.trainer.world_size)

    def take_sums(self) -> tuple[float, float, float]:
        """The sums over all devices since the last call."""
        totals = self.trainer.strategy.reduce(self.sums.clone(), reduce_op="sum")
        assert isinstance(totals, Tensor)
        self.sums.zero_()
        loss, likelihood, tokens = totals.tolist()
        return loss, likelihood, tokens

    def configure_optimizers(self) -> Optimizer:
        o = self.optim
        return Adam(self.parameters(), lr=self.learning_rate(1), betas=(o.beta1, o.beta2), eps=o.epsilon, fused=True)

    def learning_rate(self, step: int) -> float:
        """The learning rate of update `step`, counted from 1."""
        return self.optim.factor * noam(step, self.model.config.d_model, self.optim.warmup)

    def on_before_optimizer_step(self, optimizer: Optimizer) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.learning_rate(self.global_step + 1)

    def on_fit_start(self) -> None:
        self.sums = self.sums.to(self.device)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        # A run that resumes between two reports reports what one that was never stopped does.
        checkpoint["sums"] = self.trainer.strategy.reduce(self.sums.clone(), reduce_op="sum")

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.sums = checkpoint["sums"] if self.trainer.is_global_zero else torch.zeros(3)
