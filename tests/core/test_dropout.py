"""Dropout keeps the share it should, independently, scaled to the same expectation."""

import pytest
import torch

from nmt.kernels import Dropout
from nmt.kernels.dropout import LEVELS, random_bits

SHAPE = torch.Size((503, 997))


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_the_share_that_is_kept_and_its_scale(p):
    torch.manual_seed(1)
    output = Dropout(p).train()(torch.ones(SHAPE))
    kept = (output != 0).float().mean().item()
    deviation = (p * (1 - p) / SHAPE.numel()) ** 0.5
    assert abs(kept - (1 - p)) < 4 * deviation + 1 / LEVELS
    torch.testing.assert_close(output[output != 0].unique(), torch.tensor([1 / (1 - p)]), rtol=1e-4, atol=0)


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 997])
def test_elements_are_kept_independently_of_their_neighbours(distance):
    """Four elements share a random number: they must not share their fate."""
    torch.manual_seed(2)
    mask = (random_bits(SHAPE) >= LEVELS // 4).flatten().float()
    both = (mask[:-distance] * mask[distance:]).mean().item()
    assert abs(both - 1 / 16) < 4 * (1 / 16 * 15 / 16 / mask.numel()) ** 0.5


def test_the_gradient_goes_where_the_value_went():
    torch.manual_seed(3)
    x = torch.randn(40, 50, requires_grad=True)
    output = Dropout(0.25).train()(x)
    (gradient,) = torch.autograd.grad(output.sum(), x)
    torch.testing.assert_close(gradient * x, output)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_two_bytes_are_dropped_as_four_are(dtype):
    torch.manual_seed(4)
    dropout, x = Dropout(0.25).train(), torch.randn(2, 40, 50).transpose(0, 1).to(dtype)
    gradients = torch.randn(2, 40, 50).transpose(0, 1).to(dtype)
    found = []
    for own in (x.requires_grad_(), x.detach().float().requires_grad_()):
        torch.manual_seed(5)
        output = dropout(own)
        found.append((output, *torch.autograd.grad(output, own, gradients.to(own.dtype))))
    for low, exact in zip(*found, strict=True):
        assert torch.equal(low, exact.to(dtype))
        assert low.dtype == dtype


def test_the_seed_decides_the_mask():
    dropout, x = Dropout(0.5).train(), torch.ones(100)
    torch.manual_seed(4)
    first, second = dropout(x), dropout(x)
    torch.manual_seed(4)
    assert torch.equal(dropout(x), first)
    assert not torch.equal(first, second)
