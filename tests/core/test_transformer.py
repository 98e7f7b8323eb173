"""The Transformer against torch.nn's with the same weights, and against itself computed in other ways; positions."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nmt.config import BOS, EOS, PAD, ModelConfig
from nmt.model import Residual, Transformer, sinusoids
from nmt.model.embeddings import Positions

VOCABULARY = 13
SHAPES = pytest.mark.parametrize(
    "changes",
    [
        {"max_positions": 4},  # sinusoids continue past the table
        {"norm": "pre", "positions": "learned"},
        {"d_k": 3, "d_v": 5, "tied_embeddings": False, "attention": "dot_product"},
        {"attention_window": 3},
        {"attention_window": 4, "attention": "additive", "norm": "pre"},
        {"decoder": "ssru", "norm": "pre"},
        {
            "attention_bias": True,
            "output_bias": True,
            "activation": "swish",
            "positions": "tensor2tensor",
        },
        {
            "attention_bias": True,
            "d_k": 3,
            "d_v": 5,
            "activation": "quick_gelu",
            "source_vocabulary_size": 17,
        },
    ],
    ids=[
        "paper",
        "pre-norm, learned",
        "widths",
        "restricted",
        "additive",
        "ssru",
        "biases",
        "own source vocabulary",
    ],
)


def tiny_model(**changes):
    """A small model in double precision with no parameter at a special value such as 0 or 1."""
    torch.manual_seed(2)
    shape = {
        "encoder_layers": 2,
        "decoder_layers": 3,
        "d_model": 8,
        "d_ff": 12,
        "heads": 2,
        "max_positions": 24,
    }
    model = Transformer(
        ModelConfig(name="test", **{**shape, "dropout": 0.0, **changes}), VOCABULARY
    ).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def sentences(*lengths, width=None):
    """Random sentences closed by the end symbol, in a batch padded to the longest, or to `width`."""
    rows = [
        torch.cat((torch.randint(4, VOCABULARY, (length - 1,)), torch.tensor([EOS])))
        for length in lengths
    ]
    return torch.stack(
        [F.pad(row, (0, (width or max(lengths)) - len(row)), value=PAD) for row in rows]
    )


def prefixes(rows, length):
    """Random target tokens behind the start symbol."""
    return torch.cat(
        (torch.full((rows, 1), BOS), torch.randint(4, VOCABULARY, (rows, length - 1))), dim=1
    )


def another_word(tokens):
    return 4 + (tokens - 3) % (VOCABULARY - 4)


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


def by_the_formula(start, length, d_model):
    """PE(pos, 2i) = sin(pos / 10000^(2i / d_model)) and PE(pos, 2i + 1) = cos of the same."""
    angles = [
        [pos / 10000 ** (2 * i / d_model) for i in range(d_model // 2)]
        for pos in range(start, start + length)
    ]
    return torch.tensor(
        [[f(angle) for angle in row for f in (math.sin, math.cos)] for row in angles]
    )


def copy_attention(theirs, ours):
    theirs.in_proj_weight.copy_(ours.input)
    theirs.out_proj.weight.copy_(ours.output)
    for bias, our_bias in (
        (theirs.in_proj_bias, ours.input_bias),
        (theirs.out_proj.bias, ours.output_bias),
    ):
        bias.copy_(torch.zeros_like(bias) if our_bias is None else our_bias)


ACTIVATIONS = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": F.gelu,
    "quick_gelu": lambda x: x / (1 + torch.exp(-1.702 * x)),
}


@torch.no_grad()
def torch_stacks(model):
    """torch.nn's encoder and decoder with the weights of ours."""
    c, pre_norm = model.config, model.config.norm == "pre"
    shape = (c.d_model, c.heads, c.d_ff, 0.0, ACTIVATIONS[c.activation], c.norm_epsilon)
    options = {"batch_first": True, "norm_first": pre_norm, "dtype": torch.float64}
    norms = [
        nn.LayerNorm(c.d_model, c.norm_epsilon).double() if pre_norm else None for _ in range(2)
    ]
    layers = (
        nn.TransformerEncoderLayer(*shape, **options),
        nn.TransformerDecoderLayer(*shape, **options),
    )
    encoder = nn.TransformerEncoder(
        layers[0], c.encoder_layers, norms[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(layers[1], c.decoder_layers, norms[1])
    for stack, ours, count in (
        (encoder, model.encoder_layers, 2),
        (decoder, model.decoder_layers, 3),
    ):
        for torch_layer, layer in zip(stack.layers, ours, strict=True):
            copy_attention(torch_layer.self_attn, layer.self_attention)
            if count == 3:
                copy_attention(torch_layer.multihead_attn, layer.cross_attention)
            torch_layer.linear1.load_state_dict(layer.feed_forward[0].state_dict())
            torch_layer.linear2.load_state_dict(layer.feed_forward[2].state_dict())
            for i in range(1, count + 1):
                getattr(torch_layer, f"norm{i}").load_state_dict(
                    getattr(layer, f"residual_{i}").norm.state_dict()
                )
    for norm, ours in zip(norms, (model.encoder_norm, model.decoder_norm), strict=True):
        if norm:
            norm.load_state_dict(ours.state_dict())
    return encoder, decoder


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre", "tied_embeddings": False},
        {"norm_epsilon": 0.1},
        *(
            {"attention_bias": True, "activation": activation, "norm": "pre"}
            for activation in ACTIVATIONS
        ),
    ],
    ids=str,
)
def test_torch_nn_transformer_with_the_same_weights_gives_the_same_logits(changes):
    model = tiny_model(**changes)
    encoder, decoder = torch_stacks(model)
    source, target = sentences(6, 3, 4), prefixes(3, 5)
    padding, d_model = source == PAD, model.config.d_model

    def embed(tokens, matrix):
        return matrix[tokens] * math.sqrt(d_model) + by_the_formula(0, tokens.shape[1], d_model)

    memory = encoder(embed(source, model.source_embedding.weight), src_key_padding_mask=padding)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    embedded = embed(target, model.target_embedding.weight)
    hidden = decoder(embedded, memory, tgt_mask=future, memory_key_padding_mask=padding)
    # Tables of sinusoids are rounded to single precision.
    torch.testing.assert_close(
        model(source, target), hidden @ model.output.weight.T, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("changes", [{}, {"attention_window": 3, "norm": "pre"}], ids=str)
def test_without_a_source_end_the_model_is_that_of_sources_without_one(changes):
    model, paper = tiny_model(**changes, source_end=False), tiny_model(**changes)
    source, target = sentences(6, 3, width=7), prefixes(2, 5)
    expected = paper(source.masked_fill(source == EOS, PAD)[:, :5], target)
    torch.testing.assert_close(model(source, target), expected)
    cache = model.start(source)
    for tokens in target.split(1, dim=1):
        logp = model.step(tokens, cache)
    torch.testing.assert_close(
        logp[:, 0].double(), expected[:, -1].log_softmax(1), rtol=1e-5, atol=1e-5
    )
    full = sentences(4, 4)
    hidden = model.decoder_states(full, target, padded=False)  # as a batch says that has no padding
    torch.testing.assert_close(hidden, paper.decoder_states(full[:, :3], target))


@SHAPES
def test_a_target_token_changes_nothing_before_it_and_everything_from_it_on(changes):
    model = tiny_model(**changes)
    source, target = sentences(5, 4), prefixes(2, 6)
    logits = model(source, target)
    for j in range(6):
        changed = target.clone()
        changed[:, j] = another_word(changed[:, j])
        difference = (model(source, changed) - logits).abs().amax(dim=-1)
        assert (difference[:, :j] < 1e-9).all()
        assert (difference[:, j:] > 1e-6).all()


@SHAPES
def test_padding_changes_nothing(changes):
    model = tiny_model(**changes)
    source_lengths, target_lengths = (7, 2, 4), (3, 6, 5)
    source, target = sentences(*source_lengths, width=9), prefixes(3, 8)
    for row, length in enumerate(target_lengths):
        target[row, length:] = PAD
    logits = model(source, target)
    for row, (s, t) in enumerate(zip(source_lengths, target_lengths, strict=True)):
        alone = source[row : row + 1, :s], target[row : row + 1, :t]
        assert_close(logits[row, :t], model(*alone)[0])
        # As a batch says that has no padding.
        assert_close(model.decoder_states(*alone, padded=False), model.decoder_states(*alone))


@pytest.mark.parametrize("r", [1, 2, 5])
def test_a_restricted_layer_sees_r_positions_of_the_source_and_of_the_past(r):
    model = tiny_model(attention_window=r, encoder_layers=1, decoder_layers=1)
    source, target = sentences(8), prefixes(1, 8)
    memory = model.encode(source)
    hidden = model.decode(target, memory, source)
    for j in range(8):
        changed = source.clone(), target.clone()
        for tokens in changed:
            tokens[0, j] = another_word(tokens[0, j])
        moved = (model.encode(changed[0]) - memory)[0].abs().amax(dim=-1) > 1e-9
        assert moved.tolist() == [j in range(t - r // 2, t - r // 2 + r) for t in range(8)]
        moved = (model.decode(changed[1], memory, source) - hidden)[0].abs().amax(dim=-1) > 1e-9
        assert moved.tolist() == [j in range(t - r + 1, t + 1) for t in range(8)]


NOTHING = None, None
STEPS = (
    NOTHING,
    ([[0, 0, 0], [1, 1, 1], [2, 2, 2]], None),  # one hypothesis becomes three
    NOTHING,
    ([[2, 0, 0], [1, 2, 0], [2, 2, 2]], None),  # the beam's survivors
    ([[1, 1, 0], [2, 1, 0], [0, 2, 1]], [0, 2]),  # sentence 1 is finished
    ([[0, 1, 2], [2, 1, 0]], [1, 0]),  # sentences swap places
    *[NOTHING] * 12,
)
"""Whose continuations the hypotheses are, and which sentences are left, before each step."""


@SHAPES
@pytest.mark.parametrize("hypotheses", [1, 3])
@torch.no_grad()
def test_a_cache_continues_the_chosen_hypotheses_as_the_whole_model(changes, hypotheses):
    model, source = tiny_model(**changes), sentences(7, 3, 5)
    cache, tokens = model.start(source, hypotheses), torch.empty(3, hypotheses, 0, dtype=torch.long)
    for parents, kept in STEPS:
        if parents:
            rows = torch.tensor(parents)[:, :hypotheses] % hypotheses
            cache.reorder(rows)
            tokens = tokens.gather(1, rows[:, :, None].expand_as(tokens))
        if kept:
            cache, tokens, source = cache.select(torch.tensor(kept)), tokens[kept], source[kept]
        shape = tokens.shape[:2]
        last = torch.randint(4, VOCABULARY, shape) if cache.length else torch.full(shape, BOS)
        tokens = torch.cat((tokens, last[:, :, None]), dim=2)
        anew = model(source.repeat_interleave(hypotheses, dim=0), tokens.flatten(0, 1))[:, -1]
        expected = anew.log_softmax(dim=-1).view(*shape, -1)
        torch.testing.assert_close(model.step(last, cache).double(), expected, rtol=1e-5, atol=1e-5)


def test_the_tied_matrix_learns_from_its_three_uses():
    tied, untied = tiny_model(), tiny_model(tied_embeddings=False)
    assert tied.source_embedding.weight is tied.target_embedding.weight is tied.output.weight
    untied.load_state_dict(tied.state_dict())
    source, target = sentences(5, 3), prefixes(2, 4)
    for model in (tied, untied):
        model(source, target).logsumexp(dim=-1).sum().backward()
    uses = (untied.source_embedding.weight, untied.target_embedding.weight, untied.output.weight)
    assert all(use.grad.abs().max() > 0.01 for use in uses)
    assert_close(tied.output.weight.grad, sum(use.grad for use in uses))


def test_dropout_is_where_the_paper_has_it_and_nowhere_else():
    model = tiny_model(dropout=0.4)
    dropouts = [module for module in model.modules() if isinstance(module, nn.Dropout)]
    assert len(dropouts) == 2 + 2 * model.config.encoder_layers + 3 * model.config.decoder_layers
    assert {dropout.p for dropout in dropouts} == {0.4}
    source, target = sentences(5, 3), prefixes(2, 4)
    expected = model.eval()(source, target)
    assert not torch.allclose(model.train()(source, target), expected)
    for dropout in dropouts:
        dropout.p = 0.0
    assert_close(model.train()(source, target), expected)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_drops_the_output_of_a_sublayer_and_not_its_input(norm):
    residual = Residual(ModelConfig(name="test", d_model=8, heads=2, norm=norm))
    residual.dropout.p = 1.0
    x = torch.randn(2, 3, 8)
    output = residual(x, lambda x: x + 5)
    torch.testing.assert_close(output, F.layer_norm(x, (8,)) if norm == "post" else x)


def test_initial_matrices_are_xavier_uniform_and_embeddings_normal():
    torch.manual_seed(3)
    shape = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 64,
        "d_ff": 96,
        "heads": 4,
        "d_k": 8,
        "d_v": 48,
    }
    model = Transformer(ModelConfig(name="test", tied_embeddings=False, **shape), 1000)
    for weight in (
        model.source_embedding.weight,
        model.target_embedding.weight,
        model.output.weight,
    ):
        assert weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
        assert weight.mean().item() == pytest.approx(0, abs=0.003)
        assert weight.abs().max() > 3.5 * 64**-0.5
    for layer in (*model.encoder_layers, *model.decoder_layers):
        inner, outer = layer.feed_forward[0], layer.feed_forward[2]
        assert not inner.bias.any()
        assert not outer.bias.any()
        attention = layer.self_attention
        for matrix in (
            inner.weight,
            outer.weight,
            *attention.input.split([32, 32, 192]),
            attention.output,
        ):
            bound = math.sqrt(6 / sum(matrix.shape))
            assert 0.99 * bound < matrix.abs().max().item() <= bound
            assert matrix.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def embedding_config(**changes):
    return ModelConfig(
        name="test", **{"d_model": 8, "heads": 2, "dropout": 0.0, "max_positions": 5, **changes}
    )


@pytest.mark.parametrize(("start", "length"), [(0, 5), (2, 3), (0, 6), (5, 1), (4, 30), (1000, 2)])
def test_sinusoids_are_the_papers_also_past_the_table(start, length):
    positions = Positions(embedding_config())
    torch.testing.assert_close(
        positions(start, length), by_the_formula(start, length, 8), rtol=0, atol=1e-6
    )
    torch.testing.assert_close(
        sinusoids(length, 10, start), by_the_formula(start, length, 10), rtol=0, atol=1e-6
    )
    assert not list(positions.parameters())
    assert not positions.state_dict()


def test_learned_positions_are_parameters_of_embedding_size():
    torch.manual_seed(6)
    positions = Positions(
        embedding_config(positions="learned", max_positions=400, d_model=64, heads=2)
    )
    (table,) = positions.parameters()
    assert table.shape == (400, 64)
    assert table.std().item() == pytest.approx(64**-0.5, rel=0.03)
    assert torch.equal(positions(3, 4), table[3:7])
