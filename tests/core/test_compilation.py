"""Compiled training: few kernels, the losses and gradients of eager training, and the same bits."""

import random
from pathlib import Path

import pytest
import torch

from nmt.commands import compose
from nmt.config import ModelConfig, NMTError
from nmt.data import Batch, dummy_batch
from nmt.kernels import Compiler, compilation
from nmt.model import Transformer
from nmt.training import settle_trainer, summed_losses

pytestmark = pytest.mark.filterwarnings("ignore")  # inside of torch.compile
VOCABULARY = 64


@pytest.fixture(autouse=True)
def own_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "kernels"))


def tiny_model(**settings: object) -> Transformer:
    torch.manual_seed(1)
    sizes = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 2}
    return Transformer(ModelConfig(name="tiny", **{**sizes, **settings}), VOCABULARY)


def drawn_batch(draw: random.Random, rows: int) -> Batch:
    """A batch of a random shape, with or without a mask for padding."""
    batch = dummy_batch(rows, draw.randint(2, 40), draw.randint(2, 40))
    return batch._replace(padded=draw.random() < 0.5)


def graphs() -> int:
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.mark.parametrize("autocast", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_all_batch_shapes_share_few_graphs(monkeypatch, autocast):
    # The graphs without their kernels, which take minutes.
    monkeypatch.setattr(compilation, "BACKEND", "eager")
    model = tiny_model()
    model.compiler = Compiler("test")
    draw = random.Random(1)
    before = graphs()
    for _ in range(60):
        batch = drawn_batch(draw, draw.randint(1, 9))
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            summed_losses(model, batch, 0.1)[0].backward()
    # A kind of layer has two, with and without a mask; the loss has one.
    assert graphs() - before == 5


def losses_and_gradients(model: Transformer, batch: Batch) -> list[torch.Tensor]:
    model.zero_grad()
    losses = summed_losses(model, batch, 0.1)
    losses[0].backward()
    return [*losses, *(parameter.grad for parameter in model.parameters())]


SETTINGS = [
    {},
    {"norm": "pre", "attention_bias": True, "output_bias": True, "activation": "swish"},
    {"attention": "additive", "zero_start": True, "tied_embeddings": False},
    {"attention_window": 5, "attention": "dot_product"},
]


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: " ".join(settings) or "paper")
# Logits are float32 in any model, and inductor's kernels add them in another order.
@pytest.mark.parametrize(("backend", "tolerance"), [("aot_eager", 1e-9), ("inductor", 1e-6)])
def test_compiled_training_equals_eager_training(monkeypatch, backend, tolerance, settings):
    monkeypatch.setattr(compilation, "BACKEND", backend)
    model = tiny_model(dropout=0.0, **settings).double()
    draw = random.Random(2)
    batches = [drawn_batch(draw, rows) for rows in (3, 1, 2)]
    eager = [losses_and_gradients(model, batch) for batch in batches]
    model.compiler = Compiler("test")
    before = graphs()
    for batch, expected in zip(batches, eager, strict=True):
        torch.testing.assert_close(
            losses_and_gradients(model, batch), expected, rtol=tolerance, atol=tolerance
        )
    assert graphs() > before


@pytest.mark.slow
def test_only_training_steps_are_compiled(monkeypatch):
    """A search, whose arguments change with each step, would compile at each step."""
    monkeypatch.setattr(compilation, "BACKEND", "eager")
    model = tiny_model()
    model.compiler = Compiler("test")
    before = graphs()
    source = torch.full((2, 5), 7)
    with torch.no_grad():
        model(source, source)
    model.eval()
    model(source, source)
    cache = model.start(source, hypotheses=2)
    model.step(torch.full((2, 2), 7), cache)
    assert graphs() == before
    model.train()
    model(source, source)
    assert graphs() > before


def settled(*words: str) -> bool | str:
    return settle_trainer(compose("train", ["trainer.accelerator=cpu", *words])).trainer.compile


def test_auto_does_not_compile_on_a_cpu():
    assert settled() is False
    assert settled("trainer.compile=true") is True


def test_compile_true_is_rejected_where_it_is_impossible():
    with pytest.raises(NMTError, match=r"^trainer.compile=true: model.decoder=ssru"):
        settled("trainer.compile=true", "model.decoder=ssru")
    without_compiler = torch._inductor.config.patch("cpp.cxx", (None, "no-such-compiler"))
    with without_compiler, pytest.raises(NMTError, match=r"needs a C\+\+ compiler"):
        settled("trainer.compile=true")


def test_auto_says_why_it_does_not_compile_on_a_gpu(monkeypatch):
    """The GPU is the device that Lightning would choose; the machine has no triton."""
    monkeypatch.setattr("nmt.training.automatic.is_worth_compiling", lambda config, device: True)
    monkeypatch.setattr(
        "nmt.training.automatic.why_not_compiled", lambda config, device: "no triton"
    )
    notices: list[str] = []
    config = compose("train", ["trainer.accelerator=cpu"])
    assert settle_trainer(config, notices.append).trainer.compile is False
    assert notices == ["the model is not compiled, which would make updates faster: no triton"]


def test_runs_with_different_shapes_have_separate_kernels(monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    folders = []
    for identity in ("one", "two", "one"):
        folders.append(compilation.cache_folder(identity))
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folders[-1]))
    assert folders[0] == folders[2] != folders[1]
    assert {folder.parent for folder in folders} == {tmp_path}


COMPILED = (
    "trainer.compile=true",
    "batching.micro_batches=4",
    "model.dropout=0.1",
    "trainer.max_steps=24",
    "checkpoints.every_steps=12",
    "validation.every_steps=24",
)


@pytest.mark.slow
def test_a_compiled_run_has_the_same_bits_on_two_processes_and_after_a_stop(
    toy, nmt, train_on, training_state, monkeypatch
):
    options = [*toy, *COMPILED, "trainer.precision=bf16-mixed"]
    assert nmt("train", *options, "run=whole").code == 0
    assert nmt("train", *options, "trainer.max_steps=10", "run=parts").code == 0
    nmt("train", *options, "trainer.compile=false", "run=parts").refused(
        "trainer.compile: true -> false"
    )
    # A cache without the kernels.
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(Path("other").resolve()))
    train_on(2, *options, "run=parts")
    assert nmt("train", *options, "trainer.compile=false", "run=eager").code == 0
    whole = training_state(Path("whole"))
    torch.testing.assert_close(training_state(Path("parts")), whole, rtol=0, atol=0)
    # Compiled dropout has other random numbers.
    eager = training_state(Path("eager"))
    pairs = zip(whole["weights"].values(), eager["weights"].values(), strict=True)
    assert not all(torch.equal(*pair) for pair in pairs)
