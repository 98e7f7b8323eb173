"""Updates of bfloat16 weights, computed in float32 and rounded at random.

Neighboring numbers of bfloat16 differ by up to 0.8%, and most updates change a weight by less than
half of that. Rounding to the nearest number would undo these updates. Stochastic rounding goes up
or down at random, with probabilities that make the mean exact.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adafactor, Adam, Optimizer
from torch.optim.adam import adam

from nmt.kernels import random_bits

UPPER_HALF = -(2**16)
"""The mask of the bits of a float32 number that bfloat16 keeps."""

PIECE = 2**24
"""The most numbers that Adam updates at a time: 64 MB in float32, five times."""


def rounded(x: Tensor, generator: torch.Generator) -> Tensor:
    """Round float32 numbers to bfloat16 numbers whose mean is exact."""
    numbers = random_bits(x.shape, generator).to(torch.int32)
    # Adding a random lower half carries into the upper half with a probability that equals the
    # fraction to round. In place, because a copy of the largest matrix takes a gigabyte.
    numbers.bitwise_and_(~UPPER_HALF).add_(x.view(torch.int32)).bitwise_and_(UPPER_HALF)
    return numbers.view(torch.float32).to(torch.bfloat16)


def rounding_seed(update: int, parameter: int) -> int:
    """The seed for rounding a parameter after an update, the same in every process."""
    hashed = np.random.SeedSequence([update, parameter]).generate_state(1, np.uint64)[0]
    return int(hashed >> np.uint64(1))  # not negative as a signed number


class RoundsAtRandom(Optimizer):
    """The base of optimizers for bfloat16 weights; the next base class is the optimizer itself.

    It updates one parameter at a time, so that only one has copies in float32, and frees its
    gradient. `step` counts the updates of a parameter in the optimizer's state, on the host.
    """

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        # Lightning's closure runs the forward and backward pass.
        with torch.enable_grad():
            loss = closure() if closure else None
        for group in self.param_groups:
            # The embeddings come first in a model and are the largest matrix. They are updated
            # last, when the memory of all other gradients is free.
            for number, parameter in reversed([*enumerate(group["params"])]):
                if parameter.grad is not None:
                    self.update_at(number, parameter, group)
        return loss

    @torch.no_grad()
    def update_at(self, number: int, parameter: Tensor, group: dict[str, Any]) -> None:
        """Update the parameter at place `number` of its group, and free its gradient."""
        assert parameter.grad is not None
        updates = int(self.state[parameter].get("step", 0))
        generator = torch.Generator(parameter.device)
        generator.manual_seed(rounding_seed(updates, number))
        self.update(parameter, group, generator)
        parameter.grad = None

    def update(self, parameter: Tensor, group: dict[str, Any], generator: torch.Generator) -> None:
        """Update a parameter by its gradient, which this may free."""
        raise NotImplementedError


class RoundedAdam(RoundsAtRandom, Adam):
    """Adam with moments in bfloat16: 8 bytes per parameter, with the weight and its gradient."""

    def update(self, parameter: Tensor, group: dict[str, Any], generator: torch.Generator) -> None:
        assert parameter.grad is not None
        state: dict[str, Tensor] = self.state[parameter]
        if not state:
            state["step"] = torch.tensor(0.0)
            state["exp_avg"] = torch.zeros_like(parameter)
            state["exp_avg_sq"] = torch.zeros_like(parameter)
        beta1, beta2 = group["betas"]
        stored = (parameter, state["exp_avg"], state["exp_avg_sq"])
        pieces = zip(
            parameter.grad.view(-1).split(PIECE),
            *(tensor.view(-1).split(PIECE) for tensor in stored),
            strict=True,
        )
        for gradient, *stored_piece in pieces:
            weight, mean, mean_square = [tensor.float() for tensor in stored_piece]
            adam(
                [weight],
                [gradient.float()],
                [mean],
                [mean_square],
                [],
                # Counts an update of each piece.
                [state["step"].clone()],
                foreach=False,
                decoupled_weight_decay=group["decoupled_weight_decay"],
                amsgrad=False,
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=False,
            )
            for tensor, exact in zip(stored_piece, (weight, mean, mean_square), strict=True):
                tensor.copy_(rounded(exact, generator))
        state["step"] += 1


class RoundedAdafactor(RoundsAtRandom, Adafactor):
    """Adafactor for bfloat16 weights: 4 bytes per parameter, with the weight and its gradient.

    Its state, a few vectors, is in float32.
    """

    def update(self, parameter: Tensor, group: dict[str, Any], generator: torch.Generator) -> None:
        assert parameter.grad is not None
        # A copy, and not other data in the parameter: torch would forget the hooks that exchange
        # its gradient.
        copied = nn.Parameter(parameter.float())
        copied.grad = parameter.grad.float()
        parameter.grad = None
        groups = self.param_groups
        self.state[copied] = self.state[parameter]
        # torch updates the parameters of all groups, so let it see only this one.
        self.param_groups = [{**group, "params": [copied]}]
        try:
            Adafactor.step(self)
        finally:
            self.param_groups = groups
            del self.state[copied]
        copied.grad = None
        parameter.copy_(rounded(copied.detach(), generator))

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        # torch has converted the state to the type of the parameters.
        numbers = [number for group in state_dict["param_groups"] for number in group["params"]]
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        for number, parameter in zip(numbers, parameters, strict=True):
            for name, value in state_dict["state"].get(number, {}).items():
                if name != "step":
                    self.state[parameter][name] = value.to(parameter.device, copy=True)
