"""Our linear maps are torch's, and so are their gradients."""

import pytest
import torch
import torch.nn.functional as F

from nmt.config import ModelConfig
from nmt.kernels import has_fast_product, linear, outer_product, product
from nmt.kernels.products import ONEDNN
from nmt.model import FeedForward


@pytest.fixture(autouse=True)
def however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nmt.kernels.products.SMALLEST_PRODUCT", 0)


needs_onednn = pytest.mark.skipif(not ONEDNN, reason="this processor has no oneDNN product")


def leaves(*shapes: tuple[int, ...]) -> list[torch.Tensor]:
    torch.manual_seed(5)
    return [torch.randn(shape, requires_grad=True) for shape in shapes]


def assert_same_with_gradients(ours, torchs, arguments: list[torch.Tensor]) -> None:
    torch.manual_seed(6)
    expected = torchs(*arguments)
    above = torch.randn(expected.shape)
    gradients = torch.autograd.grad(expected, arguments, above)
    actual = ours(*arguments)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(torch.autograd.grad(actual, arguments, above), gradients, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("rows", [(1,), (3, 7), (2, 3, 5), (1000,)])
@pytest.mark.parametrize(("inputs", "outputs"), [(16, 48), (48, 16), (1, 3)])
@pytest.mark.parametrize("biased", [True, False])
def test_linear_is_torchs_with_its_gradients(rows, inputs, outputs, biased):
    arguments = leaves((*rows, inputs), (outputs, inputs), *([(outputs,)] if biased else []))
    assert_same_with_gradients(linear, F.linear, arguments)


@pytest.mark.parametrize("rows", [(1,), (4, 9), (700,)])
def test_feed_forward_is_torchs_with_its_gradients(rows):
    ours = FeedForward(ModelConfig(name="tiny", d_model=8, d_ff=32, heads=2))
    names = [name for name, _ in ours.named_parameters()]
    assert_same_with_gradients(
        lambda x, *weights: torch.func.functional_call(ours, dict(zip(names, weights, strict=True)), x),
        lambda x, w1, b1, w2, b2: F.linear(F.relu(F.linear(x, w1, b1)), w2, b2),
        leaves((*rows, 8), (32, 8), (32,), (8, 32), (8,)),
    )


@needs_onednn
def test_the_fast_product_is_taken_where_it_is_right_and_only_there():
    x = torch.randn(3, 4)
    assert has_fast_product(x, x)
    assert not has_fast_product(x.double(), x)
    assert not has_fast_product(x.bfloat16(), x)
    assert not has_fast_product(x.to("meta"), x)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not has_fast_product(x, x)
        assert linear(x, torch.randn(5, 4)).dtype == torch.bfloat16


@needs_onednn
@pytest.mark.parametrize(("rows", "inputs", "outputs"), [(9, 4, 7), (9, 7, 4), (1, 1, 1), (300, 64, 200)])
def test_products_of_any_strides(rows, inputs, outputs):
    x, weight, above = torch.randn(inputs, rows).t(), torch.randn(inputs, outputs).t(), torch.randn(rows, outputs)
    torch.testing.assert_close(product(x, weight), x @ weight.t(), rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(outer_product(above, x), above.t() @ x, rtol=1e-5, atol=1e-3)
