"""Forced decoding against the model's own logits; attention weights against torch's attention, written out by hand."""

import pytest
import torch
import torch.nn.functional as F

from nmt.config import BOS, EOS, ModelConfig
from nmt.model import Transformer
from nmt.search import aligning_layer, forced_decoding

VOCABULARY = 40
PAIRS = [
    ([5, 6, 7], [8, 9]),
    ([9], [4, 5, 6, 7, 8, 9, 10]),
    ([11, 12, 13, 14], []),
    ([], [15]),
    ([5, 6], [8, 9]),
]


def random_model(seed: int, **settings) -> Transformer:
    torch.manual_seed(seed)
    base = {
        "encoder_layers": 2,
        "decoder_layers": 3,
        "d_model": 16,
        "d_ff": 24,
        "heads": 4,
        "d_k": 3,
        "d_v": 5,
    }
    model = Transformer(ModelConfig(name="tiny", **{**base, **settings}), VOCABULARY)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "attention" in name:
                parameter.mul_(3)
    return model.eval()


def by_forward(model: Transformer, source: list[int], target: list[int]) -> torch.Tensor:
    """log P of each token and the end symbol, from the logits of this pair alone."""
    logits = model(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0]
    return logits.log_softmax(-1)[
        torch.arange(len(target) + 1), torch.tensor([*target, EOS])
    ].detach()


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("budget", [1, 12, 1000])
def test_log_probabilities_are_those_of_the_models_logits(norm, budget, monkeypatch):
    monkeypatch.setattr("nmt.search.forced.POSITIONS_AT_ONCE", 3)
    model = random_model(1, norm=norm)
    for (source, target), judged in zip(
        PAIRS, forced_decoding([model], PAIRS, budget, align=True), strict=True
    ):
        assert judged.log_probabilities == pytest.approx(
            by_forward(model, source, target).tolist(), abs=1e-5
        )
        assert judged.attention.shape == (len(target), len(source))


def test_an_ensemble_averages_the_probabilities_of_each_token():
    models = [
        random_model(seed, decoder_layers=layers) for seed, layers in ((1, 1), (2, 2), (3, 3))
    ]
    for (source, target), judged in zip(PAIRS, forced_decoding(models, PAIRS, 30), strict=True):
        mean = (
            torch.stack([by_forward(model, source, target).exp() for model in models]).mean(0).log()
        )
        assert judged.log_probabilities == pytest.approx(mean.tolist(), abs=1e-5)


def torch_attention(monkeypatch, model, source, target):
    """Queries, keys and masks as they enter torch's attention, by turns of the layers; its weights from them."""
    weights, original = [], F.scaled_dot_product_attention

    def record(q, k, v, attn_mask=None, **options):
        # With the unit matrix for values, attention gives its weights.
        unit = torch.eye(k.shape[2]).expand(*k.shape[:2], -1, -1)
        weights.append(original(q, k, unit, attn_mask=attn_mask, **options))
        return original(q, k, v, attn_mask=attn_mask, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", record)
    with torch.no_grad():
        model(source, target)
    monkeypatch.undo()
    return weights


def test_attention_of_a_pair_is_the_mean_over_heads_and_models_at_the_step_that_predicts_the_token(
    monkeypatch,
):
    models = [random_model(1), random_model(2, decoder_layers=1, heads=2)]
    judged = forced_decoding(models, PAIRS, 1000, align=True)
    for (source, target), scores in zip(PAIRS, judged, strict=True):
        pair, weights = (torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]])), []
        for model in models:  # two encoder layers come first, and in the decoder, self-attention
            layer = aligning_layer(len(model.decoder_layers))
            weights.append(torch_attention(monkeypatch, model, *pair)[2 + 2 * layer + 1][0].mean(0))
        expected = (sum(weights) / 2)[: len(target), : len(source)]
        torch.testing.assert_close(torch.from_numpy(scores.attention), expected)
