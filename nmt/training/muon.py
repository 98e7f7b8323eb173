"""Muon (Jordan et al. 2024) updates layer matrices with orthogonalized momentum.

All other parameters are updated with Adam. Updates have a root mean square of 0.2, similar to
Adam's, so that one learning rate suits both (Liu et al. 2025). Weight decay is cautious (Chen et
al. 2025): it shrinks only numbers of layer matrices that the update moves toward 0.

torch.optim.Muon always computes in bfloat16 and would treat the query, key and value maps, which
are a single parameter here, as a single map.

Shapes: G maps of the same shape, P rows, Q columns.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from nmt import compat
from nmt.kernels import Linear
from nmt.model import SSRU, MultiHeadAttention, Transformer
from nmt.training.frozen import trained_parameters

MOMENTUM = 0.95
"""As in Jordan et al. 2024."""
ROOT_MEAN_SQUARE = 0.2
"""Of an update, as in Adam's updates (Liu et al. 2025)."""

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""The coefficients of a quintic polynomial that brings most singular values into 0.7 to 1.2."""
ITERATIONS = 3
"""How often to apply the polynomial; with more iterations, models learn no faster."""


def nearly_orthogonal(matrices_GPQ: Tensor) -> Tensor:
    """Bring singular values close to 1 with Newton-Schulz iterations; P must not exceed Q.

    An iteration computes a X + b (X X^T) X + c (X X^T)^2 X.
    """
    a, b, c = COEFFICIENTS
    # The iteration needs singular values up to about 1, and this norm is at least the largest.
    norms_G11 = torch.linalg.matrix_norm(matrices_GPQ, keepdim=True)
    # A norm may be 0: the memory check makes a step with zero gradients.
    x_GPQ: Tensor = matrices_GPQ / (norms_G11 + 1e-7)
    for _ in range(ITERATIONS):
        gram_GPP = x_GPQ @ x_GPQ.mT
        polynomial_GPP = torch.baddbmm(gram_GPP, gram_GPP, gram_GPP, beta=b, alpha=c)
        x_GPQ = torch.baddbmm(x_GPQ, polynomial_GPP, x_GPQ, beta=a)
    return x_GPQ


def layer_matrices(model: Transformer) -> dict[Tensor, list[int]]:
    """The layers' matrices, each with the row counts of the linear maps that it stores."""
    rows: dict[Tensor, list[int]] = {}
    # The projection to the vocabulary is not part of a layer; like embeddings, Adam updates it.
    modules = [*model.encoder_layers.modules(), *model.decoder_layers.modules()]
    for module in modules:
        if isinstance(module, MultiHeadAttention):
            # One parameter stores the query, key and value maps; each is orthogonalized by itself.
            rows[module.input] = module.widths
            rows[module.output] = [len(module.output)]
        elif isinstance(module, SSRU):
            rows[module.input] = [len(module.input)]
            rows[module.forget] = [len(module.forget)]
        elif isinstance(module, Linear):
            rows[module.weight] = [len(module.weight)]
    return rows


class Muon(Adam):
    """Takes Adam's options and uses Adam's state layout, in which "exp_avg" is a matrix's momentum.

    In mixed precision with bfloat16, the Newton-Schulz iterations also use bfloat16.
    """

    def __init__(self, model: Transformer, precision: str, **options: Any) -> None:
        self.dtype = torch.bfloat16 if precision == "bf16-mixed" else torch.float32
        self.rows = layer_matrices(model)
        # Embeddings, norms and biases.
        trained = trained_parameters(model)
        others = [parameter for parameter in trained if parameter not in self.rows]
        groups: list[dict[str, Any]] = [
            {"params": others, "weight_decay": 0.0},
            {"params": [matrix for matrix in self.rows if matrix.requires_grad]},
        ]
        super().__init__(groups, **options)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        # Lightning's closure runs the forward and backward pass.
        with torch.enable_grad():
            loss = closure() if closure else None
        groups = self.param_groups
        others, matrices = groups
        self.update_matrices(matrices)
        # Adam updates all parameter groups, so hide the matrices from it.
        self.param_groups = [others]
        try:
            super().step()
        finally:
            self.param_groups = groups
        return loss

    @torch.no_grad()
    def update_matrices(self, group: dict[str, Any]) -> None:
        """Update the matrices that have gradients, using Nesterov momentum.

        Each kernel of a GPU takes a few microseconds to start, so each operation here processes
        all matrices, or all maps of the same shape.
        """
        matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
        if not matrices:
            return
        states = [self.state_of(matrix) for matrix in matrices]
        gradients = [matrix.grad for matrix in matrices]
        momenta = [state["exp_avg"] for state in states]
        compat.add_to_each([state["step"] for state in states], 1)
        compat.move_each(momenta, gradients, 1 - MOMENTUM)
        # Nesterov: the direction looks ahead along the momentum that has just been updated.
        ahead = compat.between_each(gradients, momenta, MOMENTUM)

        maps = defaultdict[torch.Size, list[Tensor]](list)
        directions = defaultdict[torch.Size, list[Tensor]](list)
        for matrix, direction in zip(matrices, ahead, strict=True):
            # Views, so that the copy at the end of `move` writes into the parameters.
            for part in self.maps_of(matrix, matrix):
                maps[part.shape].append(part)
            for part in self.maps_of(matrix, direction):
                directions[part.shape].append(part)
        for shape, maps_of_shape in maps.items():
            update_GPQ = nearly_orthogonal(torch.stack(directions[shape]).to(self.dtype))
            self.move(maps_of_shape, update_GPQ, group)

    def move(self, maps: list[Tensor], update_GPQ: Tensor, group: dict[str, Any]) -> None:
        """Move maps of one shape against an update, and decay their numbers, in place."""
        shape = maps[0].shape
        # An orthogonal matrix has a root mean square of 1 / sqrt(Q).
        rate = group["lr"] * ROOT_MEAN_SQUARE * max(shape) ** 0.5
        decay = group["lr"] * group["weight_decay"]
        moved_GPQ = torch.stack(maps)
        # 1 - decay where the update moves toward 0, else 1: in place, because on a CPU a new tensor
        # takes longer than the arithmetic.
        kept_GPQ = (moved_GPQ * update_GPQ).gt_(0).mul_(-decay).add_(1)
        moved_GPQ.mul_(kept_GPQ).add_(update_GPQ, alpha=-rate)
        compat.copy_to_each(maps, list(moved_GPQ.unbind()))

    def state_of(self, matrix: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[matrix]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(matrix)
        return state

    def maps_of(self, matrix: Tensor, values: Tensor) -> list[Tensor]:
        """Views of a matrix, or of an update for it: one per map, with rows <= columns."""
        rows = self.rows[matrix]
        # A split into a single part would cost an operation and change nothing.
        parts = values.split(rows) if len(rows) > 1 else (values,)
        maps = []
        for part in parts:
            is_taller_than_wide = len(part) > part.shape[1]
            # The Gram matrix X X^T is then the smaller of the two, and a transposed matrix has the
            # same singular values.
            maps.append(part.mT if is_taller_than_wide else part)
        return maps
