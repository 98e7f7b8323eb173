"""A gradient that is not finite ends a run, naming the sentences it came from, before it can reach a checkpoint."""

from pathlib import Path
from typing import Any

import torch
from lightning import LightningModule, Trainer

from nmt.data.datamodule import UpdateDataModule
from nmt.errors import NMTError
from nmt.storage.whole import write_file
from nmt.training.module import TranslationModule
from nmt.training.updates import UpdateCallback

NAMED_LINES = 8
"""In the message; all are in a file."""


class GradientCheck(UpdateCallback):
    """Looks at every update on a processor; elsewhere, where looking means waiting, every `every` updates.

    An update that was not finite cannot have been saved in between: it is looked at before each checkpoint, too.
    """

    def __init__(self, run: Path, updates: UpdateDataModule, every: int) -> None:
        self.run, self.updates, self.every = run, updates, every

    def on_update_end(self, trainer: Trainer, module: LightningModule, step: int) -> None:
        if module.device.type == "cpu" or step % self.every == 0 or step == trainer.max_steps:
            self.check(trainer, module)

    def on_save_checkpoint(self, trainer: Trainer, pl_module: LightningModule, checkpoint: dict[str, Any]) -> None:
        self.check(trainer, pl_module)

    def check(self, trainer: Trainer, module: LightningModule) -> None:
        """NMTError where an update was not finite on any device."""
        assert isinstance(module, TranslationModule)
        first = trainer.strategy.reduce(module.not_finite.clone(), reduce_op="max")
        assert isinstance(first, torch.Tensor)
        update = int(first.item())
        if update >= 0:
            raise NMTError(self.explain(update))

    def explain(self, update: int) -> str:
        lines = [
            (planned.micro_batch, line)
            for planned in self.updates.planner.update(update)
            for line in self.updates.split.lines(planned.indices).tolist()
        ]
        path = self.run / "not_finite.tsv"
        write_file(path, "micro_batch\tline\n" + "".join(f"{micro_batch}\t{line}\n" for micro_batch, line in lines))
        named = ", ".join(f"{line:,}" for _, line in lines[:NAMED_LINES])
        return (
            f"update {update + 1:,}: the gradient is not finite. Its {len(lines):,} sentences are lines {named} ... of "
            f"the training corpus, all listed in {path}; checkpoints are from before. Look at these lines, or pass "
            "optim.not_finite=skip, a lower optim.factor, or trainer.precision=32-true, with name=OTHER"
        )
