"""validation.precision=bfloat16 translates with a copy of the model."""

import gc
import weakref
from pathlib import Path

import pytest
import torch

from nmt import search

SHORT = ("trainer.max_steps=6", "validation.every_steps=3", "checkpoints.every_steps=6")


class Spy(search.TorchEngine):
    """Records the type of each engine's weights, and checks that earlier copies are freed."""

    kinds: list[torch.dtype]
    models_seen: list[weakref.ref]

    def __init__(self, models, config, keeps_kernels=False):
        super().__init__(models, config, keeps_kernels)
        # A copy may be part of a cycle, which Python frees at a time of its choice.
        gc.collect()
        for seen in self.models_seen:
            assert seen() in (None, models[0])
        kinds = {parameter.dtype for parameter in models[0].parameters()}
        self.kinds.extend(kinds)
        self.models_seen.append(weakref.ref(models[0]))


@pytest.mark.slow
def test_a_copy_translates_and_training_stays_in_float32(
    toy, nmt, monkeypatch, training_state, metrics
):
    monkeypatch.setattr("nmt.search.TorchEngine", Spy)
    seen = {}
    for precision in ("float32", "bfloat16"):
        Spy.kinds, Spy.models_seen = [], []
        words = (*toy, *SHORT, f"validation.precision={precision}", f"run={precision}")
        assert nmt("train", *words).code == 0
        seen[precision] = Spy.kinds
    # Two validations; the final model is scored in float32.
    assert seen["float32"] == [torch.float32] * 3
    assert seen["bfloat16"] == [torch.bfloat16, torch.bfloat16, torch.float32]
    exact, low = (training_state(Path(run)) for run in seen)
    torch.testing.assert_close(low, exact, rtol=0, atol=0)
    assert {tensor.dtype for tensor in low["weights"].values()} == {torch.float32}
    for one, other in zip(*(metrics(Path(run)) for run in seen), strict=True):
        assert one["valid_loss"] == other["valid_loss"]
        assert bool(one["valid_bleu"]) == bool(other["valid_bleu"])


def test_an_unknown_precision_is_rejected(toy, nmt):
    nmt("train", *toy, "validation.precision=int8").refused("validation.precision=int8", "bfloat16")
