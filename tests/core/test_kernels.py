"""Linear maps and gradients are torch's; dropout keeps the share it should."""

import pytest
import torch
import torch.nn.functional as F

from nmt.kernels import Dropout, has_fast_product, linear
from nmt.kernels.dropout import LEVELS, random_bits
from nmt.kernels.products import ONEDNN

needs_onednn = pytest.mark.skipif(not ONEDNN, reason="this processor has no oneDNN product")
SHAPE = torch.Size((503, 997))


@pytest.fixture(autouse=True)
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.kernels.products.SMALLEST_PRODUCT", 0)
    torch.manual_seed(1)


@pytest.mark.parametrize("rows", [(1,), (2, 3, 5), (1000,)])
@pytest.mark.parametrize(("inputs", "outputs"), [(16, 48), (48, 16), (1, 3)])
@pytest.mark.parametrize("biased", [True, False])
def test_linear_is_torchs_with_its_gradients(rows, inputs, outputs, biased):
    shapes = (*rows, inputs), (outputs, inputs), *([(outputs,)] if biased else [])
    operands = [torch.randn(shape, requires_grad=True) for shape in shapes]
    ours, theirs = linear(*operands), F.linear(*operands)
    above = torch.randn_like(theirs)
    for actual, expected in zip(
        (ours, *torch.autograd.grad(ours, operands, above)),
        (theirs, *torch.autograd.grad(theirs, operands, above)),
        strict=True,
    ):
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-3)


@needs_onednn
def test_the_fast_product_is_taken_where_it_is_right_and_only_there():
    x = torch.randn(3, 4)
    assert has_fast_product(x, x)
    assert not any(has_fast_product(other, x) for other in (x.double(), x.bfloat16(), x.to("meta")))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not has_fast_product(x, x)
        assert linear(x, torch.randn(5, 4)).dtype == torch.bfloat16


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_share_that_is_kept_and_its_scale(p):
    output = Dropout(p).train()(torch.ones(SHAPE))
    kept = (output != 0).float().mean().item()
    deviation = (p * (1 - p) / SHAPE.numel()) ** 0.5
    assert abs(kept - (1 - p)) < 4 * deviation + 1 / LEVELS
    torch.testing.assert_close(
        output[output != 0].unique(), torch.tensor([1 / (1 - p)]), rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 997])
def test_elements_are_kept_independently_of_their_neighbors(distance):
    """Four elements share a random number: they must not share their fate."""
    mask = (random_bits(SHAPE) >= LEVELS // 4).flatten().float()
    both = (mask[:-distance] * mask[distance:]).mean().item()
    assert abs(both - 1 / 16) < 4 * (1 / 16 * 15 / 16 / mask.numel()) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_seed_decides_the_mask_and_the_gradient_goes_where_the_value_went(dtype):
    dropout, x = Dropout(0.25).train(), torch.randn(40, 50).to(dtype).requires_grad_()
    outputs = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        outputs.append(dropout(x))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])
    assert outputs[0].dtype == dtype
    (gradient,) = torch.autograd.grad(outputs[0].sum(), x)
    torch.testing.assert_close(gradient * x, outputs[0])
    assert dropout.eval()(x) is x
