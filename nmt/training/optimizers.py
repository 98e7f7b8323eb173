"""The learning rate of each update (section 5.3), and Muon.

Muon (Jordan et al. 2024) moves the matrices of the layers by their momentum, made orthogonal, and everything else by
Adam. Elements are scaled to a root mean square of 0.2, about that of Adam's updates, so that one learning rate suits
both (Liu et al. 2025). torch.optim.Muon multiplies in bfloat16, and would treat the maps of queries, keys and values,
which are stored as one matrix here, as one map.
"""

from collections import defaultdict
from collections.abc import Callable
from math import cos, pi, sqrt
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam, Optimizer

from nmt.config import OptimConfig
from nmt.model import FeedForward, MultiHeadAttention, Transformer

MOMENTUM, ROOT_MEAN_SQUARE = 0.95, 0.2
COEFFICIENTS, ITERATIONS = (3.4445, -4.7750, 2.0315), 5
"""Of a quintic that brings singular values near 1 in a few iterations, to 0.7 to 1.2."""


def noam(step: int, d_model: int, warmup: int) -> float:
    """d_model^-0.5 * min(step^-0.5, step * warmup^-1.5) (section 5.3, equation 3) at `step`, counted from 1."""
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


DECAYS: dict[str, Callable[[float], float]] = {
    "linear": lambda progress: 1 - progress,
    "cosine": lambda progress: (1 + cos(pi * progress)) / 2,
}
"""Schedule that ends -> the share of the peak, by the progress from the end of warm-up (0) to the end (1)."""


def learning_rate(optim: OptimConfig, d_model: int, step: int) -> float:
    """The rate of update `step`, from 1: it rises to `optim.learning_rate`, or to that of equation 3, and falls."""
    warmup = optim.warmup
    if optim.learning_rate is None and optim.schedule == "noam":
        return optim.factor * noam(step, d_model, warmup)
    peak = optim.factor * (optim.learning_rate or noam(warmup, d_model, warmup))
    if step <= warmup:
        return peak * (step / warmup)
    if optim.schedule in ("noam", "constant"):
        return peak * sqrt(warmup / step) if optim.schedule == "noam" else peak
    assert optim.decay_steps is not None
    # The update after the last one would have a rate of 0.
    progress = min((step - warmup) / (optim.decay_steps + 1 - warmup), 1.0)
    return peak * DECAYS[optim.schedule](progress)


def nearly_orthogonal(matrices: Tensor) -> Tensor:
    """Matrices [N, rows, columns], no taller than wide, with singular values near 1, by Newton-Schulz iterations."""
    a, b, c = COEFFICIENTS
    x: Tensor = matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + 1e-7)
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def layer_matrices(model: Transformer) -> dict[Tensor, list[int]]:
    """The matrices of the layers, and the rows of each of the maps that are stored in one."""
    rows: dict[Tensor, list[int]] = {}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            rows |= {module.input: module.widths, module.output: [len(module.output)]}
        elif isinstance(module, FeedForward):
            rows |= {weight: [len(weight)] for name, weight in module.named_parameters() if name.endswith("weight")}
    return rows


class Muon(Adam):
    """`options` are Adam's; both groups of parameters have its state, and "exp_avg" of a matrix is its momentum."""

    def __init__(self, model: Transformer, **options: Any) -> None:
        self.rows = layer_matrices(model)
        others = [parameter for parameter in model.parameters() if parameter not in self.rows]
        groups: list[dict[str, Any]] = [{"params": others}, {"params": list(self.rows)}]
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
        """Move each map that has a gradient by its momentum one update ahead (Nesterov), those of a shape together."""
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
            rate = group["lr"] * ROOT_MEAN_SQUARE * max(shape) ** 0.5
            orthogonal = nearly_orthogonal(torch.stack([update for _, update in pairs]))
            for (parameter, _), update in zip(pairs, orthogonal, strict=True):
                parameter.add_(update, alpha=-rate)


OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": lambda model, **options: Adam(model.parameters(), **options),
    "muon": Muon,
}
"""`optim.optimizer` -> what makes it for a model, with Adam's options."""
