"""Muon beside torch's own, a singular value decomposition, and Adam."""

import copy

import pytest
import torch
from torch import Tensor, nn
from waits import Operations

from nmt.config import ModelConfig
from nmt.model import Transformer
from nmt.training.muon import (
    ITERATIONS,
    MOMENTUM,
    ROOT_MEAN_SQUARE,
    Muon,
    layer_matrices,
    nearly_orthogonal,
)

OPTIONS = {"lr": 0.01, "betas": (0.9, 0.98), "eps": 1e-9}


def small_model(**keys: object) -> Transformer:
    torch.manual_seed(1)
    sizes = {
        "encoder_layers": 1,
        "decoder_layers": 2,
        "d_model": 32,
        "d_ff": 96,
        "heads": 4,
        **keys,
    }
    return Transformer(ModelConfig(name="t", **sizes), 50)  # type: ignore[arg-type]


def give_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def maps(model: Transformer, gradients: bool = False) -> list[Tensor]:
    """Each map of the layers, or its gradient."""
    pairs = [
        (parameter, rows)
        for parameter, rows in layer_matrices(model).items()
        if parameter.grad is not None
    ]
    return [part for x, rows in pairs for part in (x.grad if gradients else x.detach()).split(rows)]


@pytest.mark.parametrize("shape", [(40, 40), (20, 70), (1, 9)])
def test_singular_values_come_near_one_and_directions_stay(shape: tuple[int, int]) -> None:
    matrices = torch.randn(5, *shape, generator=torch.Generator().manual_seed(2))
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    product = left.mT @ nearly_orthogonal(matrices) @ right.mT
    values = torch.diagonal(product, dim1=1, dim2=2)
    assert values.max() < 1.25
    assert values.median() > 0.65
    torch.testing.assert_close(product, torch.diag_embed(values), atol=1e-4, rtol=0)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("keys", [{}, {"d_k": 4, "d_v": 16}])
def test_matrices_move_as_by_the_muon_of_torch(keys: dict[str, int], precision: str) -> None:
    model = small_model(**keys)
    optimizer = Muon(model, precision, **OPTIONS)
    give_gradients(model, 0)
    copies = [nn.Parameter(matrix.clone()) for matrix in maps(model)]
    # torch's computes in bfloat16, with some error.
    theirs = torch.optim.Muon(
        copies, OPTIONS["lr"], 0.0, adjust_lr_fn="match_rms_adamw", ns_steps=ITERATIONS
    )  # type: ignore[arg-type]
    for step in range(3):
        give_gradients(model, step)
        for parameter, gradient in zip(copies, maps(model, gradients=True), strict=True):
            parameter.grad = gradient.clone()
        before = [
            [matrix.detach().clone() for matrix in matrices] for matrices in (maps(model), copies)
        ]
        optimizer.step()
        theirs.step()
        for old, new, other_old, other in zip(
            before[0], maps(model), before[1], copies, strict=True
        ):
            ours, reference = (new - old).flatten(), (other - other_old).flatten()
            assert torch.cosine_similarity(ours, reference, dim=0) > 0.99
            assert ours.norm().item() == pytest.approx(reference.norm().item(), rel=0.03)


def test_weight_decay_shrinks_the_numbers_of_layer_matrices_that_an_update_moves_toward_zero() -> (
    None
):
    start, model, decayed = small_model(), small_model(), small_model()
    for each, decay in ((model, 0.0), (decayed, 0.3)):
        give_gradients(each, 1)
        Muon(each, "32-true", **OPTIONS, weight_decay=decay).step()
    for old, new, other in zip(
        *(each.parameters() for each in (start, model, decayed)), strict=True
    ):
        shrinks = ((new - old) * old < 0) & (new in layer_matrices(model))
        torch.testing.assert_close(
            other - new, -OPTIONS["lr"] * 0.3 * shrinks * old, atol=1e-7, rtol=1e-3
        )


def test_all_other_parameters_move_as_by_adam_and_a_saved_state_resumes_exactly() -> None:
    ours, reference = small_model(attention="additive"), small_model(attention="additive")
    optimizer, adam = (
        Muon(ours, "32-true", **OPTIONS),
        torch.optim.Adam(reference.parameters(), **OPTIONS),
    )  # type: ignore[arg-type]
    matrices = layer_matrices(ours)
    for step in range(3):
        for model in (ours, reference):
            give_gradients(model, step)
        optimizer.step()
        adam.step()
    for parameter, other in zip(ours.parameters(), reference.parameters(), strict=True):
        assert torch.equal(parameter, other) == (parameter not in matrices)
    # Four maps of each attention, in two parameters, and two of each feed-forward.
    assert len(matrices) == 5 * 2 + 3 * 2
    again = copy.deepcopy(ours)
    resumed = Muon(again, "32-true", **OPTIONS)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for model, muon in ((ours, optimizer), (again, resumed)):
        give_gradients(model, 9)
        muon.step()
    assert all(
        torch.equal(*pair) for pair in zip(ours.parameters(), again.parameters(), strict=True)
    )


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_all_maps_together_move_as_each_alone(precision: str) -> None:
    """By the plain formula, whatever the shapes of maps, and where some have no gradient."""
    model, decay, dtype = small_model(d_k=4, d_v=16), 0.3, torch.float32
    if precision == "bf16-mixed":
        dtype = torch.bfloat16
    optimizer = Muon(model, precision, **OPTIONS, weight_decay=decay)
    give_gradients(model, 0)
    next(iter(layer_matrices(model))).grad = None
    expected = [matrix.clone() for matrix in maps(model)]
    momenta = [torch.zeros_like(matrix) for matrix in expected]
    for _ in range(3):
        optimizer.step()
        gradients = maps(model, gradients=True)
        for matrix, momentum, gradient in zip(expected, momenta, gradients, strict=True):
            momentum.lerp_(gradient, 1 - MOMENTUM)
            update = gradient.lerp(momentum, MOMENTUM)
            is_tall = len(update) > update.shape[1]
            update = nearly_orthogonal((update.mT if is_tall else update)[None].to(dtype))[0]
            update = update.mT if is_tall else update
            shrinks = matrix * update > 0
            rate = OPTIONS["lr"] * ROOT_MEAN_SQUARE * max(update.shape) ** 0.5
            matrix.mul_(1 - OPTIONS["lr"] * decay * shrinks).add_(update, alpha=-rate)
    for matrix, other in zip(maps(model), expected, strict=True):
        torch.testing.assert_close(matrix, other, atol=2e-6, rtol=1e-6)
    moved = [matrix for matrix in layer_matrices(model) if matrix.grad is not None]
    assert {optimizer.state[matrix]["step"].item() for matrix in moved} == {3}


def test_a_model_without_gradients_stays() -> None:
    model = small_model()
    before = [parameter.clone() for parameter in model.parameters()]
    Muon(model, "32-true", **OPTIONS).step()
    assert all(torch.equal(*pair) for pair in zip(model.parameters(), before, strict=True))


def test_a_step_takes_few_operations_however_many_layers_there_are() -> None:
    """With the layers of model=base: 96 maps of two shapes."""
    model = small_model(encoder_layers=6, decoder_layers=6)
    optimizer = Muon(model, "bf16-mixed", **OPTIONS, weight_decay=0.3)
    give_gradients(model, 0)
    optimizer.step()
    with Operations() as operations:
        optimizer.move(optimizer.param_groups[1])
    assert operations.counts.total() <= 50
