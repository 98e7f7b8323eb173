"""Linear maps and their gradients equal torch's; dropout keeps the right share of elements."""

import pytest
import torch
import torch.nn.functional as F

from nmt.kernels import Dropout, has_fast_product, linear
from nmt.kernels.dropout import LEVELS, random_bits
from nmt.kernels.products import ONEDNN

needs_onednn = pytest.mark.skipif(not ONEDNN, reason="this processor has no oneDNN product")
SHAPE = torch.Size((503, 997))


@pytest.fixture(autouse=True)
def use_fast_products_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.kernels.products.SMALLEST_PRODUCT", 0)
    torch.manual_seed(1)


@pytest.mark.parametrize("rows", [(1,), (2, 3, 5), (1000,)])
@pytest.mark.parametrize(("inputs", "outputs"), [(16, 48), (48, 16), (1, 3)])
@pytest.mark.parametrize("biased", [True, False])
def test_linear_and_its_gradients_equal_those_of_torch(rows, inputs, outputs, biased):
    shapes = [(*rows, inputs), (outputs, inputs)]
    if biased:
        shapes.append((outputs,))
    operands = [torch.randn(shape, requires_grad=True) for shape in shapes]
    ours = linear(*operands)
    reference = F.linear(*operands)
    torch.testing.assert_close(ours, reference, rtol=1e-5, atol=1e-3)
    upstream = torch.randn_like(reference)
    gradients = torch.autograd.grad(ours, operands, upstream)
    expected = torch.autograd.grad(reference, operands, upstream)
    torch.testing.assert_close(gradients, expected, rtol=1e-5, atol=1e-3)


@needs_onednn
def test_the_fast_product_is_used_only_for_float32_on_cpus():
    x = torch.randn(3, 4)
    assert has_fast_product(x, x)
    for other in (x.double(), x.bfloat16(), x.to("meta")):
        assert not has_fast_product(other, x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not has_fast_product(x, x)
        assert linear(x, torch.randn(5, 4)).dtype == torch.bfloat16


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_keeps_its_share_and_scales_it_up(p):
    output = Dropout(p).train()(torch.ones(SHAPE))
    kept = (output != 0).float().mean().item()
    deviation = (p * (1 - p) / SHAPE.numel()) ** 0.5
    assert abs(kept - (1 - p)) < 4 * deviation + 1 / LEVELS
    scale = output[output != 0].unique()
    torch.testing.assert_close(scale, torch.tensor([1 / (1 - p)]), rtol=1e-4, atol=0)


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 997])
def test_elements_are_kept_independently_of_their_neighbors(distance):
    """Four elements share a random number, but not their bits of it."""
    mask = (random_bits(SHAPE) >= LEVELS // 4).flatten().float()
    both = (mask[:-distance] * mask[distance:]).mean().item()
    assert abs(both - 1 / 16) < 4 * (1 / 16 * 15 / 16 / mask.numel()) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_seed_determines_the_mask_of_values_and_gradients(dtype):
    dropout = Dropout(0.25).train()
    x = torch.randn(40, 50).to(dtype).requires_grad_()
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
