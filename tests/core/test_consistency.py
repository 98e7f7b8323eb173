"""Consistency training beside its definition, computed separately for the pair and for its copy."""

from functools import partial
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from nmt.config import UNK, ModelConfig
from nmt.data import Batch
from nmt.model import Transformer
from nmt.training import summed_losses
from nmt.training.consistency import consistent_losses, hide

SMOOTHING = 0.1
assert_close = partial(torch.testing.assert_close, rtol=1e-5, atol=1e-5)


def model_and_batch(**keys: object) -> tuple[Transformer, Batch]:
    torch.manual_seed(1)
    model = Transformer(ModelConfig("t", 1, 1, 16, 32, 2, **{"dropout": 0.0, **keys}), 40)  # type: ignore[arg-type]
    source = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0]])
    target_in, target_out = (
        torch.tensor([[1, 9, 10], [1, 11, 0]]),
        torch.tensor([[9, 10, 2], [11, 2, 0]]),
    )
    return model, Batch(source, target_in, target_out, torch.tensor([0, 1, 2, 3, 4]))


def gradients(model: Transformer, loss: torch.Tensor) -> list[torch.Tensor]:
    return list(torch.autograd.grad(loss, list(model.parameters())))


@pytest.mark.parametrize("keys", [{}, {"zero_start": True, "output_bias": True}])
def test_copy_without_noise_adds_nothing(keys: dict[str, object]) -> None:
    model, batch = model_and_batch(**keys)
    plain, consistent = (
        summed_losses(model, batch, SMOOTHING),
        consistent_losses(model, batch, SMOOTHING, 3.0, 0.0),
    )
    assert_close(consistent, plain)
    for ours, expected in zip(
        gradients(model, consistent[0]), gradients(model, plain[0]), strict=True
    ):
        assert_close(ours, expected)


def test_copy_adds_its_divergence() -> None:
    model, batch = model_and_batch()
    torch.manual_seed(2)
    loss, likelihood = consistent_losses(model, batch, SMOOTHING, 3.0, 0.5)
    torch.manual_seed(2)
    source, target = hide(batch.source, 0.5), hide(batch.target_in, 0.5)
    assert not torch.equal(source, batch.source)
    pairs = ((batch.source, batch.target_in), (source, target))
    p, q = (model(*pair).softmax(2).flatten(0, 1)[batch.target_indices] for pair in pairs)
    plain = summed_losses(model, batch, SMOOTHING)
    assert_close(loss, plain[0] + 3 * (p * (p / q).log()).sum())
    assert_close(likelihood, plain[1])
    for ours, expected in zip(
        gradients(model, loss),
        gradients(model, plain[0] + 3 * F.kl_div(q.log(), p, reduction="sum")),
        strict=True,
    ):
        assert_close(ours, expected)


def test_dropout_alone_changes_the_copy() -> None:
    model, batch = model_and_batch(dropout=0.3)
    torch.manual_seed(3)
    with_weight = consistent_losses(model, batch, SMOOTHING, 1.0, 0.0)[0]
    torch.manual_seed(3)
    assert with_weight > consistent_losses(model, batch, SMOOTHING, 0.0, 0.0)[0] + 1e-3


def test_hide_replaces_the_share_of_tokens_only() -> None:
    torch.manual_seed(1)
    ids = torch.arange(20_000).remainder(8)
    hidden = hide(ids, 0.3)
    assert torch.equal(hidden[ids <= UNK], ids[ids <= UNK])
    assert set(hidden[hidden != ids].tolist()) == {UNK}
    assert (hidden != ids)[ids > UNK].double().mean().item() == pytest.approx(0.3, abs=0.02)


def test_resumed_run_equals_uninterrupted_run(toy, nmt, training_state) -> None:
    options = [
        *toy,
        "optim.consistency.weight=3",
        "validation.bleu_sentences=0",
        "checkpoints.every_steps=4",
    ]
    for run, steps in (("stopped", 4), ("stopped", 8), ("whole", 8)):
        assert nmt("train", *options, f"trainer.max_steps={steps}", f"run={run}").code == 0
    torch.testing.assert_close(
        *(training_state(Path(run)) for run in ("stopped", "whole")), rtol=0, atol=0
    )
    nmt("train", *toy, "trainer.max_steps=8", "run=whole").refused(
        "optim.consistency.weight: 3.0 -> 0.0"
    )
