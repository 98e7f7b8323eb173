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
            rows |= {weight: [len(weight)] for name, weight in module.named_parameters() if name.endswith("weight")}
    return rows


class Muon(Adam):
    """Takes Adam's options and uses Adam's state layout, in which a matrix's "exp_avg" is its momentum.

    In mixed precision with bfloat16, the Newton-Schulz iterations also use bfloat16.
    """

    def __init__(self, model: Transformer, precision: str, **options: Any) -> None:
        self.dtype = torch.bfloat16 if precision == "bf16-mixed" else torch.float32
        self.rows = layer_matrices(model)
        rest = [parameter for parameter in model.parameters() if parameter not in self.rows]
        groups: list[dict[str, Any]] = [{"params": rest, "weight_decay": 0.0}, {"params": list(self.rows)}]
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
        """Update maps that have gradients, using Nesterov momentum; maps of the same shape are computed together."""
        alike: defaultdict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for matrix in (parameter for parameter in group["params"] if parameter.grad is not None):
            state, rows = self.state[matrix], self.rows[matrix]
            if not state:
                state |= {"step": torch.tensor(0.0), "exp_avg": torch.zeros_like(matrix)}
            state["step"] += 1
            momentum = state["exp_avg"].lerp_(matrix.grad, 1 - MOMENTUM)
            ahead = matrix.grad.lerp(momentum, MOMENTUM)
            for parameter, update in zip(matrix.split(rows), ahead.split(rows), strict=True):
                if len(parameter) > parameter.shape[1]:
                    parameter, update = parameter.mT, update.mT
                alike[parameter.shape].append((parameter, update))
        for shape, pairs in alike.items():
            rate, decay = group["lr"] * ROOT_MEAN_SQUARE * max(shape) ** 0.5, group["lr"] * group["weight_decay"]
            orthogonal = nearly_orthogonal(torch.stack([update for _, update in pairs]).to(self.dtype))
            for (parameter, _), update in zip(pairs, orthogonal, strict=True):
                parameter.mul_(1 - decay * (parameter * update > 0)).add_(update, alpha=-rate)
