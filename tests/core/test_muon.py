"""Muon against torch.optim.Muon, a singular value decomposition, and Adam."""

import copy

import pytest
import torch
from torch import Tensor, nn

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
from tests.helpers.waits import Operations

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
    config = ModelConfig(name="t", **sizes)  # type: ignore[arg-type]
    return Transformer(config, 50)


def give_gradients(model: nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        parameter.grad = torch.randn(parameter.shape, generator=generator)


def maps(model: Transformer, gradients: bool = False) -> list[Tensor]:
    """Each map of the layers that has a gradient, or that gradient."""
    parts: list[Tensor] = []
    for matrix, rows in layer_matrices(model).items():
        if matrix.grad is not None:
            values = matrix.grad if gradients else matrix.detach()
            parts += values.split(rows)
    return parts


@pytest.mark.parametrize("shape", [(40, 40), (20, 70), (1, 9)])
def test_orthogonalizing_changes_singular_values_but_not_directions(shape: tuple[int, int]) -> None:
    matrices = torch.randn(5, *shape, generator=torch.Generator().manual_seed(2))
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    product = left.mT @ nearly_orthogonal(matrices) @ right.mT
    values = torch.diagonal(product, dim1=1, dim2=2)
    assert values.max() < 1.25
    assert values.median() > 0.65
    torch.testing.assert_close(product, torch.diag_embed(values), atol=1e-4, rtol=0)


def optimizer_of_torch(copies: list[nn.Parameter]) -> torch.optim.Optimizer:
    return torch.optim.Muon(
        copies,
        OPTIONS["lr"],
        0.0,
        adjust_lr_fn="match_rms_adamw",
        ns_steps=ITERATIONS,
    )  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("keys", [{}, {"d_k": 4, "d_v": 16}])
def test_updates_of_matrices_equal_those_of_torch(keys: dict[str, int], precision: str) -> None:
    """But for the errors of torch's Muon, which computes in bfloat16."""
    model = small_model(**keys)
    optimizer = Muon(model, precision, **OPTIONS)
    give_gradients(model, 0)
    copies = [nn.Parameter(matrix.clone()) for matrix in maps(model)]
    reference = optimizer_of_torch(copies)
    for step in range(3):
        give_gradients(model, step)
        for copied, gradient in zip(copies, maps(model, gradients=True), strict=True):
            copied.grad = gradient.clone()
        before = [matrix.clone() for matrix in maps(model)]
        copies_before = [copied.detach().clone() for copied in copies]
        optimizer.step()
        reference.step()
        for old, new, old_copy, copied in zip(
            before, maps(model), copies_before, copies, strict=True
        ):
            update = (new - old).flatten()
            expected = (copied - old_copy).flatten()
            assert torch.cosine_similarity(update, expected, dim=0) > 0.99
            assert update.norm().item() == pytest.approx(expected.norm().item(), rel=0.03)


def test_weight_decay_shrinks_what_the_update_moves_toward_zero() -> None:
    """Only numbers of layer matrices."""
    start = small_model()
    without_decay = small_model()
    with_decay = small_model()
    for model, decay in ((without_decay, 0.0), (with_decay, 0.3)):
        give_gradients(model, 1)
        Muon(model, "32-true", **OPTIONS, weight_decay=decay).step()
    matrices = layer_matrices(without_decay)
    for old, new, decayed in zip(
        start.parameters(), without_decay.parameters(), with_decay.parameters(), strict=True
    ):
        shrinks = ((new - old) * old < 0) & (new in matrices)
        expected = -OPTIONS["lr"] * 0.3 * shrinks * old
        torch.testing.assert_close(decayed - new, expected, atol=1e-7, rtol=1e-3)


def test_all_other_parameters_are_updated_by_adam() -> None:
    ours = small_model(attention="additive")
    reference = small_model(attention="additive")
    optimizer = Muon(ours, "32-true", **OPTIONS)
    adam = torch.optim.Adam(reference.parameters(), **OPTIONS)  # type: ignore[arg-type]
    for step in range(3):
        give_gradients(ours, step)
        give_gradients(reference, step)
        optimizer.step()
        adam.step()
    matrices = layer_matrices(ours)
    # Four maps of each attention, in two parameters, and two of each feed-forward.
    assert len(matrices) == 5 * 2 + 3 * 2
    for parameter, other in zip(ours.parameters(), reference.parameters(), strict=True):
        assert torch.equal(parameter, other) == (parameter not in matrices)


def test_a_saved_state_resumes_exactly() -> None:
    model = small_model(attention="additive")
    optimizer = Muon(model, "32-true", **OPTIONS)
    for step in range(3):
        give_gradients(model, step)
        optimizer.step()
    resumed_model = copy.deepcopy(model)
    resumed = Muon(resumed_model, "32-true", **OPTIONS)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    give_gradients(model, 9)
    give_gradients(resumed_model, 9)
    optimizer.step()
    resumed.step()
    for parameter, other in zip(model.parameters(), resumed_model.parameters(), strict=True):
        assert torch.equal(parameter, other)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_updating_all_maps_together_equals_updating_each_alone(precision: str) -> None:
    """By the plain formula, whatever the shapes of maps, and where some have no gradient."""
    model = small_model(d_k=4, d_v=16)
    decay = 0.3
    dtype = torch.bfloat16 if precision == "bf16-mixed" else torch.float32
    optimizer = Muon(model, precision, **OPTIONS, weight_decay=decay)
    give_gradients(model, 0)
    first_matrix, *other_matrices = layer_matrices(model)
    first_matrix.grad = None
    expected = [matrix.clone() for matrix in maps(model)]
    momenta = [torch.zeros_like(matrix) for matrix in expected]
    for _ in range(3):
        optimizer.step()
        gradients = maps(model, gradients=True)
        for matrix, momentum, gradient in zip(expected, momenta, gradients, strict=True):
            momentum.lerp_(gradient, 1 - MOMENTUM)
            update = gradient.lerp(momentum, MOMENTUM)
            if len(update) > update.shape[1]:
                update = nearly_orthogonal(update.mT[None].to(dtype))[0].mT
            else:
                update = nearly_orthogonal(update[None].to(dtype))[0]
            shrinks = matrix * update > 0
            rate = OPTIONS["lr"] * ROOT_MEAN_SQUARE * max(update.shape) ** 0.5
            matrix.mul_(1 - OPTIONS["lr"] * decay * shrinks).add_(update, alpha=-rate)
    for matrix, other in zip(maps(model), expected, strict=True):
        torch.testing.assert_close(matrix, other, atol=2e-6, rtol=1e-6)
    assert {optimizer.state[matrix]["step"].item() for matrix in other_matrices} == {3}


def test_a_model_without_gradients_does_not_change() -> None:
    model = small_model()
    before = [parameter.clone() for parameter in model.parameters()]
    Muon(model, "32-true", **OPTIONS).step()
    for parameter, other in zip(model.parameters(), before, strict=True):
        assert torch.equal(parameter, other)


def test_a_step_takes_few_operations_however_many_layers_there_are() -> None:
    """With the layers of model=base: 96 maps of two shapes."""
    model = small_model(encoder_layers=6, decoder_layers=6)
    optimizer = Muon(model, "bf16-mixed", **OPTIONS, weight_decay=0.3)
    give_gradients(model, 0)
    optimizer.step()
    _, matrices = optimizer.param_groups
    with Operations() as operations:
        optimizer.update_matrices(matrices)
    assert operations.counts.total() <= 50
