"""Sampling against the probabilities that a model gives to whole sentences."""

import math
import random
from collections import Counter
from itertools import product

import pytest
import torch

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig
from nmt.model import Transformer
from nmt.search import Hypothesis, beam_search
from nmt.search.sampling import draw, gumbel, sentence_keys
from tests.core.test_search import log_probabilities, tiny_model

SEEDS, DRAWN = 60, 40
NEVER = [PAD, BOS, UNK]
MODEL, RICH = tiny_model(4, seed=3, bias={EOS: 1.0}), tiny_model(60, seed=3, bias={EOS: 1.0})
SOURCES = [[5, EOS], [6, 7, 4, EOS], [4, 4, EOS], [7, EOS], [5, 6, 7, 4, 5, 6, EOS]]


def sample(
    sources: list[list[int]], model: Transformer = MODEL, **settings
) -> list[list[Hypothesis]]:
    longest = max(map(len, sources))
    source_BS = torch.tensor([s + [PAD] * (longest - len(s)) for s in sources])
    return beam_search([model], source_BS, DecodeConfig(do_sample=True, **settings))


def tokens(hyps: list[list[Hypothesis]]) -> list[list[list[int]]]:
    return [[h.tokens for h in hypotheses] for hypotheses in hyps]


def chances(
    source: list[int], target: list[int], config: DecodeConfig, most: int
) -> dict[int, float]:
    """The probability of each next token."""
    if len(target) == most:
        return {EOS: 1.0}
    logp = log_probabilities([MODEL], source, [target])[0, -1].tolist()
    likely = sorted(
        (t for t in range(MODEL.vocabulary_size) if t not in NEVER), key=lambda t: -logp[t]
    )
    likely = likely[: config.top_k or None]
    weights = [math.exp(logp[token] / config.temperature) for token in likely]
    drawn, before = {}, 0.0
    for token, weight in zip(likely, weights, strict=True):
        if before < config.top_p * sum(weights):
            drawn[token] = weight
        before += weight
    return {token: weight / sum(drawn.values()) for token, weight in drawn.items()}


def distribution(
    source: list[int], config: DecodeConfig, most: int
) -> dict[tuple[int, ...], float]:
    """The probability of each translation of at most `most` tokens."""
    hyps = {}
    for length in range(most + 1):
        for target in product(range(UNK + 1, MODEL.vocabulary_size), repeat=length):
            probability = 1.0
            for position, token in enumerate([*target, EOS]):
                probability *= chances(source, list(target[:position]), config, most).get(
                    token, 0.0
                )
            hyps[target] = probability
    return hyps


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"temperature": 3.0},
        {"top_k": 2},
        {"top_k": 3, "temperature": 2.0},
        {"top_p": 0.8},
        {"top_p": 0.7, "top_k": 4, "temperature": 1.5},
    ],
    ids=str,
)
def test_translations_are_drawn_as_often_as_their_probability_says(settings):
    """By Pearson's chi-square, whose mean is its degrees of freedom, within five standard deviations."""
    config = DecodeConfig(do_sample=True, n_best=DRAWN, max_length=2, **settings)
    drawn = [
        tokens(sample(SOURCES[:2], seed=seed, n_best=DRAWN, max_length=2, **settings))
        for seed in range(SEEDS)
    ]
    for place, source in enumerate(SOURCES[:2]):
        counts = Counter(tuple(target) for hyps in drawn for target in hyps[place])
        expected = {
            target: SEEDS * DRAWN * p
            for target, p in distribution(source, config, most=2).items()
            if p > 0
        }
        assert sum(counts.values()) == SEEDS * DRAWN
        assert sum(expected.values()) == pytest.approx(SEEDS * DRAWN)
        assert set(counts) <= set(expected)
        rare = [target for target, count in expected.items() if count < 5]
        cells = [(counts[target], count) for target, count in expected.items() if count >= 5]
        cells.append(
            (
                sum(counts[target] for target in rare),
                sum(expected[target] for target in rare) or 1e-9,
            )
        )
        cells = [(seen, count) for seen, count in cells if count >= 1]
        statistic, freedom = (
            sum((seen - count) ** 2 / count for seen, count in cells),
            max(len(cells) - 1, 1),
        )
        assert statistic < freedom + 5 * math.sqrt(2 * freedom)


def test_another_seed_draws_other_translations():
    one, two, three = (
        tokens(sample(SOURCES, RICH, n_best=4, max_length=6, seed=seed)) for seed in (1, 2, 2**62)
    )
    assert all(a != b and a != c for a, b, c in zip(one, two, three, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"top_k": 5}, {"top_p": 0.6}, {"no_repeat_ngram_size": 1}], ids=str
)
def test_what_is_drawn_for_a_sentence_depends_on_it_alone(settings):
    sources = [*SOURCES, *([n, n + 1, EOS] for n in range(4, 30))]
    settings = {"n_best": 3, "max_extra_length": 6, **settings}
    alone = [tokens(sample([source], RICH, **settings))[0] for source in sources]
    for seed in range(2):
        order = random.Random(seed).sample(range(len(sources)), len(sources))
        assert tokens(sample([sources[i] for i in order], RICH, **settings)) == [
            alone[i] for i in order
        ]


@pytest.mark.parametrize("settings", [{}, {"top_p": 0.9}, {"top_k": 40}], ids=str)
def test_rounding_decides_no_draw(settings):
    """Batches of other shapes round otherwise, and among thousands of tokens some differ by rounding only."""
    generator = torch.Generator().manual_seed(1)
    logp = torch.randn(300, 2, 4000, generator=generator).log_softmax(dim=2)
    rounded = logp + 4e-6 * torch.randn(logp.shape, generator=generator)
    config, keys = (
        DecodeConfig(do_sample=True, temperature=1.5, **settings),
        sentence_keys(torch.arange(300)[:, None], 2, 1),
    )
    assert draw(logp, config, keys, 1).equal(draw(rounded, config, keys, 1))


def test_gumbel_numbers_have_gumbels_distribution():
    """The mean is Euler's constant, the variance pi^2 / 6; neighboring tokens, positions and keys are unrelated."""
    keys = sentence_keys(torch.tensor([[5, EOS], [5, 6]]), 2, seed=1)
    noise = (
        torch.stack([gumbel(keys, position, torch.arange(50_000)) for position in (1, 2)])
        .double()
        .flatten(0, 2)
    )
    assert noise.isfinite().all()
    assert noise.mean(dim=1).tolist() == pytest.approx([0.5772] * 8, abs=0.03)
    assert noise.var(dim=1).tolist() == pytest.approx([math.pi**2 / 6] * 8, abs=0.06)
    uniform = (-(-noise).exp()).exp()
    shares = torch.stack(
        [((uniform >= n / 20) & (uniform < (n + 1) / 20)).double().mean(dim=1) for n in range(20)]
    )
    assert shares.flatten().tolist() == pytest.approx([0.05] * 160, abs=0.005)
    related = torch.cat(
        (torch.corrcoef(noise), torch.corrcoef(torch.cat((noise[:, :-1], noise[:, 1:])))[8:, :8])
    )
    assert (related - torch.cat((torch.eye(8), torch.zeros(8, 8)))).abs().max() < 0.025


@pytest.mark.parametrize(
    "settings", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-6}], ids=str
)
def test_nothing_but_the_likeliest_is_greedy_search(settings):
    source_BS = torch.tensor([s + [PAD] * (7 - len(s)) for s in SOURCES])
    greedy = tokens(beam_search([RICH], source_BS, DecodeConfig(beam_size=1, max_extra_length=6)))
    assert tokens(sample(SOURCES, RICH, max_extra_length=6, **settings)) == greedy
    assert tokens(sample(SOURCES, RICH, n_best=2, max_extra_length=6, **settings)) == [
        2 * hyps for hyps in greedy
    ]


@pytest.mark.parametrize("n", [1, 2])
def test_samples_of_few_words_that_may_not_repeat_all_end(n):
    """Samples that ended early have no word left to continue with."""
    for hyps in sample(SOURCES, n_best=50, max_extra_length=30, no_repeat_ngram_size=n):
        assert len(hyps) == 50
        assert len({len(h.tokens) for h in hyps}) > 2
        for h in hyps:
            grams = [tuple(h.tokens[i : i + n]) for i in range(len(h.tokens) - n + 1)]
            assert len(set(grams)) == len(grams)
