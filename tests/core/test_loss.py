"""The loss against torch's cross-entropy in double precision, finite differences and its definition in loops."""

import math

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


@SMOOTHING
def test_the_loss_is_its_definition_in_loops(smoothing):
    hidden, weight, targets = drawn()
    expected = 0.0
    for row, target in zip(hidden.tolist(), targets.tolist(), strict=True):
        logits = [sum(a * b for a, b in zip(row, column, strict=True)) for column in weight.tolist()]
        total = sum(math.exp(logit) for logit in logits)
        for entry, logit in enumerate(logits):
            wanted = smoothing / VOCABULARY + (1 - smoothing) * (entry == target)
            expected -= wanted * math.log(math.exp(logit) / total)
    loss, _ = label_smoothed_cross_entropy(hidden, weight, targets, smoothing)
    assert loss.item() == pytest.approx(expected, rel=1e-5)


@SMOOTHING
def test_gradients_are_finite_differences(smoothing):
    hidden, weight, targets = drawn(torch.float64)
    loss, _ = label_smoothed_cross_entropy(hidden, weight, targets, smoothing)
    loss.backward()
    epsilon = 1e-3
    for inputs in (hidden, weight):
        for index in range(0, inputs.numel(), 5):
            values = []
            for step in (epsilon, -epsilon):
                with torch.no_grad():
                    inputs.view(-1)[index] += step
                    values.append(label_smoothed_cross_entropy(hidden, weight, targets, smoothing)[0].item())
                    inputs.view(-1)[index] -= step
            slope = (values[0] - values[1]) / (2 * epsilon)
            assert inputs.grad.view(-1)[index].item() == pytest.approx(slope, abs=5e-3)


def test_gradients_follow_what_is_done_with_the_loss():
    hidden, weight, targets = drawn()
    loss, _ = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    plain = torch.autograd.grad(loss, (hidden, weight))
    loss, _ = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    tripled = torch.autograd.grad(3 * loss, (hidden, weight))
    for one, three in zip(plain, tripled, strict=True):
        torch.testing.assert_close(three, 3 * one)


def test_the_likelihood_is_not_smoothed_and_has_no_gradient():
    hidden, weight, targets = drawn()
    loss, plain = label_smoothed_cross_entropy(hidden, weight, targets, 0.0)
    smoothed_loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, 0.3)
    assert likelihood.item() == plain.item() == loss.item() != smoothed_loss.item()
    assert smoothed_loss.requires_grad
    assert not likelihood.requires_grad


def test_the_loss_is_least_where_the_smoothed_targets_are_predicted():
    smoothing, targets = 0.2, torch.arange(VOCABULARY)
    wanted = torch.full((VOCABULARY, VOCABULARY), smoothing / VOCABULARY) + (1 - smoothing) * torch.eye(VOCABULARY)
    hidden = wanted.log().requires_grad_()
    loss, _ = label_smoothed_cross_entropy(hidden, torch.eye(VOCABULARY), targets, smoothing)
    loss.backward()
    assert loss.item() == pytest.approx(-(wanted * wanted.log()).sum().item(), rel=1e-6)
    torch.testing.assert_close(hidden.grad, torch.zeros_like(hidden), rtol=0, atol=1e-6)


def test_great_logits_do_not_overflow():
    hidden, weight, targets = drawn()
    hidden = (hidden.detach() * 1000).requires_grad_()
    loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    loss.backward()
    torch.testing.assert_close(loss, torch_loss(hidden, weight, targets, 0.1))
    assert all(x.isfinite().all() for x in (likelihood, hidden.grad, weight.grad))


def test_the_arguments_are_left_as_they_were():
    hidden, weight, targets = drawn()
    before = hidden.clone(), weight.clone(), targets.clone()
    loss, _ = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    loss.backward()
    assert all(torch.equal(now, then) for now, then in zip((hidden, weight, targets), before, strict=True))


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


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_of_less_than_float32_has_a_loss_of_float32(dtype):
    hidden, weight, targets = drawn()
    exact = torch_loss(hidden, weight, targets, 0.1)
    low = [x.detach().to(dtype).requires_grad_() for x in (hidden, weight)]
    loss, likelihood = label_smoothed_cross_entropy(*low, targets, 0.1)
    assert loss.dtype == likelihood.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), rel=0.01)
    for gradient, wanted in zip(
        torch.autograd.grad(loss, low), torch.autograd.grad(exact, (hidden, weight)), strict=True
    ):
        assert gradient.dtype == dtype
        assert (gradient - wanted).norm() < 0.02 * wanted.norm()
