"""Mixed precision on a processor against float32, and what is cast in it."""

from collections import Counter
from contextlib import nullcontext

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from nmt.config import ModelConfig
from nmt.model import Transformer

SHAPE = (3, 11)


class Casts(TorchDispatchMode):
    """Counts the tensors that are cast, by their number of elements, and the types of products."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: Counter[int] = Counter()
        self.products: set[torch.dtype] = set()

    def __torch_dispatch__(self, operation, types, arguments=(), options=None):
        result = operation(*arguments, **(options or {}))
        name = operation.__name__.split(".")[0]
        if name == "_to_copy" and result.dtype != arguments[0].dtype and result.is_floating_point():
            self.sizes[result.numel()] += 1
        if name in ("mm", "addmm", "bmm"):
            self.products.add(result.dtype)
        return result


def model(norm: str) -> Transformer:
    torch.manual_seed(1)
    shape = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 40, "heads": 2}
    return Transformer(ModelConfig(name="mixed", norm=norm, dropout=0.1, **shape), 50).train()


def trained(model: Transformer, mixed: bool) -> tuple[Tensor, Tensor, Casts]:
    """Decoder states, the gradients of all parameters, [any number], and what was cast."""
    torch.manual_seed(2)
    source, target = torch.randint(4, 50, SHAPE), torch.randint(4, 50, SHAPE)
    with Casts() as casts:
        with torch.autocast("cpu", torch.bfloat16) if mixed else nullcontext():
            states = model.decoder_states(source, target, padded=False)
        (states * torch.randn(states.shape).to(states)).sum().backward()
    return states, torch.cat([x.grad.flatten() for x in model.parameters() if x.grad is not None]), casts


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_mixed_precision_computes_what_float32_computes(norm):
    (states, gradients, _), (exact, exact_gradients, _) = (trained(model(norm), mixed) for mixed in (True, False))
    assert torch.linalg.norm(states - exact) < 0.02 * torch.linalg.norm(exact)
    assert torch.linalg.norm(gradients - exact_gradients) < 0.1 * torch.linalg.norm(exact_gradients)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_states_are_cast_only_after_the_embeddings(norm):
    """Source and target, there and back; and the random numbers of this test."""
    states, _, casts = trained(model(norm), mixed=True)
    assert states.dtype == torch.bfloat16
    assert casts.products == {torch.bfloat16}
    assert casts.sizes[states.numel()] == 2 * 2 + 1
    widths = {3, 40 / 16}  # of queries, keys and values together, and of the feed-forward network, in d_model
    assert not any(casts.sizes[int(width * states.numel())] for width in widths)


def test_without_it_nothing_is_cast():
    states, _, casts = trained(model("post"), mixed=False)
    assert states.dtype == torch.float32
    assert not casts.sizes
