"""The compiled forward is the Transformer's own, in one graph for all shapes."""

import shutil

import pytest
import torch
from torch._dynamo.utils import counters

from nmt.config import PAD, ModelConfig
from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.training.compiled import CompiledHidden

# torch's own, while it loads its compiler.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler")
SHAPES = [(64, 24, 32), (3, 7, 9), (9, 9, 9), (1, 5, 6), (2, 16, 16), (1, 1, 1), (5, 33, 17), (4, 90, 100), (2, 2, 2)]


def transformer(dropout: float = 0.0, **options) -> Transformer:
    torch.manual_seed(1)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2}
    return Transformer(ModelConfig("small", **sizes, dropout=dropout, **options), 50).train()


def drawn(rows: int, source: int, target: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Sentences of which the last is padded to twice its length."""
    tokens = torch.randint(4, 50, (rows, source)), torch.randint(4, 50, (rows, target))
    for side in tokens:
        side[-1, -(-side.shape[1] // 2) :] = PAD
    return tokens


@needs_compiler
@pytest.mark.parametrize(
    ("options", "graphs"),
    # The compiler reduces small tables of additive scores by another kernel, in the encoder and in the decoder.
    [({}, 1), pytest.param({"attention": "additive", "attention_window": 12}, 3, marks=pytest.mark.slow)],
    ids=["paper", "additive, restricted"],
)
def test_one_graph_gives_the_hidden_states_and_gradients_of_every_shape(options, graphs):
    torch._dynamo.reset()
    counters.clear()
    model = transformer(**options)
    compiled = CompiledHidden(model)
    compiled.compile(torch.device("cpu"))
    for shape in SHAPES:
        source, target = drawn(*shape)
        expected, hidden = model.decoder_states(source, target), compiled(source, target)
        torch.testing.assert_close(hidden, expected, rtol=1e-5, atol=1e-5)
        above, parameters = torch.randn(expected.shape), [*model.encoder_layers.parameters()]
        gradients = torch.autograd.grad((hidden * above).sum(), parameters)
        for gradient, wanted in zip(gradients, torch.autograd.grad((expected * above).sum(), parameters), strict=True):
            assert (gradient - wanted).norm() <= 1e-4 * wanted.norm()
    assert counters["stats"]["unique_graphs"] == graphs


def test_widths_are_few_and_the_models_positions_suffice():
    compiled = CompiledHidden(transformer(positions="learned", max_positions=90))
    widths = [compiled.widen(torch.ones(3, width, dtype=torch.int64)).shape[1] for width in range(1, 91)]
    assert all(width <= wider <= 90 for width, wider in enumerate(widths, start=1))
    assert len(set(widths)) < 40
    assert compiled.widen(torch.ones(1, 17, dtype=torch.int64)).tolist() == [[1] * 17 + [PAD] * 7] * 2


def test_what_is_missing_for_compiling_is_told_in_one_line(monkeypatch, tmp_path):
    torch._dynamo.reset()
    compiled = CompiledHidden(transformer())

    def fail(*arguments, **named):
        raise RuntimeError("No working C++ compiler found\nin a list of one")

    monkeypatch.setattr("torch._inductor.compile_fx.compile_fx", fail)
    with pytest.raises(NMTError, match=r"compile=true.*No working C\+\+ compiler found.*compile=false") as raised:
        compiled.compile(torch.device("cpu"))
    assert "\n" not in str(raised.value)
