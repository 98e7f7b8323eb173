"""FSDP, for models that do not fit on one device.

It is torch's `fully_shard` under Lightning's ModelParallelStrategy: weights, gradients and Adam's moments are sharded
over all devices, and a layer's weights are gathered while it computes. Checkpoints hold whole tensors nevertheless.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lightning import LightningModule
from lightning.pytorch.strategies import ModelParallelStrategy
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from nmt.model import DecoderLayer, EncoderLayer, Transformer

LAYERS = (EncoderLayer, DecoderLayer)


class Sharded(ModelParallelStrategy):
    """FSDP, with checkpoints in one file of plain tensors, as in other strategies."""

    def lightning_module_state_dict(self) -> dict[str, Any]:
        # Tied weights are gathered once for each of their names; when they share memory, they are written once.
        gathered = super().lightning_module_state_dict()
        first_names: dict[Tensor, str] = {}
        assert self.lightning_module is not None
        for name, parameter in self.lightning_module.named_parameters(remove_duplicate=False):
            first = first_names.setdefault(parameter, name)
            if name in gathered:  # only on the first process
                gathered[name] = gathered[first]
        return gathered


def shard(module: LightningModule, model: Transformer) -> None:
    """Shard the weights over all processes: each layer is gathered by itself, embeddings and the rest with `losses`."""
    mesh = init_device_mesh(module.trainer.strategy.root_device.type, (module.trainer.world_size,))
    for layer in model.modules():
        if isinstance(layer, LAYERS):
            fully_shard(layer, mesh=mesh)
    fully_shard(module, mesh=mesh)
    # The output matrix is used outside any layer's forward, so its unit is gathered around the loss.
    register_fsdp_forward_method(module, "losses")


@contextmanager
def whole_weights(module: LightningModule) -> Iterator[None]:
    """Gather all weights on each process, so that each can run a different number of batches."""
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
