"""Recomputing layers in the backward pass (model.checkpointing) saves memory and changes no bit."""

from collections import Counter
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from nmt.config import ModelConfig
from nmt.data import Batch, dummy_batch
from nmt.kernels import Compiler, compilation
from nmt.model import EncoderLayer, Transformer
from nmt.training import summed_losses
from nmt.training.averaging import Average

VOCABULARY = 64


def tiny_model(**settings: object) -> Transformer:
    torch.manual_seed(1)
    sizes = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 16, "d_ff": 32, "heads": 2}
    return Transformer(ModelConfig(name="t", **{"dropout": 0.3, **sizes, **settings}), VOCABULARY)


def losses_and_gradients(model: Transformer, batch: Batch) -> list[Tensor]:
    model.zero_grad()
    torch.manual_seed(2)
    losses = summed_losses(model, batch, 0.1)
    losses[0].backward()
    # A generator that stands elsewhere would change what follows.
    return [*losses, *(parameter.grad for parameter in model.parameters()), torch.rand(1)]


def assert_equal_bits(actual: list[Tensor], expected: list[Tensor]) -> None:
    for ours, other in zip(actual, expected, strict=True):
        assert torch.equal(ours, other)


SETTINGS = [
    {},
    {"norm": "pre", "attention_bias": True, "output_bias": True, "activation": "swish"},
    {"attention": "additive", "zero_start": True, "tied_embeddings": False},
    {"attention_window": 3, "attention": "dot_product", "source_end": False},
    {"decoder": "ssru", "positions": "learned"},
]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "autocast", "bfloat16"])
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: " ".join(settings) or "paper")
def test_losses_and_gradients_have_the_same_bits(settings, dtype):
    results = []
    for checkpointing in (False, True):
        model = tiny_model(**settings, checkpointing=checkpointing)
        if dtype == "bfloat16":
            model.bfloat16()
        with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "autocast"):
            results.append(losses_and_gradients(model, dummy_batch(4, 9, 7)))
    assert_equal_bits(results[1], results[0])


def kept_numbers(model: Transformer, batch: Batch) -> int:
    """The numbers that a forward pass keeps for the backward pass, without parameters."""
    parameters = {parameter.data_ptr() for parameter in model.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        model.decoder_states(batch.source, batch.target_in)
    return sum(kept.values())


def test_a_forward_pass_keeps_little():
    batch = dummy_batch(8, 40, 40)
    kept = [
        kept_numbers(tiny_model(encoder_layers=6, decoder_layers=6, checkpointing=on), batch)
        for on in (False, True)
    ]
    assert kept[1] < 0.1 * kept[0]


def test_only_training_steps_compute_a_layer_twice(monkeypatch):
    calls: Counter[str] = Counter()
    forward = EncoderLayer.forward

    def counted(*arguments):
        calls["forward"] += 1
        return forward(*arguments)

    monkeypatch.setattr(EncoderLayer, "forward", counted)
    model = tiny_model(checkpointing=True)
    source = torch.full((2, 5), 7)
    with torch.no_grad():
        model(source, source)
    model.eval()
    model(source, source).sum().backward()
    model.step(torch.full((2, 2), 7), model.start(source, hypotheses=2))
    assert calls["forward"] == 3 * 2
    calls.clear()
    model.train()
    model(source, source).sum().backward()
    assert calls["forward"] == 2 * 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # inside of torch.compile
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_layers_have_the_same_bits(backend, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.setattr(compilation, "BACKEND", backend)
    batches = [dummy_batch(4, 9, 7), dummy_batch(3, 6, 11), dummy_batch(1, 5, 5)]
    results = []
    for checkpointing in (False, True):
        model = tiny_model(checkpointing=checkpointing)
        model.compiler = Compiler("test")
        with torch.autocast("cpu", torch.bfloat16):
            results.append([losses_and_gradients(model, batch) for batch in batches])
    for actual, expected in zip(results[1], results[0], strict=True):
        assert_equal_bits(actual, expected)


OPTIONS = (
    "model.dropout=0.2",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "trainer.max_steps=24",
    "checkpoints.every_steps=12",
    "validation.every_steps=24",
    "validation.bleu_sentences=0",
)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
def test_a_run_has_the_same_weights_and_may_begin_to_recompute_later(
    toy, nmt, training_state, precision
):
    options = [*toy, *OPTIONS, f"trainer.precision={precision}"]
    assert nmt("train", *options, "run=plain").code == 0
    assert nmt("train", *options, "trainer.max_steps=12", "run=other").code == 0
    assert nmt("train", *options, "model.checkpointing=true", "run=other").code == 0
    expected = training_state(Path("plain"))
    torch.testing.assert_close(training_state(Path("other")), expected, rtol=0, atol=0)
    # Checkpoints from before and after the change have a mean.
    paths = sorted(Path("other/checkpoints").glob("step=*.ckpt"))
    assert Average(*paths).updates == [12, 24]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("compiled", ["false", "true"])
def test_two_processes_have_the_same_bits(
    toy, nmt, train_on, training_state, compiled, monkeypatch, tmp_path
):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "kernels"))
    options = [*toy, *OPTIONS, "trainer.precision=bf16-mixed", f"trainer.compile={compiled}"]
    options.append("batching.micro_batches=4")
    assert nmt("train", *options, "run=plain").code == 0
    train_on(2, *options, "model.checkpointing=true", "run=two")
    expected = training_state(Path("plain"))
    torch.testing.assert_close(training_state(Path("two")), expected, rtol=0, atol=0)
