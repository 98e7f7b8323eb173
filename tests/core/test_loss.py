"""The loss against torch's cross-entropy in double precision, finite differences and its definition in loops."""

import pytest
import torch
import torch.nn.functional as F

from nmt.training import loss as loss_module
from nmt.training.loss import label_smoothed_cross_entropy

TOKENS, WIDTH, VOCABULARY = 11, 6, 9
PIECES = pytest.mark.parametrize("chunk", [1, 4 * VOCABULARY, 2**23], ids=["one row", "four rows", "all rows"])
SMOOTHING = pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])


def drawn(dtype=torch.float32):
    torch.manual_seed(5)
    hidden, weight = torch.randn(TOKENS, WIDTH, dtype=dtype), torch.randn(VOCABULARY, WIDTH, dtype=dtype)
    return hidden.requires_grad_(), weight.requires_grad_(), torch.randint(VOCABULARY, (TOKENS,))


def torch_loss(hidden, weight, targets, smoothing):
    return F.cross_entropy(hidden @ weight.T, targets, reduction="sum", label_smoothing=smoothing)


@PIECES
@SMOOTHING
def test_loss_and_gradients_are_those_of_torchs_cross_entropy(monkeypatch, chunk, smoothing):
    monkeypatch.setattr(loss_module, "CHUNK_LOGITS", chunk)
    hidden, weight, targets = drawn()
    loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, smoothing)
    gradients = torch.autograd.grad(loss, (hidden, weight))

    exact_hidden, exact_weight = (x.detach().double().requires_grad_() for x in (hidden, weight))
    exact = torch_loss(exact_hidden, exact_weight, targets, smoothing)
    exact_gradients = torch.autograd.grad(exact, (exact_hidden, exact_weight))
    torch.testing.assert_close(loss.double(), exact, rtol=1e-6, atol=0)
    torch.testing.assert_close(
        likelihood.double(), torch_loss(exact_hidden, exact_weight, targets, 0), rtol=1e-6, atol=0
    )
    for gradient, exact_gradient in zip(gradients, exact_gradients, strict=True):
        torch.testing.assert_close(gradient.double(), exact_gradient, rtol=1e-5, atol=2e-6)


@PIECES
@SMOOTHING
def test_with_a_bias_too(monkeypatch, chunk, smoothing):
    monkeypatch.setattr(loss_module, "CHUNK_LOGITS", chunk)
    hidden, weight, targets = drawn()
    bias = torch.randn(VOCABULARY, requires_grad=True)
    loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, smoothing, bias)
    gradients = torch.autograd.grad(2 * loss, (hidden, weight, bias))
    exact = [x.detach().double().requires_grad_() for x in (hidden, weight, bias)]
    logits = exact[0] @ exact[1].T + exact[2]
    expected = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    torch.testing.assert_close(
        likelihood.double(), F.cross_entropy(logits, targets, reduction="sum"), rtol=1e-6, atol=0
    )
    for gradient, wanted in zip(gradients, torch.autograd.grad(2 * expected, exact), strict=True):
        torch.testing.assert_close(gradient.double(), wanted, rtol=1e-5, atol=4e-6)


def test_great_logits_do_not_overflow():
    hidden, weight, targets = drawn()
    hidden = (hidden.detach() * 1000).requires_grad_()
    loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    loss.backward()
    torch.testing.assert_close(loss, torch_loss(hidden, weight, targets, 0.1))
    assert all(x.isfinite().all() for x in (likelihood, hidden.grad, weight.grad))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mixed_precision_gives_the_same_up_to_its_rounding(dtype):
    hidden, weight, targets = drawn()
    exact = torch.autograd.grad(torch_loss(hidden, weight, targets, 0.1), (hidden, weight))
    with torch.autocast("cpu", torch.bfloat16):
        mixed = hidden.to(dtype)
        loss, _ = label_smoothed_cross_entropy(mixed, weight, targets, 0.1)
    gradients = torch.autograd.grad(loss, (hidden, weight))
    assert loss.item() == pytest.approx(torch_loss(hidden, weight, targets, 0.1).item(), rel=0.01)
    for gradient, exact_gradient in zip(gradients, exact, strict=True):
        assert gradient.dtype == torch.float32
        assert (gradient - exact_gradient).norm() < 0.02 * exact_gradient.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_mixed_precision_products_are_of_its_type_and_sums_of_float32(monkeypatch, dtype):
    """However many pieces the gradient of the weight is summed over, it is as exact as one product."""
    torch.manual_seed(5)
    hidden, weight = torch.randn(3000, WIDTH).to(dtype).requires_grad_(), torch.randn(VOCABULARY, WIDTH)
    weight.requires_grad_()
    targets = torch.randint(VOCABULARY, (3000,))
    product, products = loss_module.linear, set()

    def spied(x, matrix, bias=None):
        products.add((x.dtype, matrix.dtype))
        return product(x, matrix, bias)

    monkeypatch.setattr(loss_module, "linear", spied)
    found = []
    for chunk in (VOCABULARY, 2**23):
        monkeypatch.setattr(loss_module, "CHUNK_LOGITS", chunk)
        with torch.autocast("cpu", torch.bfloat16):
            loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
        assert loss.dtype == likelihood.dtype == torch.float32
        found.append(torch.autograd.grad(loss, (hidden, weight)))
    assert products == {(torch.bfloat16, torch.bfloat16)}
    assert [gradient.dtype for gradient in found[0]] == [dtype, torch.float32]
    for pieces, whole in zip(*found, strict=True):
        assert (pieces - whole).norm() < 0.005 * whole.norm()
