"""Muon (Jordan et al. 2024): updates layer matrices with orthogonalized momentum, all other parameters with Adam.

Updates have a root mean square of 0.2, similar to Adam's, so that one learning rate suits both (Liu et al. 2025).
Weight decay is cautious (Chen et al. 2025): it shrinks only numbers of layer matrices that the update moves toward 0.
torch.optim.Muon always computes in bfloat16 and would treat the query, key and value maps, which are a single parameter
here, as a single map.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from nmt import compat
from nmt.model import SSRU, FeedForward, MultiHeadAttention, Transformer

MOMENTUM, ROOT_MEAN_SQUARE = 0.95, 0.2
COEFFICIENTS, ITERATIONS = (3.4445, -4.7750, 2.0315), 3
"""A quintic polynomial that brings most singular values into the range 0.7 to 1.2; more iterations learn no faster."""


def nearly_orthogonal(matrices: Tensor) -> Tensor:
    """Bring singular values close to 1 with Newton-Schulz iterations; [N, rows, columns] must have rows <= columns."""
    a, b, c = COEFFICIENTS
    x: Tensor = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def layer_matrices(model: Transformer) -> dict[Tensor, list[int]]:
    """The layers' matrices, each with the row counts of the linear maps that it stores."""
    rows: dict[Tensor, list[int]] = {}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            rows |= {module.input: module.widths, module.output: [len(module.output)]}
        elif isinstance(module, SSRU):
            rows |= {matrix: [len(matrix)] for matrix in (module.input, module.forget)}
        elif isinstance(module, FeedForward):
            rows |= {
                weight: [len(weight)]
                for name, weight in module.named_parameters()
                if name.endswith("weight")
            }
    return rows


class Muon(Adam):
    """Takes Adam's options and uses Adam's state layout, in which a matrix's "exp_avg" is its momentum.

    In mixed precision with bfloat16, the Newton-Schulz iterations also use bfloat16.
    """

    def __init__(self, model: Transformer, precision: str, **options: Any) -> None:
        self.dtype = torch.bfloat16 if precision == "bf16-mixed" else torch.float32
        self.rows = layer_matrices(model)
        rest = [parameter for parameter in model.parameters() if parameter not in self.rows]
        groups: list[dict[str, Any]] = [
            {"params": rest, "weight_decay": 0.0},
            {"params": list(self.rows)},
        ]
        super().__init__(groups, **options)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        with torch.enable_grad():
            loss = closure() if closure else None
        both = self.param_groups
        self.move(both[1])
        self.param_groups = both[:1]
        try:
            super().step()
        finally:
            self.param_groups = both
        return loss

    @torch.no_grad()
    def move(self, group: dict[str, Any]) -> None:
        """Update maps that have gradients, using Nesterov momentum.

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
        ahead = compat.between_each(gradients, momenta, MOMENTUM)

        maps = defaultdict[torch.Size, list[Tensor]](list)
        updates = defaultdict[torch.Size, list[Tensor]](list)
        for matrix, values in zip(matrices, ahead, strict=True):
            for part, update in zip(
                self.maps_of(matrix, matrix),
                self.maps_of(matrix, values),
                strict=True,
            ):
                maps[part.shape].append(part)
                updates[part.shape].append(update)
        for shape, alike in maps.items():
            rate = group["lr"] * ROOT_MEAN_SQUARE * max(shape) ** 0.5
            decay = group["lr"] * group["weight_decay"]
            update = nearly_orthogonal(torch.stack(updates[shape]).to(self.dtype))
            moved = torch.stack(alike)
            # 1 - decay where the update moves toward 0, else 1: in place, because on a CPU a new
            # tensor takes longer than the arithmetic.
            kept = (moved * update).gt_(0).mul_(-decay).add_(1)
            moved.mul_(kept).add_(update, alpha=-rate)
            compat.copy_to_each(alike, list(moved.unbind()))

    def state_of(self, matrix: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[matrix]
        if not state:
            state |= {"step": torch.tensor(0.0), "exp_avg": torch.zeros_like(matrix)}
        return state

    def maps_of(self, matrix: Tensor, values: Tensor) -> list[Tensor]:
        """Views of a matrix, or of an update for it: one per map, with rows <= columns."""
        rows = self.rows[matrix]
        # A view of one part would cost an operation, too.
        maps = values.split(rows) if len(rows) > 1 else (values,)
        return [part.mT if len(part) > part.shape[1] else part for part in maps]
