"""Limits, prefixes, repetitions and ensembles: the search against enumeration and a plain search that filter.

The references ask the models for whole sentences, and drop what a constraint forbids.
"""

import random
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.model import Transformer
from nmt.search import Hypothesis, beam_search

ALPHAS = [0.0, 0.6, 1.5]
A, B, C = range(UNK + 1, UNK + 4)
CONSTRAINTS = [
    ({"min_length": 2}, []),
    ({"max_length": 2}, []),
    ({"min_length": 2, "max_length": 2}, []),
    ({"min_length": 9}, []),
    ({"no_repeat_ngram_size": 1}, []),
    ({"no_repeat_ngram_size": 2}, []),
    ({"no_repeat_ngram_size": 3}, []),
    ({"no_repeat_ngram_size": 1, "min_length": 2}, []),
    ({}, [B]),
    ({}, [C, A]),
    ({"max_length": 1}, [C, A]),
    ({"min_length": 3}, [A]),
    ({"no_repeat_ngram_size": 1}, [A, A]),
    ({"no_repeat_ngram_size": 2, "max_length": 4}, [B, B, B]),
    ({"no_repeat_ngram_size": 2, "min_length": 3}, [B, C]),
]


def tiny_model(words: int = 3, seed: int = 2, **settings) -> Transformer:
    """A random Transformer over `words` words, of more than one opinion about where to end."""
    torch.manual_seed(seed)
    base = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 32, "d_ff": 32, "heads": 2, "dropout": 0.0}
    model = Transformer(ModelConfig(name="tiny", **{**base, **settings}), UNK + 1 + words).eval()
    model.output.bias = nn.Parameter(torch.zeros(model.vocabulary_size))
    with torch.no_grad():
        model.output.bias[EOS] = 0.5
        model.output.weight.mul_(2)
    return model


def random_sources(lengths: list[int], words: int = 3) -> list[list[int]]:
    """Sentences of the given lengths; the end symbol, which closes each, is counted."""
    draw = random.Random(7)
    return [[draw.randint(UNK + 1, UNK + words) for _ in range(n - 1)] + [EOS] for n in lengths]


def search(
    models: list[Transformer], sources: list[list[int]], config: DecodeConfig, prefixes: list[list[int]] | None = None
) -> list[list[Hypothesis]]:
    longest = max(map(len, sources))
    return beam_search(models, torch.tensor([s + [PAD] * (longest - len(s)) for s in sources]), config, prefixes)


@torch.no_grad()
def log_probabilities(models: list[Transformer], source: list[int], targets: list[list[int]]) -> Tensor:
    """log of the average probability of every token after each prefix of targets of one length."""
    rows = torch.tensor([[BOS, *target] for target in targets])
    source_BS = torch.tensor([source]).expand(len(rows), -1)
    return torch.stack([model(source_BS, rows).softmax(dim=-1) for model in models]).mean(0).log()


def most_tokens(source: list[int], config: DecodeConfig, prefix: list[int]) -> int:
    """Of a translation, the end symbol not counted; a prefix is written whatever the limits say."""
    most = len(source) + config.max_extra_length - 1
    return max(most if config.max_length is None else min(most, config.max_length), len(prefix))


def repeats(target: list[int], n: int, prefix: list[int]) -> bool:
    """Whether n tokens in a row come twice, the second time not within the prefix."""
    grams = [tuple(target[i : i + n]) for i in range(len(target) - n + 1)] if n else []
    return any(gram in grams[:i] for i, gram in enumerate(grams) if i + n > len(prefix))


def allowed(target: list[int], config: DecodeConfig, prefix: list[int], most: int) -> bool:
    """Whether a translation that ends so may be given."""
    return (
        target[: len(prefix)] == prefix
        and min(config.min_length, most) <= len(target) <= most
        and not repeats(target, config.no_repeat_ngram_size, prefix)
    )


def enumerate_all(
    models: list[Transformer], source: list[int], config: DecodeConfig, prefix: list[int]
) -> list[tuple[float, list[int]]]:
    """Every translation that is allowed, with its score, best first."""
    most = most_tokens(source, config, prefix)
    found = []
    for length in range(most + 1):
        targets = [list(target) for target in product(range(UNK + 1, models[0].vocabulary_size), repeat=length)]
        steps = log_probabilities(models, source, targets)
        tokens = torch.tensor([[*target, EOS] for target in targets])
        sums = steps.gather(2, tokens[:, :, None]).sum(dim=(1, 2)) / ((6 + length) / 6) ** config.length_penalty
        found += [
            (score, target)
            for score, target in zip(sums.tolist(), targets, strict=True)
            if allowed(target, config, prefix, most)
        ]
    return sorted(found, reverse=True)


def beam_reference(
    models: list[Transformer], source: list[int], config: DecodeConfig, prefix: list[int]
) -> list[tuple[float, list[int]]]:
    """n_best of a beam search that never stops early."""
    most = most_tokens(source, config, prefix)
    words = range(UNK + 1, models[0].vocabulary_size)
    living: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    while living:
        steps = log_probabilities(models, source, [tokens for _, tokens in living])[:, -1].tolist()
        grown = [
            (logp + step[token], [*tokens, token])
            for (logp, tokens), step in zip(living, steps, strict=True)
            for token in (EOS, *words)
            if (
                allowed(tokens, config, prefix, most)
                if token == EOS
                else may_begin([*tokens, token], config, prefix, most)
            )
        ]
        grown.sort(reverse=True)
        ended += [(logp, tokens[:-1]) for logp, tokens in grown[: config.beam_size] if tokens[-1] == EOS]
        living = [(logp, tokens) for logp, tokens in grown if tokens[-1] != EOS][: config.beam_size]
    scored = [(logp / ((6 + len(tokens)) / 6) ** config.length_penalty, tokens) for logp, tokens in ended]
    return sorted(scored, reverse=True)[: config.n_best]


def may_begin(tokens: list[int], config: DecodeConfig, prefix: list[int], most: int) -> bool:
    """Whether a translation may begin so."""
    length = min(len(tokens), len(prefix))
    fits = len(tokens) <= most and tokens[:length] == prefix[:length]
    return fits and not repeats(tokens, config.no_repeat_ngram_size, prefix)


def assert_same(found: list[Hypothesis], expected: list[tuple[float, list[int]]]) -> None:
    assert [h.tokens for h in found] == [tokens for _, tokens in expected]
    assert [h.score for h in found] == pytest.approx([score for score, _ in expected], abs=1e-4)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("settings", "prefix"), CONSTRAINTS, ids=str)
def test_a_beam_that_holds_everything_finds_all_that_a_constraint_allows_in_order(settings, prefix, alpha):
    models = [tiny_model()]
    config = DecodeConfig(beam_size=130, n_best=130, length_penalty=alpha, max_extra_length=2, **settings)
    for source in random_sources([1, 2, 3]):
        everything = enumerate_all(models, source, config, prefix)
        assert everything
        assert_same(search(models, [source], config, [prefix])[0], everything[:130])


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("settings", "prefix"), CONSTRAINTS, ids=str)
def test_a_constrained_search_that_stops_early_misses_nothing(settings, prefix, alpha):
    """A wide beam gives the best there is; narrow ones give what a search gives that never stops early."""
    models = [tiny_model(seed=4)]
    sources = random_sources([1, 3, 4])
    for beam, n_best in ((1, 1), (2, 1), (4, 3)):
        config = DecodeConfig(beam_size=beam, n_best=n_best, length_penalty=alpha, max_extra_length=3, **settings)
        for source in sources if beam > 1 else []:
            assert_same(search(models, [source], config, [prefix])[0], beam_reference(models, source, config, prefix))
        if beam == 1:
            for source, [found] in zip(sources, search(models, sources, config, [prefix] * 3), strict=True):
                most = most_tokens(source, config, prefix)
                assert allowed(found.tokens, config, prefix, most)
    wide = DecodeConfig(beam_size=400, length_penalty=alpha, max_extra_length=2, **settings)
    for source in sources:
        assert_same(search(models, [source], wide, [prefix])[0], enumerate_all(models, source, wide, prefix)[:1])


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(
    "settings", [{}, {"no_repeat_ngram_size": 1}, {"no_repeat_ngram_size": 2, "min_length": 4}], ids=str
)
def test_prefixes_of_their_own_do_not_meet_in_a_batch(settings, beam):
    """Neither where a sentence's prefix is shorter than its neighbour's, nor where it has none."""
    models = [tiny_model(words=9)]
    sources = random_sources([3, 2, 6, 3, 5], words=9)
    prefixes = [[], [A], [A, A, B, A, A], [C, B], [B] * 9]
    config = DecodeConfig(beam_size=beam, n_best=beam, max_extra_length=4, **settings)
    together = search(models, sources, config, prefixes)
    for source, prefix, found in zip(sources, prefixes, together, strict=True):
        [alone] = search(models, [source], config, [prefix])
        assert_same(found, [(h.score, h.tokens) for h in alone])
        assert all(h.tokens[: len(prefix)] == prefix for h in found)
        assert not any(repeats(h.tokens, config.no_repeat_ngram_size, prefix) for h in found)


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("beam", [1, 4])
def test_no_ngram_comes_twice_however_long_the_translation(n, beam):
    models = [tiny_model(words=12, seed=seed) for seed in range(2)]
    sources = random_sources([4, 9, 2, 7], words=12)
    settings = {"beam_size": beam, "n_best": beam, "min_length": 10, "max_extra_length": 30}
    free = search(models, sources, DecodeConfig(**settings))
    assert all(repeats(h.tokens, n, []) for found in free for h in found), "else the constraint would do nothing"
    for found in search(models, sources, DecodeConfig(**settings, no_repeat_ngram_size=n)):
        assert found
        assert not any(repeats(h.tokens, n, []) for h in found)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("sample", [False, True])
def test_a_least_length_yields_where_no_word_is_left(beam, sample):
    """Three words of which none comes twice make no translation of five."""
    config = DecodeConfig(
        beam_size=beam, n_best=beam, min_length=5, no_repeat_ngram_size=1, do_sample=sample, max_extra_length=9
    )
    for found in search([tiny_model()], random_sources([2, 4]), config):
        assert found
        assert {tuple(sorted(h.tokens)) for h in found} == {(A, B, C)}


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("settings", "prefix"), [({}, []), ({"no_repeat_ngram_size": 2}, [B])], ids=str)
def test_an_ensemble_of_different_models_averages_their_probabilities(alpha, settings, prefix):
    models = [tiny_model(seed=1), tiny_model(seed=2, d_model=16, norm="pre"), tiny_model(seed=3, positions="learned")]
    for source in random_sources([2, 3]):
        wide = DecodeConfig(beam_size=130, n_best=9, length_penalty=alpha, max_extra_length=1, **settings)
        everything = enumerate_all(models, source, wide, prefix)
        assert_same(search(models, [source], wide, [prefix])[0], everything[:9])
        narrow = DecodeConfig(beam_size=3, n_best=2, length_penalty=alpha, max_extra_length=4, **settings)
        assert_same(search(models, [source], narrow, [prefix])[0], beam_reference(models, source, narrow, prefix))
        assert everything[:9] != enumerate_all(models[:1], source, wide, prefix)[:9]


@pytest.mark.parametrize("beam", [1, 2, 4])
def test_equally_probable_words_are_chosen_alike_alone_and_in_any_company(beam):
    """A model without an opinion: its output weights are all zero."""
    model = tiny_model(words=300)
    with torch.no_grad():
        model.output.weight.zero_()
    sources = random_sources([3, 1, 7, 4, 4, 2], words=300)
    config = DecodeConfig(beam_size=beam, n_best=beam, max_extra_length=3, min_length=2)
    alone = [search([model], [source], config)[0] for source in sources]
    for seed in range(3):
        order = random.Random(seed).sample(range(len(sources)), len(sources))
        together = search([model], [sources[place] for place in order], config)
        assert [[h.tokens for h in found] for found in together] == [[h.tokens for h in alone[i]] for i in order]
