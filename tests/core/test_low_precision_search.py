"""Search and scores in bfloat16, against the same weights in float32."""

from copy import deepcopy

import pytest
import torch

from nmt.config import DecodeConfig
from nmt.search import TorchEngine
from tests.core.test_search import random_sources, stutterer

SETTINGS = [
    {"beam_size": 1},
    {"beam_size": 4, "n_best": 2},
    {"beam_size": 2, "no_repeat_ngram_size": 2, "min_length": 2},
    {"do_sample": True, "n_best": 3, "top_p": 0.9},
]
SOURCES = [source[:-1] for source in random_sources([3, 7, 2, 5, 9, 4], words=8)]


@pytest.fixture(scope="module", params=["paper", "ssru"])
def models(request):
    """A model, and the same weights in bfloat16, both computed in float32 and the second not."""
    low = deepcopy(stutterer(request.param)).to(torch.bfloat16)
    return deepcopy(low).float(), low


@pytest.mark.parametrize("ensemble", [1, 2])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_hypotheses_have_nearly_the_scores_of_float32(models, settings, ensemble):
    exact, low = models
    config = DecodeConfig(max_extra_length=6, **settings)
    results = TorchEngine([low] * ensemble, config).search(SOURCES, [[]] * len(SOURCES))
    hypotheses = [(source, h) for source, row in zip(SOURCES, results, strict=True) for h in row]
    assert len(hypotheses) == len(SOURCES) * config.n_best
    pairs = [(source, hypothesis.tokens) for source, hypothesis in hypotheses]
    scores = TorchEngine([exact], config).token_scores(pairs)
    for (_, hypothesis), score in zip(hypotheses, scores, strict=True):
        tokens = len(score.log_probabilities)
        assert abs(hypothesis.log_probability - sum(score.log_probabilities)) < 0.05 * tokens


def test_token_scores_and_attention_are_nearly_those_of_float32(models):
    exact, low = models
    pairs = [(source, source[::-1]) for source in SOURCES]
    config = DecodeConfig()
    both = (TorchEngine([model], config).token_scores(pairs) for model in (exact, low))
    for one, other in zip(*both, strict=True):
        assert other.log_probabilities == pytest.approx(one.log_probabilities, abs=0.2)
        assert other.log_probabilities != one.log_probabilities
        assert other.attention.dtype == one.attention.dtype
        assert other.attention == pytest.approx(one.attention, abs=0.02)
