"""The loss against torch's cross-entropy in double precision; learning rates computed by hand."""

from math import cos, pi

import pytest
import torch
import torch.nn.functional as F

from nmt import kernels
from nmt.config import ENDING, NMTError, OptimConfig
from nmt.training import loss as loss_module
from nmt.training.loss import label_smoothed_cross_entropy
from nmt.training.schedule import learning_rate, noam

TOKENS = 11
WIDTH = 6
VOCABULARY = 9


@pytest.fixture(autouse=True)
def chunks_of_any_size(monkeypatch):
    monkeypatch.setattr(loss_module, "FEWEST_ROWS", 1)


def drawn(tokens=TOKENS, dtype=torch.float32):
    """Hidden states, the weight of the output layer, and targets."""
    torch.manual_seed(5)
    hidden = torch.randn(tokens, WIDTH).to(dtype)
    weight = torch.randn(VOCABULARY, WIDTH)
    targets = torch.randint(VOCABULARY, (tokens,))
    return hidden.requires_grad_(), weight.requires_grad_(), targets


def torch_loss(hidden, weight, targets, smoothing, bias=0.0):
    logits = hidden @ weight.T + bias
    return F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)


def in_double_precision(*tensors):
    return [tensor.detach().double().requires_grad_() for tensor in tensors]


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize(
    "chunk", [1, 4 * VOCABULARY, 2**23], ids=["one row", "four rows", "all rows"]
)
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_loss_and_gradients_equal_torchs_cross_entropy(monkeypatch, chunk, smoothing, with_bias):
    monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", chunk)
    hidden, weight, targets = drawn()
    bias = [torch.randn(VOCABULARY, requires_grad=True)] if with_bias else []
    loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, smoothing, *bias)
    gradients = torch.autograd.grad(2 * loss, (hidden, weight, *bias))

    exact_hidden, exact_weight, *exact_bias = in_double_precision(hidden, weight, *bias)
    expected = torch_loss(exact_hidden, exact_weight, targets, smoothing, *exact_bias)
    exact_gradients = torch.autograd.grad(2 * expected, (exact_hidden, exact_weight, *exact_bias))
    torch.testing.assert_close(loss.double(), expected, rtol=1e-6, atol=0)
    nll = torch_loss(exact_hidden, exact_weight, targets, 0, *exact_bias)
    torch.testing.assert_close(likelihood.double(), nll, rtol=1e-6, atol=0)
    for gradient, exact in zip(gradients, exact_gradients, strict=True):
        torch.testing.assert_close(gradient.double(), exact, rtol=1e-5, atol=4e-6)


@pytest.mark.parametrize("autocast", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("is_gpu", [False, True], ids=["as on a CPU", "as on a GPU"])
@pytest.mark.parametrize("exponent", [10, 20, 30, 40])
def test_chunk_size_and_device_do_not_matter(monkeypatch, exponent, is_gpu, autocast):
    monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", 2**exponent)
    monkeypatch.setattr("nmt.kernels.on_cpu", lambda x: not is_gpu)
    hidden, weight, targets = drawn(300)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    gradients = torch.autograd.grad(loss, (hidden, weight))

    exact = in_double_precision(hidden, weight)
    expected = torch_loss(*exact, targets, 0.1)
    exact_gradients = torch.autograd.grad(expected, exact)
    tolerance = 1e-2 if autocast else 1e-6
    assert loss.item() == pytest.approx(expected.item(), rel=tolerance)
    assert likelihood.item() == pytest.approx(torch_loss(*exact, targets, 0).item(), rel=tolerance)
    for gradient, whole in zip(gradients, exact_gradients, strict=True):
        assert (gradient - whole).norm() < (2e-2 if autocast else 1e-5) * whole.norm()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [1, 2, VOCABULARY - 1])
def test_the_gradient_of_a_large_matrix_is_computed_in_slices(monkeypatch, rows, dtype):
    """Each slice has `rows` rows of the matrix, and the last one the rest."""
    monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", 4 * VOCABULARY)
    hidden, weight, targets = drawn()
    gradients = []
    for numbers in (loss_module.SLICE_NUMBERS, rows * WIDTH):
        monkeypatch.setattr(loss_module, "SLICE_NUMBERS", numbers)
        with torch.autocast("cpu", dtype, enabled=dtype == torch.bfloat16):
            loss, _ = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
        gradients.append(torch.autograd.grad(loss, (hidden, weight)))
    for whole, in_slices in zip(*gradients, strict=True):
        torch.testing.assert_close(in_slices, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("frozen", [[0], [1], [2], [0, 1], [0, 2], [1, 2]])
def test_a_frozen_input_costs_no_gradient_and_changes_no_other(monkeypatch, frozen):
    monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", 4 * VOCABULARY)
    products = []
    product = loss_module.weight_gradient

    def spied(*arguments):
        products.append(arguments)
        return product(*arguments)

    monkeypatch.setattr(loss_module, "weight_gradient", spied)
    results = []
    for frozen_now in ([], frozen):
        hidden, weight, targets = drawn()
        bias = torch.randn(VOCABULARY, requires_grad=True)
        inputs = [hidden, weight, bias]
        for number in frozen_now:
            inputs[number].requires_grad_(False)
        products.clear()
        loss, _ = label_smoothed_cross_entropy(hidden, weight, targets, 0.1, bias)
        loss.backward()
        assert bool(products) == weight.requires_grad
        results.append([loss.detach(), *(tensor.grad for tensor in inputs)])
    for number, (expected, actual) in enumerate(zip(*results, strict=True)):
        if number - 1 in frozen:
            assert actual is None
        else:
            assert torch.equal(actual, expected)


def test_large_logits_do_not_overflow():
    hidden, weight, targets = drawn()
    hidden = (hidden.detach() * 1000).requires_grad_()
    loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
    loss.backward()
    torch.testing.assert_close(loss, torch_loss(hidden, weight, targets, 0.1))
    assert likelihood.isfinite()
    assert hidden.grad.isfinite().all()
    assert weight.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_mixed_precision_multiplies_in_bfloat16_and_sums_in_float32(monkeypatch, dtype):
    """The gradient of the weight is as exact in many chunks as in one product."""
    hidden, weight, targets = drawn(3000, dtype)
    product = kernels.linear
    products = set()

    def spied(x, matrix, bias=None):
        products.add((x.dtype, matrix.dtype))
        return product(x, matrix, bias)

    monkeypatch.setattr(kernels, "linear", spied)
    gradients = []
    for chunk in (VOCABULARY, 2**23):
        monkeypatch.setitem(loss_module.CHUNK_LOGITS, "cpu", chunk)
        with torch.autocast("cpu", torch.bfloat16):
            loss, likelihood = label_smoothed_cross_entropy(hidden, weight, targets, 0.1)
        assert loss.dtype == likelihood.dtype == torch.float32
        gradients.append(torch.autograd.grad(loss, (hidden, weight)))
    assert products == {(torch.bfloat16, torch.bfloat16)}
    assert [gradient.dtype for gradient in gradients[0]] == [dtype, torch.float32]

    exact_loss = torch_loss(hidden.float(), weight, targets, 0.1)
    exact_gradients = torch.autograd.grad(exact_loss, (hidden, weight))
    assert loss.item() == pytest.approx(exact_loss.item(), rel=0.01)
    for in_chunks, whole, exact in zip(*gradients, exact_gradients, strict=True):
        assert (in_chunks - whole).norm() < 0.005 * whole.norm()
        assert (whole - exact).norm() < 0.02 * exact.norm()


@pytest.mark.parametrize(
    ("step", "d_model", "warmup", "rate"),
    [
        (1, 512, 4000, 1.746928107421711e-07),
        (4000, 512, 4000, 6.987712429686843e-04),
        (16_000, 512, 4000, 3.493856214843422e-04),
    ],
)
def test_equation_3_of_the_base_model_computed_by_hand(step, d_model, warmup, rate):
    assert noam(step, d_model, warmup) == pytest.approx(rate, rel=1e-9)


@pytest.mark.parametrize(
    ("step", "d_model", "warmup", "rate"),
    [(4000, 1024, 4000, 4.941058844e-04), (2, 16, 4, 0.0625), (25, 16, 4, 0.05)],
)
def test_equation_3_of_other_models_computed_by_hand(step, d_model, warmup, rate):
    assert noam(step, d_model, warmup) == pytest.approx(rate)


def rates(**keys: object) -> list[float]:
    """The learning rates of ten updates, of which four are warm-up."""
    decay_steps = 10 if keys.get("schedule") in ENDING else None
    optim = OptimConfig(warmup=4, decay_steps=decay_steps, **keys)
    return [learning_rate(optim, 64, step) for step in range(1, 11)]


def test_learning_rate_sets_the_peak_of_noam():
    default = rates()
    other = rates(learning_rate=3e-4)
    assert max(other) == other[3] == pytest.approx(3e-4)
    assert other == pytest.approx([rate * 3e-4 / default[3] for rate in default])


@pytest.mark.parametrize("schedule", ["constant", *ENDING])
def test_all_schedules_share_the_warm_up(schedule):
    warmup = rates()[:4]
    assert rates(schedule=schedule)[:4] == pytest.approx(warmup)
    doubled = [2 * rate for rate in warmup]
    assert rates(schedule=schedule, factor=2)[:4] == pytest.approx(doubled)


def test_constant_and_linear_schedule_computed_by_hand():
    assert rates(schedule="constant", learning_rate=1.0)[3:] == [1.0] * 7
    sevenths = [n / 7 for n in range(7, 0, -1)]
    assert rates(schedule="linear", learning_rate=1.0)[3:] == pytest.approx(sevenths)


def test_cosine_schedule_computed_by_hand():
    cosine = rates(schedule="cosine", learning_rate=1.0)
    assert cosine[3] == 1.0
    assert cosine[6] + cosine[7] == pytest.approx(1.0)  # symmetric about the middle, 7.5
    assert cosine[9] == pytest.approx((1 + cos(pi * 6 / 7)) / 2)


def changed_rates(changes: list[list[int]] | None, **keys: object) -> list[float]:
    """The rates up to the end of a schedule whose end changes: [update, new end]."""
    keys = {"warmup": 4, "decay_steps": 20, "schedule": "linear", "learning_rate": 1.0} | keys
    optim = OptimConfig(decay_changes=changes, **keys)
    return [learning_rate(optim, 64, step) for step in range(1, optim.end + 1)]


CHANGES = [
    [[8, 12]],
    [[8, 60]],
    [[5, 30], [10, 14], [12, 40]],
    [[2, 30]],
]


@pytest.mark.parametrize("schedule", ENDING)
@pytest.mark.parametrize("changes", CHANGES)
def test_a_new_end_keeps_the_progress_of_the_decay(changes, schedule):
    rates = changed_rates(changes, schedule=schedule)
    first_update, _ = changes[0]
    _, end = changes[-1]
    assert rates[:first_update] == changed_rates(None, schedule=schedule)[:first_update]
    assert rates[:4] == [0.25, 0.5, 0.75, 1.0]
    assert rates[3:] == sorted(rates[3:], reverse=True)
    assert len(rates) == end
    assert 0 < rates[-1] < 0.2


@pytest.mark.parametrize("changes", CHANGES)
def test_a_linear_schedule_falls_by_equal_steps_after_a_change(changes):
    """It would reach 0 one update after the end."""
    rates = changed_rates(changes)
    update, end = changes[-1]
    begin = max(update, 4)
    line = []
    for step in range(begin, end + 1):
        line.append(rates[begin - 1] * (end + 1 - step) / (end + 1 - begin))
    assert rates[begin - 1 :] == pytest.approx(line)


def test_warm_up_stops_where_it_would_take_most_of_the_remaining_updates():
    assert changed_rates([[2, 5]]) == pytest.approx([0.25, 0.5, 0.375, 0.25, 0.125])
    # A machine that becomes faster again does not raise the rate again.
    sixths = [0.375 * n / 6 for n in range(6, 0, -1)]
    assert changed_rates([[2, 5], [3, 8]]) == pytest.approx([0.25, 0.5, *sixths])


@pytest.mark.parametrize("warmup", range(3, 60, 7))
def test_cutting_the_warm_up_keeps_the_bits_of_earlier_rates(warmup):
    keys = {"warmup": warmup, "decay_steps": 100, "learning_rate": 0.0007}
    for update in range(1, warmup):
        cut = changed_rates([[update, update + 1]], **keys)
        assert cut[:update] == changed_rates(None, **keys)[:update]


@pytest.mark.parametrize(
    "changes",
    [
        [[8]],
        [[8, 8]],
        [[9, 30], [8, 30]],
        [[8, 30], [8, 40]],
        [[0, 9]],
        [[1, 2, 3]],
    ],
)
def test_impossible_changes_of_the_end_are_rejected(changes):
    with pytest.raises(NMTError, match=r"optim\.decay_changes"):
        changed_rates(changes)
