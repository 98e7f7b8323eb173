"""Several processes that train one model: DDP, or FSDP for models that do not fit on one device.

FSDP here is torch's `fully_shard` under Lightning's ModelParallelStrategy: weights, gradients and Adam's moments are
cut over all devices, and a layer's weights are gathered while it computes. Checkpoints are whole all the same.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch.distributed as dist
from lightning import Callback, LightningModule, Trainer
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from nmt.errors import SameForAll
from nmt.model import Transformer
from nmt.model.layers import DecoderLayer, EncoderLayer
from nmt.training.checkpoints import upgraded

LAYERS = (EncoderLayer, DecoderLayer)


class Sharded(ModelParallelStrategy):
    """FSDP, whose checkpoints are one file of plain tensors as those of other strategies."""

    def lightning_module_state_dict(self) -> dict[str, Any]:
        # Tied weights were gathered once for each of their names; sharing memory, they are written once.
        gathered = super().lightning_module_state_dict()
        first_names: dict[Tensor, str] = {}
        assert self.lightning_module is not None
        for name, parameter in self.lightning_module.named_parameters(remove_duplicate=False):
            first = first_names.setdefault(parameter, name)
            if name in gathered:  # on the first process alone
                gathered[name] = gathered[first]
        return gathered

    def load_checkpoint(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        # Lightning reads such a checkpoint without the CheckpointIO.
        return upgraded(super().load_checkpoint(*arguments, **named))


class SharedFilesystemCheck(Callback):
    """Raises NMTError on all processes where one of them sees another state of the run directory than the first."""

    def __init__(self, run: Path) -> None:
        self.run = run

    def setup(self, trainer: Trainer, pl_module: LightningModule, stage: str) -> None:
        seen = [str(trainer.ckpt_path)] * trainer.world_size
        if dist.is_initialized():
            dist.all_gather_object(seen, str(trainer.ckpt_path))
        if len(set(seen)) > 1:
            raise SameForAll(
                f"the processes do not see the same checkpoints in {self.run}: "
                "all nodes need the same folder there, on a file system that they share"
            )


def shard(module: LightningModule, model: Transformer) -> None:
    """Cut the weights over all processes: each layer is gathered by itself; embeddings and the rest with `losses`."""
    mesh = init_device_mesh(module.trainer.strategy.root_device.type, (module.trainer.world_size,))
    for layer in model.modules():
        if isinstance(layer, LAYERS):
            fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)
    # The output matrix is used beside any layer's forward, so the unit around it is the loss.
    register_fsdp_forward_method(module, "losses")


@contextmanager
def whole_weights(module: LightningModule) -> Iterator[None]:
    """Within, each process holds all the weights, so that each can run a different number of batches."""
    units = [unit for unit in module.modules() if isinstance(unit, FSDPModule)]
    for unit in units:
        unit.set_reshard_after_forward(False, recurse=False)
        unit.unshard()
    try:
        yield
    finally:
        for unit in units:
            unit.set_reshard_after_forward(isinstance(unit, LAYERS), recurse=False)
            unit.reshard()
