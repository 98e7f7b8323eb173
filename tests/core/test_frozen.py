"""Frozen parameters: no gradient, state or change; all others train as they would without them."""

from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from nmt.config import ModelConfig, NMTError, OptimConfig
from nmt.data import UpdateSize, dummy_batch
from nmt.model import Transformer
from nmt.training import TranslationModule, summed_losses
from nmt.training.cost import update_flops
from nmt.training.frozen import freeze, trained_parameters
from nmt.training.muon import Muon
from nmt.training.reduction import FixedOrderSum

SIZES = {"encoder_layers": 3, "decoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 2}


def tiny_model(**settings: object) -> Transformer:
    torch.manual_seed(1)
    return Transformer(ModelConfig(name="t", **{**SIZES, **settings}), 64)


def frozen_names(names: list[str], **settings: object) -> set[str]:
    model = tiny_model(**settings)
    freeze(model, names)
    return {name for name, tensor in model.named_parameters() if not tensor.requires_grad}


def names_with(*beginnings: str, **settings: object) -> set[str]:
    names = dict(tiny_model(**settings).named_parameters())
    return {name for name in names if name.startswith(beginnings)}


@pytest.mark.parametrize(
    ("names", "beginnings"),
    [
        (["embeddings"], ["source_embedding", "target_embedding", "output"]),
        (["encoder"], ["encoder"]),
        (["decoder"], ["decoder"]),
        (["encoder.1"], ["encoder_layers.1."]),
        (
            ["encoder.0-1", "decoder.1"],
            ["encoder_layers.0", "encoder_layers.1", "decoder_layers.1"],
        ),
        (["decoder.0.cross_attention"], ["decoder_layers.0.cross_attention."]),
        (["encoder_norm"], ["encoder_norm."]),
        (["decoder_layers.*.residual_2"], [f"decoder_layers.{n}.residual_2" for n in (0, 1)]),
        (
            ["*.cross_attention.input"],
            [f"decoder_layers.{n}.cross_attention.input" for n in (0, 1)],
        ),
        ([], ["nothing"]),
    ],
    ids=lambda value: " ".join(value),
)
@pytest.mark.parametrize("settings", [{"norm": "pre"}, {"norm": "pre", "tied_embeddings": False}])
def test_names_stand_for_parameters(names, beginnings, settings):
    assert frozen_names(names, **settings) == names_with(*beginnings, **settings)


def test_each_name_of_a_tied_matrix_freezes_it():
    for name in ("source_embedding", "target_embedding.weight", "output"):
        assert frozen_names([name]) == {"source_embedding.weight"}


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("encodr", "no parameter has this name; did you mean encoder?"),
        ("embedding", "did you mean embeddings?"),
        ("decoder_layer.*", "did you mean decoder_layers"),
        ("encoder.0-3", "the layers are encoder.0 to encoder.2"),
        ("decoder.1-0", "the layers are decoder.0 to decoder.1"),
        ("*", "leaves no parameter to train"),
    ],
)
def test_a_mistake_gets_one_line(name, advice):
    with pytest.raises(NMTError, match=r"^optim\.frozen=") as error:
        freeze(tiny_model(), [name])
    assert advice in str(error.value)
    assert "\n" not in str(error.value)


def test_gradients_of_trained_parameters_are_the_same():
    gradients = []
    for names in ([], ["embeddings", "encoder.0-1", "decoder.0.feed_forward"]):
        model = tiny_model()
        freeze(model, names)
        torch.manual_seed(2)
        summed_losses(model, dummy_batch(4, 9, 7), 0.1)[0].backward()
        gradients.append({name: tensor.grad for name, tensor in model.named_parameters()})
    frozen = 0
    for name, expected in gradients[0].items():
        if gradients[1][name] is None:
            frozen += 1
        else:
            assert torch.equal(gradients[1][name], expected), name
    assert frozen == len(frozen_names(names))


def test_the_order_of_addition_and_muon_leave_out_frozen_parameters():
    model = tiny_model()
    freeze(model, ["embeddings", "encoder"])
    trained = trained_parameters(model)
    assert {id(x) for x in trained} == {id(x) for x in model.decoder_layers.parameters()}
    assert {id(x) for x in FixedOrderSum(model, 2, 3).parameters} == {id(x) for x in trained}
    optimizer = Muon(model, "32-true", lr=0.01)
    parameters = [x for group in optimizer.param_groups for x in group["params"]]
    assert {id(x) for x in parameters} == {id(x) for x in trained}


def test_frozen_matrices_need_fewer_operations(monkeypatch):
    """Torch counts all pairs of the decoder's self-attention."""
    monkeypatch.setattr("nmt.kernels.products.ONEDNN", False)
    source = torch.full((2, 7), 5)
    target = torch.full((2, 5), 6)
    size = UpdateSize(14, 10, 24, 2 * 7 * 7, 2 * 5 * 5, 2 * 7 * 5)
    for names in ([], ["encoder.0-1"], ["embeddings", "encoder.0-1"], ["embeddings", "encoder"]):
        model = tiny_model(dropout=0.0)
        freeze(model, names)
        with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
            model(source, target).sum().backward()
        ours = update_flops(model, size)
        counted = counter.get_total_flops()
        # The first layer with a gradient counts as if its input had one.
        assert counted <= ours < 1.06 * counted
        assert names or ours == counted


OPTIONS = (
    "trainer.max_steps=24",
    "checkpoints.every_steps=12",
    "validation.every_steps=24",
    "validation.bleu_sentences=0",
    "model.encoder_layers=2",
)
FROZEN = "optim.frozen=[embeddings,encoder.0]"


@pytest.fixture
def frozen_run(toy, nmt) -> Path:
    outcome = nmt("train", *toy, *OPTIONS, FROZEN, "trainer.gradient_clip_val=0.5", "run=frozen")
    assert outcome.code == 0
    assert "parameters on" in outcome.err
    first_line = next(line for line in outcome.err.splitlines() if line.startswith("training "))
    trained, of, total = first_line.split()[1:4]
    assert of == "of"
    assert int(trained.replace(",", "")) < int(total.replace(",", ""))
    return Path("frozen")


def test_a_run_changes_and_stores_only_what_it_trains(toy, frozen_run, nmt, training_state):
    assert nmt("train", *toy, *OPTIONS, "trainer.max_steps=1", "run=one").code == 0
    state = training_state(frozen_run)
    after_one = training_state(Path("one"))["weights"]
    config = OptimConfig(frozen=["embeddings", "encoder.0"])
    sizes = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 1}
    start = TranslationModule(ModelConfig(name="t", **sizes), config, 300, seed=1).state_dict()
    for name, weight in state["weights"].items():
        parts = ("embedding.weight", "output.weight", "encoder_layers.0.")
        is_frozen = any(part in name for part in parts)
        assert torch.equal(weight, start[name]) == is_frozen, name
        assert not torch.equal(weight, after_one[name])
    # The state of each trained parameter, and no other.
    model = tiny_model(**sizes)
    freeze(model, config.frozen)
    shapes = [list(parameter.shape) for parameter in trained_parameters(model)]
    assert [list(moments["exp_avg"].shape) for moments in state["adam"].values()] == shapes


@pytest.mark.slow
def test_a_run_resumes_with_the_same_frozen_parameters_only(toy, frozen_run, nmt, training_state):
    options = [*toy, *OPTIONS, "trainer.gradient_clip_val=0.5", "run=parts"]
    assert nmt("train", *options, FROZEN, "trainer.max_steps=10").code == 0
    nmt("train", *options).refused("optim.frozen: ['embeddings', 'encoder.0'] -> []")
    assert nmt("train", *options, FROZEN).code == 0
    expected = training_state(frozen_run)
    torch.testing.assert_close(training_state(Path("parts")), expected, rtol=0, atol=0)


def test_an_unknown_name_leaves_no_run_behind(toy, nmt):
    nmt("train", *toy, *OPTIONS, "optim.frozen=[encodr]", "run=bad").refused("did you mean encoder")
    assert not Path("bad").exists()


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["exact", "fast"])
@pytest.mark.parametrize("optimizer", ["adam", "muon", "adafactor"])
def test_two_processes_train_the_same_weights(
    toy, nmt, train_on, training_state, optimizer, reduction
):
    options = [*toy, *OPTIONS, FROZEN, f"optim.optimizer={optimizer}"]
    options += [f"trainer.reduction={reduction}", "batching.micro_batches=4"]
    assert nmt("train", *options, "run=one").code == 0
    train_on(2, *options, "run=two")
    tolerance = 0.0 if reduction == "exact" else 1e-3
    actual = training_state(Path("two"))["weights"]
    expected = training_state(Path("one"))["weights"]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_a_model_without_frozen_parameters_trains_all():
    model = tiny_model()
    freeze(model, [])
    assert trained_parameters(model) == [*model.parameters()]
    assert all(isinstance(parameter, nn.Parameter) for parameter in model.parameters())
