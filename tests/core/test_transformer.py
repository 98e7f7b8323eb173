"""The Transformer against torch.nn's with the same weights, and against itself computed in other ways."""

import math
from copy import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from nmt.config import BOS, EOS, PAD, ModelConfig, OptimConfig
from nmt.data import Batch
from nmt.model import FeedForward, MultiHeadAttention, Residual, Transformer, sinusoids
from nmt.training.loss import label_smoothed_cross_entropy
from nmt.training.module import TranslationModule

VOCABULARY = 13
SHAPES = pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"positions": "learned"},
        {"d_k": 3, "d_v": 5, "tied_embeddings": False},
        {"attention": "dot_product"},
        {"attention": "additive", "d_k": 3},
        {"attention_window": 3},
        {"attention_window": 4, "attention": "additive", "norm": "pre"},
        {"attention_bias": True, "output_bias": True, "activation": "swish", "positions": "tensor2tensor"},
        {"attention_bias": True, "d_k": 3, "d_v": 5, "activation": "quick_gelu", "source_vocabulary_size": 17},
    ],
    ids=[
        *("paper", "pre-norm", "learned", "widths", "unscaled", "additive", "restricted", "restricted additive"),
        *("biases", "own source vocabulary"),
    ],
)


def tiny_model(**changes):
    """A small model in double precision with no parameter at a special value such as 0 or 1."""
    torch.manual_seed(2)
    shape = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 8, "d_ff": 12, "heads": 2, "max_positions": 24}
    model = Transformer(ModelConfig(name="test", **{**shape, "dropout": 0.0, **changes}), VOCABULARY).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.2)
    return model


def sentences(*lengths, width=None):
    """Random sentences closed by the end symbol, in a batch padded to the longest, or to `width`."""
    rows = [torch.cat((torch.randint(4, VOCABULARY, (length - 1,)), torch.tensor([EOS]))) for length in lengths]
    return torch.stack([F.pad(row, (0, (width or max(lengths)) - len(row)), value=PAD) for row in rows])


def prefixes(rows, length):
    """Random target tokens behind the start symbol."""
    return torch.cat((torch.full((rows, 1), BOS), torch.randint(4, VOCABULARY, (rows, length - 1))), dim=1)


def another_word(tokens):
    return 4 + (tokens - 3) % (VOCABULARY - 4)


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


def position(pos, d_model):
    """Section 3.5, one number at a time."""
    angles = [pos / 10000 ** (2 * (i // 2) / d_model) for i in range(d_model)]
    return [math.cos(angle) if i % 2 else math.sin(angle) for i, angle in enumerate(angles)]


def copy_attention(torch_attention, attention):
    torch_attention.in_proj_weight.copy_(attention.input)
    torch_attention.out_proj.weight.copy_(attention.output)
    for bias, ours in (
        (torch_attention.in_proj_bias, attention.input_bias),
        (torch_attention.out_proj.bias, attention.output_bias),
    ):
        bias.copy_(torch.zeros_like(bias) if ours is None else ours)


def copy_feed_forward_and_norms(torch_layer, layer, norms):
    torch_layer.linear1.load_state_dict(layer.feed_forward[0].state_dict())
    torch_layer.linear2.load_state_dict(layer.feed_forward[2].state_dict())
    for i in range(1, norms + 1):
        getattr(torch_layer, f"norm{i}").load_state_dict(getattr(layer, f"residual_{i}").norm.state_dict())


ACTIVATIONS = {
    **{"relu": F.relu, "swish": F.silu, "gelu": F.gelu},
    "quick_gelu": lambda x: x / (1 + torch.exp(-1.702 * x)),
}


@torch.no_grad()
def torch_stacks(model):
    """torch.nn's encoder and decoder with the weights of ours."""
    config = model.config
    shape = (config.d_model, config.heads, config.d_ff, 0.0, ACTIVATIONS[config.activation], config.norm_epsilon)
    options = {"batch_first": True, "norm_first": config.norm == "pre", "dtype": torch.float64}
    pre_norm, epsilon = config.norm == "pre", config.norm_epsilon
    norms = [nn.LayerNorm(config.d_model, epsilon).double() if pre_norm else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(*shape, **options), config.encoder_layers, norms[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*shape, **options), config.decoder_layers, norms[1])
    for torch_layer, layer in zip(encoder.layers, model.encoder_layers, strict=True):
        copy_attention(torch_layer.self_attn, layer.self_attention)
        copy_feed_forward_and_norms(torch_layer, layer, 2)
    for torch_layer, layer in zip(decoder.layers, model.decoder_layers, strict=True):
        copy_attention(torch_layer.self_attn, layer.self_attention)
        copy_attention(torch_layer.multihead_attn, layer.cross_attention)
        copy_feed_forward_and_norms(torch_layer, layer, 3)
    for norm, ours in zip(norms, (model.encoder_norm, model.decoder_norm), strict=True):
        if norm:
            norm.load_state_dict(ours.state_dict())
    return encoder, decoder


@pytest.mark.parametrize(
    "changes",
    [
        *({"tied_embeddings": tied, "norm": norm} for tied in (True, False) for norm in ("post", "pre")),
        *({"attention_bias": True, "activation": activation} for activation in ACTIVATIONS),
        {"norm_epsilon": 0.1},
        {"norm_epsilon": 0.1, "norm": "pre", "attention_bias": True},
    ],
    ids=str,
)
def test_torch_nn_transformer_with_the_same_weights_gives_the_same_logits(changes):
    model = tiny_model(**changes)
    encoder, decoder = torch_stacks(model)
    source, target = sentences(6, 3, 4), prefixes(3, 5)
    padding, d_model = source == PAD, model.config.d_model

    def embed(tokens, matrix):
        positions = torch.tensor([position(pos, d_model) for pos in range(tokens.shape[1])], dtype=torch.float64)
        return matrix[tokens] * math.sqrt(d_model) + positions

    memory = encoder(embed(source, model.source_embedding.weight), src_key_padding_mask=padding)
    future = torch.ones(5, 5, dtype=torch.bool).triu(1)
    embedded = embed(target, model.target_embedding.weight)
    hidden = decoder(embedded, memory, tgt_mask=future, memory_key_padding_mask=padding)
    # Our table of sinusoids is rounded to single precision.
    torch.testing.assert_close(model(source, target), hidden @ model.output.weight.T, rtol=1e-6, atol=1e-6)


def test_a_bias_is_added_to_the_logits():
    model, plain = tiny_model(output_bias=True), tiny_model()
    plain.load_state_dict({name: value for name, value in model.state_dict().items() if name != "output.bias"})
    source, target = sentences(6, 3), prefixes(2, 5)
    assert_close(model(source, target), plain(source, target) + model.output.bias)


def test_sinusoids_of_tensor2tensor_are_their_definition():
    """exp(-i ln 10000 / (d / 2 - 1)) for the i-th pair; the paper has 10000^(-2i / d)."""
    found = sinusoids(50, 12, 7, "tensor2tensor")
    for row, pos in zip(found.tolist(), range(7, 57), strict=True):
        for i in range(6):
            angle = pos * math.exp(-i * math.log(10_000) / 5)
            assert row[2 * i : 2 * i + 2] == pytest.approx([math.sin(angle), math.cos(angle)], abs=1e-6)


@pytest.mark.parametrize("changes", [{}, {"output_bias": True, "tied_embeddings": False}], ids=str)
def test_a_zero_start_has_no_embedding_and_no_probability(changes):
    model = tiny_model(zero_start=True, **changes)
    source, target = sentences(6, 3), prefixes(2, 5)
    logits = model(source, target)
    assert logits[..., :2].isneginf().all()
    assert logits[..., 2:].isfinite().all()
    with torch.no_grad():
        for matrix in (model.source_embedding.weight, model.target_embedding.weight, model.output.weight):
            matrix[BOS] = 3.0
    assert torch.equal(model(source, target), logits)
    # Position 0 of the decoder is the encoding of that position alone.
    first = model.target_embedding(torch.tensor([[BOS]]))
    assert torch.equal(first[0, 0], model.target_embedding.positions(0, 1)[0])


def test_a_zero_start_is_not_trained():
    model = tiny_model(zero_start=True, output_bias=True)
    with torch.no_grad():
        for symbol in (PAD, BOS):
            model.output.weight[symbol], model.output.bias[symbol] = 0, 0
    module = TranslationModule.__new__(TranslationModule)
    nn.Module.__init__(module)
    module.model, module.optim = model, OptimConfig(warmup=1)
    source, target = sentences(6, 3), sentences(4, 5)
    batch = Batch(source, F.pad(target[:, :-1], (1, 0), value=BOS), target, (target.flatten() != PAD).nonzero()[:, 0])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses = []
    for _ in range(5):
        loss, _ = module.losses(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]
    assert not model.output.weight[: BOS + 1].any()
    assert not model.output.bias[: BOS + 1].any()
    logp = model(source, batch.target_in).log_softmax(dim=-1)
    found = -logp.gather(2, target[:, :, None])[:, :, 0][target != PAD].sum()
    torch.testing.assert_close(module.losses(batch)[1].double(), found, rtol=1e-5, atol=1e-5)


def test_padding_without_probability_changes_nothing_else():
    model, paper = tiny_model(padding_probability=False), tiny_model()
    paper.load_state_dict(model.state_dict())
    source, target = sentences(6, 3), prefixes(2, 5)
    assert model(source, target)[..., PAD].isneginf().all()
    assert torch.equal(model(source, target)[..., 1:], paper(source, target)[..., 1:])


@pytest.mark.parametrize("changes", [{}, {"attention_window": 3}, {"norm": "pre", "positions": "learned"}], ids=str)
def test_without_a_source_end_the_model_is_that_of_sources_without_one(changes):
    model, paper = tiny_model(**changes, source_end=False), tiny_model(**changes)
    source, target = sentences(6, 3, width=7), prefixes(2, 5)
    bare = source.masked_fill(source == EOS, PAD)[:, :5]
    torch.testing.assert_close(model(source, target), paper(bare, target))
    cache = model.start(source)
    for position in range(5):
        logp = model.step(target[:, position : position + 1], cache)
    torch.testing.assert_close(logp[:, 0].double(), paper(bare, target)[:, -1].log_softmax(1), rtol=1e-5, atol=1e-5)
    full = sentences(4, 4)
    hidden = model.decoder_states(full, target, padded=False)  # as a batch says that has no padding
    torch.testing.assert_close(hidden, paper.decoder_states(full[:, :3], target))


def test_an_empty_source_without_end_has_a_translation():
    model, paper = tiny_model(source_end=False), tiny_model()
    source, target = sentences(1), prefixes(1, 4)
    torch.testing.assert_close(model(source, target), paper(source, target))


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
def test_every_source_token_changes_every_output(changes):
    model = tiny_model(**changes)
    source, target = sentences(5), prefixes(1, 6)
    logits = model(source, target)
    for j in range(5):
        changed = source.clone()
        changed[0, j] = another_word(changed[0, j])
        assert ((model(changed, target) - logits).abs().amax(dim=-1) > 1e-6).all()


@SHAPES
def test_padding_changes_nothing(changes):
    model = tiny_model(**changes)
    source_lengths, target_lengths = (7, 2, 4), (3, 6, 5)
    source, target = sentences(*source_lengths, width=9), prefixes(3, 8)
    for row, length in enumerate(target_lengths):
        target[row, length:] = PAD
    logits = model(source, target)
    for row, (s, t) in enumerate(zip(source_lengths, target_lengths, strict=True)):
        alone = model(source[row : row + 1, :s], target[row : row + 1, :t])
        assert_close(logits[row, :t], alone[0])


KINDS = pytest.mark.parametrize("attention", ["scaled_dot_product", "dot_product", "additive"])


@KINDS
@pytest.mark.parametrize("r", [1, 2, 3, 4, 5])
def test_a_restricted_layer_sees_r_positions_of_the_source_and_of_the_past(attention, r):
    model = tiny_model(attention=attention, attention_window=r, encoder_layers=1, decoder_layers=1)
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


@KINDS
@pytest.mark.parametrize("r", [15, 16, 1000])
def test_a_neighbourhood_that_holds_everything_is_full_attention(attention, r):
    source, target = sentences(8, 3), prefixes(2, 8)
    full = tiny_model(attention=attention)
    wide = tiny_model(attention=attention, attention_window=r)
    assert torch.equal(wide(source, target), full(source, target))
    assert torch.equal(wide.float()(source, target), full.float()(source, target))


def test_padding_that_sees_no_word_leaves_no_gradient_that_is_no_number():
    model = tiny_model(attention_window=3)
    model(sentences(2, 12), prefixes(2, 4)).sum().backward()
    assert all(parameter.grad.isfinite().all() for parameter in model.parameters())


def test_sentences_of_a_batch_do_not_meet():
    model = tiny_model()
    source, target = sentences(5, 5), prefixes(2, 4)
    logits = model(source, target)
    source[1], target[1] = sentences(5)[0], prefixes(1, 4)[0]
    assert_close(model(source, target)[0], logits[0])


class Searched:
    """Hypotheses decoded step by step, and the same computed anew from all of their tokens."""

    def __init__(self, model, source, hypotheses):
        self.model, self.source = model, source
        self.cache = model.start(source, hypotheses)
        self.tokens = torch.empty(len(source), hypotheses, 0, dtype=torch.long)

    def extend(self):
        shape = self.tokens.shape[:2]
        last = torch.randint(4, VOCABULARY, shape) if self.cache.length else torch.full(shape, BOS)
        self.tokens = torch.cat((self.tokens, last[:, :, None]), dim=2)
        anew = self.model(self.source.repeat_interleave(shape[1], dim=0), self.tokens.flatten(0, 1))[:, -1]
        stepwise = self.model.step(last, self.cache)
        expected = anew.log_softmax(dim=-1).view(*shape, -1)
        torch.testing.assert_close(stepwise.double(), expected, rtol=1e-5, atol=1e-5)

    def reorder(self, parents):
        """Let the hypotheses be others' continuations, as a beam search does."""
        rows = torch.tensor(parents)
        self.cache.reorder(rows)
        self.tokens = self.tokens.gather(1, rows[:, :, None].expand_as(self.tokens))

    def select(self, kept):
        """Go on with the sentences `kept`."""
        rows = torch.tensor(kept)
        self.cache, self.tokens, self.source = self.cache.select(rows), self.tokens[rows], self.source[rows]


@SHAPES
@torch.no_grad()
def test_decoding_step_by_step_is_decoding_at_once(changes):
    searched = Searched(tiny_model(**changes), sentences(7, 3, 5), 2)
    for _ in range(6):
        searched.extend()


@SHAPES
@torch.no_grad()
def test_a_reordered_cache_continues_the_hypotheses_chosen(changes):
    searched = Searched(tiny_model(**changes), sentences(7, 3, 5), 3)
    searched.extend()
    searched.reorder([[0, 0, 0], [1, 1, 1], [2, 2, 2]])  # one hypothesis becomes three
    searched.extend()
    searched.extend()
    searched.reorder([[2, 0, 0], [1, 2, 0], [2, 2, 2]])  # the beam's survivors
    searched.extend()
    searched.reorder([[1, 1, 0], [2, 1, 0], [0, 2, 1]])
    searched.select([0, 2])  # sentence 1 is finished
    searched.extend()
    searched.select([1, 0])  # sentences swap places
    searched.reorder([[2, 1, 0], [0, 0, 1]])
    for _ in range(3):
        searched.extend()


@torch.no_grad()
def test_a_selected_cache_leaves_the_first_as_it_was():
    searched = Searched(tiny_model(), sentences(4, 6), 2)
    searched.extend()
    other = copy(searched)
    other.select([0, 1])
    other.reorder([[0, 1], [1, 0]])
    other.extend()
    searched.extend()


@torch.no_grad()
def test_decoding_goes_on_past_the_table_of_sinusoids():
    searched = Searched(tiny_model(max_positions=4), sentences(3, 6), 2)
    for _ in range(11):
        searched.extend()


def test_tied_embeddings_are_one_matrix_and_untied_are_three():
    def matrices(model):
        return {model.source_embedding.weight, model.target_embedding.weight, model.output.weight}

    assert len(matrices(tiny_model())) == 1
    untied = tiny_model(tied_embeddings=False)
    assert len(matrices(untied)) == 3
    assert len({matrix.data_ptr() for matrix in matrices(untied)}) == 3


def test_the_tied_matrix_learns_from_its_three_uses():
    tied, untied = tiny_model(), tiny_model(tied_embeddings=False)
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


def test_dropout_drops_embeddings_and_positions_alike():
    embedding = tiny_model().source_embedding
    embedding.dropout.p = 1.0
    assert not embedding(sentences(5)).any()


def test_initial_matrices_are_xavier_uniform_and_embeddings_normal():
    torch.manual_seed(3)
    shape = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 64, "d_ff": 96, "heads": 4}
    model = Transformer(ModelConfig(name="test", tied_embeddings=False, **shape), 1000)
    for weight in (model.source_embedding.weight, model.target_embedding.weight, model.output.weight):
        assert weight.std().item() == pytest.approx(64**-0.5, rel=0.02)
        assert weight.mean().item() == pytest.approx(0, abs=0.003)
        assert weight.abs().max() > 3.5 * 64**-0.5
    for module in model.modules():
        if isinstance(module, FeedForward):
            for linear in (module[0], module[2]):
                bound = math.sqrt(6 / (64 + 96))
                assert 0.99 * bound < linear.weight.abs().max().item() <= bound
                assert not linear.bias.any()


def test_every_layer_starts_from_other_numbers():
    torch.manual_seed(3)
    model = Transformer(ModelConfig(name="test", encoder_layers=2, decoder_layers=2, d_model=8, d_ff=8, heads=2), 9)
    inputs = [module.input for module in model.modules() if isinstance(module, MultiHeadAttention)]
    assert len({round(matrix.sum().item(), 6) for matrix in inputs}) == len(inputs) == 6


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_one_batch_is_learnt_by_heart(norm):
    torch.manual_seed(4)
    shape = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "d_ff": 64, "heads": 4, "dropout": 0.0}
    model = Transformer(ModelConfig(name="test", norm=norm, **shape), VOCABULARY)
    source, target = sentences(5, 8, 6, 7), sentences(7, 5, 8, 6)
    target_in = F.pad(target, (1, -1), value=BOS)
    real = target != PAD
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98), eps=1e-9)
    for _ in range(150):
        states = model.decoder_states(source, target_in)
        loss, _ = label_smoothed_cross_entropy(states[real], model.output.weight, target[real], 0.0)
        optimizer.zero_grad()
        (loss / real.sum()).backward()
        optimizer.step()
    assert loss.item() / real.sum().item() < 0.01
    assert (model(source, target_in).argmax(dim=-1)[real] == target[real]).all()


@SHAPES
def test_sentences_of_one_length_need_no_mask_of_padding(changes, monkeypatch):
    model, source, target = tiny_model(**changes), sentences(5, 5, 5), prefixes(3, 4)
    expected = model.decoder_states(source, target)
    masks = []
    attend = MultiHeadAttention.attend
    with monkeypatch.context() as patch:
        patch.setattr(
            MultiHeadAttention,
            "attend",
            lambda self, q, k, v, mask=None, causal=False: (
                masks.append(mask) or attend(self, q, k, v, mask, causal=causal)
            ),
        )
        states = model.decoder_states(source, target, padded=False)
    assert torch.equal(states, expected)
    if "attention_window" not in changes:
        assert masks == [None] * (2 + 2 * 3)
