"""Adafactor against its paper, and the rounding of bfloat16 weights."""

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor

from nmt.config import ModelConfig
from nmt.model import Transformer
from nmt.training import rounding
from nmt.training.adafactor import adafactor
from nmt.training.module import adam
from nmt.training.reduction import add_gradients
from nmt.training.rounding import RoundedAdafactor, RoundsAtRandom, rounded

OPTIONS = {"lr": 1e-3, "betas": (0.9, 0.98), "eps": 1e-9, "weight_decay": 0.1, "fused": True}
MAKERS = {"adam": adam, "adafactor": adafactor}


def small_model(dtype: torch.dtype = torch.float32) -> Transformer:
    torch.manual_seed(1)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 24, "heads": 2}
    return Transformer(ModelConfig(name="t", **sizes), 50).to(dtype)


def give_gradients(model: Transformer, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        # As small as those of a large model, and of different sizes in each row and column.
        gradient = 1e-5 * torch.randn(parameter.shape, generator=generator)
        gradient *= torch.logspace(-2, 0, parameter.shape[-1])
        if gradient.dim() > 1:
            gradient *= torch.logspace(-1, 0, len(gradient))[:, None]
            gradient[3] = 0  # a word that no sentence has
        parameter.grad = gradient.to(parameter.dtype)


def update_of_the_paper(gradient: Tensor, means: list[Tensor], step: int) -> Tensor:
    """Algorithms 4 and 5 of Shazeer and Stern 2018, without the scale of the weights."""
    squares = gradient.double().square()
    decay = 1 - step**-0.8
    if gradient.dim() == 1:
        means[0] = decay * means[0] + (1 - decay) * squares
        estimate = means[0]
    else:
        means[0] = decay * means[0] + (1 - decay) * squares.sum(1)
        means[1] = decay * means[1] + (1 - decay) * squares.sum(0)
        estimate = torch.outer(means[0], means[1]) / means[0].sum()
    update = gradient.double() / estimate.clamp(min=1e-30).sqrt()
    return update / max(1, update.square().mean().sqrt())


def test_updates_equal_those_of_the_paper():
    model = small_model()
    optimizer = adafactor(model, "32-true", **OPTIONS)
    means: dict[str, list[Tensor]] = {name: [0.0, 0.0] for name, _ in model.named_parameters()}
    for step in range(1, 5):
        give_gradients(model, step)
        expected = {}
        for name, parameter in model.named_parameters():
            update = update_of_the_paper(parameter.grad, means[name], step)
            decay = 1 - OPTIONS["lr"] * OPTIONS["weight_decay"]
            expected[name] = parameter.double() * decay - OPTIONS["lr"] * update
        optimizer.step()
        for name, parameter in model.named_parameters():
            # The norms of layers start at 1, and torch scales updates above that.
            torch.testing.assert_close(parameter.double(), expected[name], rtol=1e-5, atol=1e-6)


def test_the_state_of_a_matrix_is_two_vectors():
    model = small_model()
    optimizer = adafactor(model, "32-true", **OPTIONS)
    give_gradients(model, 0)
    optimizer.step()
    numbers = sum(tensor.numel() for state in optimizer.state.values() for tensor in state.values())
    assert numbers < 0.15 * sum(parameter.numel() for parameter in model.parameters())


def test_rounding_takes_a_neighbor_and_keeps_the_mean():
    generator = torch.Generator().manual_seed(1)
    numbers = torch.randn(50, generator=generator) * torch.logspace(-30, 30, 50)
    draws = torch.stack([rounded(numbers, generator) for _ in range(4000)]).double()
    nearest = numbers.bfloat16().double()
    step = (numbers.double().abs().log2().floor() - 7).exp2()
    assert ((draws - numbers).abs() < step).all()
    # At most one half in units of the last place, times the error of a mean of 4,000.
    assert ((draws.mean(0) - numbers) / step).abs().max() < 5 * 0.5 / 4000**0.5
    assert (nearest != numbers).any()


def test_rounding_keeps_what_bfloat16_holds():
    numbers = torch.tensor([0.0, -0.0, 1.0, -1.5, 3e-39, torch.inf, -torch.inf]).bfloat16().float()
    generator = torch.Generator().manual_seed(1)
    for _ in range(100):
        assert torch.equal(rounded(numbers, generator).float(), numbers)


@pytest.mark.parametrize("piece", [7, 2**24])
@pytest.mark.parametrize("name", MAKERS)
def test_an_update_is_rounded_to_a_neighbor_of_the_exact_update(name, piece, monkeypatch):
    """In pieces of any size."""
    monkeypatch.setattr(rounding, "PIECE", piece)
    low = small_model(torch.bfloat16)
    exact = copy.deepcopy(low).float()
    for model, precision in ((low, "bf16-true"), (exact, "32-true")):
        optimizer = MAKERS[name](model, precision, **OPTIONS)
        give_gradients(low, 1)
        for parameter, source in zip(model.parameters(), low.parameters(), strict=True):
            parameter.grad = source.grad.to(parameter.dtype)
        optimizer.step()
    for actual, expected in zip(low.parameters(), exact.parameters(), strict=True):
        spacing = (expected.abs().log2().floor() - 7).exp2()
        assert ((actual.float() - expected).abs() <= 1.001 * spacing).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
def test_small_updates_of_bfloat16_weights_add_up(name):
    """Rounded to the nearest number, no weight near 1 would change by 0.001."""
    exact = small_model()
    low = small_model(torch.bfloat16)
    optimizers = [
        MAKERS[name](exact, "32-true", **OPTIONS),
        MAKERS[name](low, "bf16-true", **OPTIONS),
    ]
    assert isinstance(optimizers[1], RoundsAtRandom)
    start = small_model()
    for step in range(60):
        for model, optimizer in zip((exact, low), optimizers, strict=True):
            give_gradients(model, step % 3)
            optimizer.step()
    before = torch.nn.utils.parameters_to_vector(start.parameters())
    expected = torch.nn.utils.parameters_to_vector(exact.parameters()) - before
    actual = torch.nn.utils.parameters_to_vector(low.float().parameters()) - before
    # Every weight also has the error of the last rounding.
    assert torch.cosine_similarity(actual, expected, dim=0) > 0.97
    assert actual.norm().item() == pytest.approx(expected.norm().item(), rel=0.05)
    assert all(parameter.grad is None for parameter in low.parameters())
    sizes = {
        (key, value.dtype)
        for state in optimizers[1].state.values()
        for key, value in state.items()
        if key != "step"
    }
    low_state = {key for key, dtype in sizes if dtype == torch.bfloat16}
    assert low_state == ({"exp_avg", "exp_avg_sq"} if name == "adam" else set())


@pytest.mark.parametrize("precision", ["32-true", "bf16-true"])
@pytest.mark.parametrize("name", MAKERS)
def test_a_saved_state_resumes_exactly(name, precision):
    dtype = torch.bfloat16 if precision == "bf16-true" else torch.float32
    model = small_model(dtype)
    optimizer = MAKERS[name](model, precision, **OPTIONS)
    for step in range(3):
        give_gradients(model, step)
        optimizer.step()
    resumed_model = copy.deepcopy(model)
    resumed = MAKERS[name](resumed_model, precision, **OPTIONS)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for step in (8, 9):
        give_gradients(model, step)
        give_gradients(resumed_model, step)
        optimizer.step()
        resumed.step()
    for parameter, other in zip(model.parameters(), resumed_model.parameters(), strict=True):
        assert torch.equal(parameter, other)


def test_hooks_of_gradients_survive_an_update():
    """They exchange the gradients of several processes."""
    model = small_model(torch.bfloat16)
    optimizer = RoundedAdafactor([*model.parameters()], lr=0.01)
    calls = []
    model.output.weight.register_post_accumulate_grad_hook(calls.append)
    for _ in range(2):
        model.output.weight.float().sum().backward()
        add_gradients([None], [None])
        optimizer.step()
    assert len(calls) == 2


RUN = (
    "trainer.max_steps=30",
    "validation.every_steps=15",
    "validation.bleu_sentences=0",
    "checkpoints.every_steps=15",
    "trainer.gradient_clip_val=0.5",
    "batching.micro_batches=4",
)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["32-true", "bf16-true"])
def test_adafactor_learns_and_resumes_to_the_same_bits(
    toy, nmt, finished, metrics, training_state, precision
):
    options = [*toy, *RUN, "optim.optimizer=adafactor", f"trainer.precision={precision}"]
    assert nmt("train", *options, "run=whole").code == 0
    assert nmt("train", *options, "trainer.max_steps=13", "run=parts").code == 0
    assert nmt("train", *options, "run=parts").code == 0
    expected = training_state(Path("whole"))
    torch.testing.assert_close(training_state(Path("parts")), expected, rtol=0, atol=0)
    rows = [row for row in metrics(Path("whole")) if row["loss"]]
    adams = [row for row in metrics(finished) if row["loss"]]
    # Adam's learning rate suits Adafactor.
    assert float(rows[-1]["loss"]) < 0.85 * float(rows[0]["loss"])
    assert float(rows[5]["loss"]) == pytest.approx(float(adams[5]["loss"]), rel=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "adafactor"])
def test_two_processes_train_the_same_weights_in_bfloat16(
    toy, nmt, train_on, training_state, optimizer
):
    options = [*toy, *RUN, f"optim.optimizer={optimizer}", "trainer.precision=bf16-true"]
    assert nmt("train", *options, "run=one").code == 0
    train_on(2, *options, "run=two")
    expected = training_state(Path("one"))
    torch.testing.assert_close(training_state(Path("two")), expected, rtol=0, atol=0)
