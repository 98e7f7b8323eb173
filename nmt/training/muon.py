"""Muon (Jordan et al. 2024): the matrices of the layers move by their momentum, made orthogonal; all else is Adam's.

An orthogonal matrix has no direction that is larger than others, so what is rare in the gradients is learned as soon as
what is frequent. Its elements are scaled to a root mean square of 0.2, about that of Adam's updates, so that one
learning rate suits both (Liu et al. 2025). torch.optim.Muon is not used: it multiplies in bfloat16, and would take the
maps of queries, keys and values, which are stored as one matrix here, for one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Adam

from nmt.model import FeedForward, MultiHeadAttention, Transformer

MOMENTUM = 0.95
ROOT_MEAN_SQUARE = 0.2
COEFFICIENTS, ITERATIONS = (3.4445, -4.7750, 2.0315), 5
"""Of a quintic that brings singular values near 1 in a few iterations, to 0.7 to 1.2."""


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
    found: dict[Tensor, list[int]] = {}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            found |= {module.input: module.widths, module.output: [len(module.output)]}
        elif isinstance(module, FeedForward):
            found |= {weight: [len(weight)] for name, weight in module.named_parameters() if name.endswith("weight")}
    return found


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
        """Move the matrices; those of one shape together."""
        alike: defaultdict[torch.Size, list[tuple[Tensor, Tensor]]] = defaultdict(list)
        for parameter, update in self.updates(group):
            if len(parameter) > parameter.shape[1]:
                parameter, update = parameter.mT, update.mT
            alike[parameter.shape].append((parameter, update))
        for shape, pairs in alike.items():
            rate = group["lr"] * ROOT_MEAN_SQUARE * max(shape) ** 0.5
            for (parameter, _), update in zip(
                pairs, nearly_orthogonal(torch.stack([own for _, own in pairs])), strict=True
            ):
                parameter.add_(update, alpha=-rate)

    def updates(self, group: dict[str, Any]) -> Iterator[tuple[Tensor, Tensor]]:
        """Each map that has a gradient, and its momentum one update ahead (Nesterov)."""
        for parameter in group["params"]:
            if parameter.grad is None:
                continue
            state = self.state[parameter]
            if not state:
                state |= {"step": torch.tensor(0.0), "exp_avg": torch.zeros_like(parameter)}
            state["step"] += 1
            momentum = state["exp_avg"].lerp_(parameter.grad, 1 - MOMENTUM)
            ahead = parameter.grad.lerp(momentum, MOMENTUM)
            yield from zip(parameter.split(self.rows[parameter]), ahead.split(self.rows[parameter]), strict=True)
