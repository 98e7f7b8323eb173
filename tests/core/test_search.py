"""Search against enumeration, and against a plain beam search that scores whole sentences."""

import random
from functools import cache
from itertools import product

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig, NMTError
from nmt.model import Transformer
from nmt.search import Hypothesis, beam_search, penalty
from nmt.search.choices import BLOCK_TOKENS, largest

ALPHAS = [0.0, 0.6, 1.5]
A, B, C = range(UNK + 1, UNK + 4)
WIDTHS = [
    1,
    5,
    63,
    64,
    65,
    4 * BLOCK_TOKENS - 1,
    4 * BLOCK_TOKENS,
    1000,
    8 * BLOCK_TOKENS * 4 + 17,
    5003,
]
MODELS = {
    "paper": {},
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned"},
    "untied, d_k != d_v": {"tied_embeddings": False, "d_k": 3, "d_v": 5},
    "additive, restricted": {"attention": "additive", "attention_window": 3},
    "ssru": {"decoder": "ssru"},
}
CONSTRAINTS = [
    ({}, []),
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


def tiny_model(
    words: int = 3, seed: int = 2, bias: dict[int, float] | None = None, **settings
) -> Transformer:
    """A random Transformer over `words` words that is undecided about where to end."""
    torch.manual_seed(seed)
    base = {
        "encoder_layers": 1,
        "decoder_layers": 1,
        "d_model": 32,
        "d_ff": 32,
        "heads": 2,
        "dropout": 0.0,
    }
    model = Transformer(ModelConfig(name="tiny", **{**base, **settings}), UNK + 1 + words).eval()
    model.output.bias = nn.Parameter(torch.zeros(model.vocabulary_size))
    with torch.no_grad():
        model.output.weight.mul_(2)
        for token, value in {EOS: 0.5, **(bias or {})}.items():
            model.output.bias[token] = value
    return model


@cache
def stutterer(variant: str) -> Transformer:
    """A Transformer over eight words that has learned to write each source word zero to two times.

    It never knows when to end, so translations differ in words and in length.
    """
    model, draw = tiny_model(words=8, **MODELS[variant]), random.Random(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(60):
        length = draw.randint(2, 8)
        sources = [[draw.randint(UNK + 1, UNK + 8) for _ in range(length)] for _ in range(32)]
        targets = [
            [BOS, *(word for word in source for _ in range(draw.choice((0, 1, 1, 2)))), EOS]
            for source in sources
        ]
        longest = max(map(len, targets))
        rows = torch.tensor([target + [PAD] * (longest - len(target)) for target in targets])
        logits = model(torch.tensor([[*source, EOS] for source in sources]), rows[:, :-1])
        optimizer.zero_grad()
        cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), ignore_index=PAD).backward()
        optimizer.step()
    return model


def random_sources(lengths: list[int], words: int = 3) -> list[list[int]]:
    """Sentences of these lengths, end symbol included."""
    draw = random.Random(7)
    return [[draw.randint(UNK + 1, UNK + words) for _ in range(n - 1)] + [EOS] for n in lengths]


def search(
    models: list[Transformer],
    sources: list[list[int]],
    config: DecodeConfig,
    prefixes: list[list[int]] | None = None,
) -> list[list[Hypothesis]]:
    longest = max(map(len, sources))
    return beam_search(
        models, torch.tensor([s + [PAD] * (longest - len(s)) for s in sources]), config, prefixes
    )


@torch.no_grad()
def log_probabilities(
    models: list[Transformer], source: list[int], targets: list[list[int]]
) -> Tensor:
    """log of the average probability of every token after each prefix of targets of one length."""
    rows = torch.tensor([[BOS, *target] for target in targets])
    source_BS = torch.tensor([source]).expand(len(rows), -1)
    return torch.stack([model(source_BS, rows).softmax(dim=-1) for model in models]).mean(0).log()


def most_tokens(source: list[int], config: DecodeConfig, prefix: list[int]) -> int:
    """Of a translation without its end symbol; limits do not apply to a prefix."""
    most = len(source) + config.max_extra_length - 1
    return max(most if config.max_length is None else min(most, config.max_length), len(prefix))


def repeats(target: list[int], n: int, prefix: list[int]) -> bool:
    """Whether an n-gram occurs twice, the second time not within the prefix."""
    grams = [tuple(target[i : i + n]) for i in range(len(target) - n + 1)] if n else []
    return any(gram in grams[:i] for i, gram in enumerate(grams) if i + n > len(prefix))


def allowed(target: list[int], config: DecodeConfig, prefix: list[int], most: int) -> bool:
    """Whether this may be a whole translation."""
    return (
        target[: len(prefix)] == prefix
        and min(config.min_length, most) <= len(target) <= most
        and not repeats(target, config.no_repeat_ngram_size, prefix)
    )


def enumerate_all(
    models: list[Transformer], source: list[int], config: DecodeConfig, prefix: list[int]
) -> list[tuple[float, list[int]]]:
    """All allowed translations with their scores, best first."""
    most = most_tokens(source, config, prefix)
    hyps = []
    for length in range(most + 1):
        targets = [
            list(target)
            for target in product(range(UNK + 1, models[0].vocabulary_size), repeat=length)
        ]
        steps = log_probabilities(models, source, targets)
        tokens = torch.tensor([[*target, EOS] for target in targets])
        sums = steps.gather(2, tokens[:, :, None]).sum(dim=(1, 2)) / penalty(length + 1, config)
        hyps += [
            (score, target)
            for score, target in zip(sums.tolist(), targets, strict=True)
            if allowed(target, config, prefix, most)
        ]
    return sorted(hyps, reverse=True)


def beam_reference(
    models: list[Transformer],
    source: list[int],
    config: DecodeConfig,
    prefix: list[int],
    early: bool = False,
) -> tuple[list[tuple[float, list[int]]], int]:
    """n_best of a plain beam search, and its steps; with `early` it stops when nothing can beat the best.

    A greedy search, with a beam of 1, stops at the first translation.
    """
    most, length, words = (
        most_tokens(source, config, prefix),
        0,
        range(UNK + 1, models[0].vocabulary_size),
    )
    living: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    best: list[tuple[float, list[int]]] = []
    rules = config, prefix, most
    while living and not (config.beam_size == 1 and ended):
        length += 1
        steps = log_probabilities(models, source, [tokens for _, tokens in living])[:, -1].tolist()
        grown = [
            (logp + step[token], [*tokens, token])
            for (logp, tokens), step in zip(living, steps, strict=True)
            for token in (EOS, *words)
            if (allowed(tokens, *rules) if token == EOS else may_begin([*tokens, token], *rules))
        ]
        grown.sort(reverse=True)
        ended += [
            (logp, tokens[:-1]) for logp, tokens in grown[: config.beam_size] if tokens[-1] == EOS
        ]
        living = [(logp, tokens) for logp, tokens in grown if tokens[-1] != EOS][: config.beam_size]
        scored = [(logp / penalty(len(tokens) + 1, config), tokens) for logp, tokens in ended]
        best = sorted(scored, reverse=True)[: config.n_best]
        hope = max((logp / penalty(most + 1, config) for logp, _ in living), default=-float("inf"))
        if early and len(best) == config.n_best and hope <= best[-1][0]:
            break
    return best, length


def may_begin(tokens: list[int], config: DecodeConfig, prefix: list[int], most: int) -> bool:
    """Whether a translation may begin like this."""
    length = min(len(tokens), len(prefix))
    fits = len(tokens) <= most and tokens[:length] == prefix[:length]
    return fits and not repeats(tokens, config.no_repeat_ngram_size, prefix)


def assert_same(hyps: list[Hypothesis], expected: list[tuple[float, list[int]]]) -> None:
    assert [h.tokens for h in hyps] == [tokens for _, tokens in expected]
    assert [h.score for h in hyps] == pytest.approx([score for score, _ in expected], abs=1e-4)


@pytest.mark.parametrize(
    ("length", "alpha", "expected"),
    [
        (1, 0.6, 1.0),
        (7, 1.0, 2.0),
        (7, 0.0, 1.0),
        (19, 0.5, 2.0),
        (13, 0.6, 1.9331820449317627),
        (2, 2.0, 49 / 36),
    ],
)
def test_length_penalty_by_hand(length, alpha, expected):
    gnmt, marian = (
        DecodeConfig(length_penalty=alpha),
        DecodeConfig(length_penalty=alpha, length_penalty_kind="marian"),
    )
    assert penalty(length, gnmt) == pytest.approx(expected)
    assert penalty(length, marian) == pytest.approx(length**alpha)


@pytest.mark.parametrize("kind", ["gnmt", "marian"])
@pytest.mark.parametrize(("settings", "prefix"), CONSTRAINTS, ids=str)
def test_a_beam_that_holds_everything_finds_all_that_a_constraint_allows_in_order(
    settings, prefix, kind
):
    models, alpha = [tiny_model()], {"length_penalty": 0.8, "length_penalty_kind": kind}
    config = DecodeConfig(beam_size=130, n_best=130, max_extra_length=2, **alpha, **settings)
    for source in random_sources([1, 2, 3]):
        everything = enumerate_all(models, source, config, prefix)
        assert everything
        assert_same(search(models, [source], config, [prefix])[0], everything[:130])


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 1.5])
@pytest.mark.parametrize(("settings", "prefix"), CONSTRAINTS, ids=str)
def test_a_constrained_search_that_stops_early_misses_nothing(settings, prefix, alpha):
    """Narrow beams give what a search gives that never stops early."""
    models = [tiny_model(seed=4)]
    for beam, n_best in ((1, 1), (2, 1), (4, 3)):
        config = DecodeConfig(
            beam_size=beam, n_best=n_best, length_penalty=alpha, max_extra_length=3, **settings
        )
        for source in random_sources([1, 3, 4]):
            expected, _ = beam_reference(models, source, config, prefix)
            assert_same(search(models, [source], config, [prefix])[0], expected)


@pytest.mark.parametrize("variant", ["paper", "learned positions"])
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("beam", "n_best"), [(2, 1), (4, 4)])
def test_a_trained_model_is_searched_as_by_the_reference_and_no_step_longer(
    variant, alpha, beam, n_best, monkeypatch
):
    model, counts = stutterer(variant), []
    steps, step = [], model.step
    monkeypatch.setattr(model, "step", lambda *arguments: steps.append(1) or step(*arguments))
    config = DecodeConfig(beam_size=beam, n_best=n_best, length_penalty=alpha, max_extra_length=12)
    for source in random_sources([2, 5, 4], words=8):
        steps.clear()
        [hyps] = search([model], [source], config)
        expected, needed = beam_reference([model], source, config, [], early=True)
        assert_same(hyps, expected)
        counts.append((len(steps), needed, len(source) + 12))
    assert [took for took, _, _ in counts] == [needed for _, needed, _ in counts]
    assert any(took < limit for took, _, limit in counts)


@pytest.mark.slow
@pytest.mark.parametrize("variant", MODELS)
def test_order_and_batching_do_not_change_a_hypothesis_and_scores_are_those_of_forced_decoding(
    variant, monkeypatch
):
    model, rows = tiny_model(words=12, **MODELS[variant]), []
    sources = random_sources([1, 9, 2, 4, 4, 7, 3, 12, 1, 5], words=12)
    config = DecodeConfig(beam_size=4, n_best=3, max_extra_length=6)
    alone = [search([model], [source], config)[0] for source in sources]
    step = model.step
    monkeypatch.setattr(
        model, "step", lambda last_BK, *rest: rows.append(len(last_BK)) or step(last_BK, *rest)
    )
    for seed in range(2):
        order = random.Random(seed).choices(range(len(sources)), k=40)
        together = search([model], [sources[i] for i in order], config)
        for place, hyps in zip(order, together, strict=True):
            assert_same(hyps, [(h.score, h.tokens) for h in alone[place]])
    assert {40} < {n for n in rows if n > 16} <= {24, 32, 40}  # few shapes
    for source, hyps in zip(sources, alone, strict=True):
        assert len({tuple(h.tokens) for h in hyps}) == 3
        for h in hyps:
            logp = log_probabilities([model], source, [h.tokens])[0]
            forced = sum(logp[place, token].item() for place, token in enumerate([*h.tokens, EOS]))
            assert h.log_probability == pytest.approx(forced, abs=1e-4)
            assert h.score == pytest.approx(forced / penalty(len(h.tokens) + 1, config), abs=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
def test_a_model_that_never_wants_to_end_ends_at_the_limit_without_special_symbols(beam):
    model = tiny_model(words=12, bias={EOS: -20.0, PAD: 9.0, BOS: 9.0, UNK: 9.0})
    sources = random_sources([1, 3, 6, 2], words=12)
    for extra in (0, 7):
        config = DecodeConfig(beam_size=beam, n_best=beam, max_extra_length=extra)
        for source, hyps in zip(sources, search([model], sources, config), strict=True):
            assert {len(h.tokens) + 1 for h in hyps} == {len(source) + extra}
            assert not {PAD, BOS, EOS, UNK} & {token for h in hyps for token in h.tokens}


@pytest.mark.parametrize("beam", [1, 3])
def test_learned_positions_end_a_translation_before_the_limit_does_and_limit_sources(beam):
    model = tiny_model(words=12, bias={EOS: -20.0}, positions="learned", max_positions=6)
    for hyps in search(
        [model], random_sources([2, 6, 4], words=12), DecodeConfig(beam_size=beam, n_best=1)
    ):
        assert len(hyps[0].tokens) + 1 == 6
    with pytest.raises(NMTError, match=r"7 tokens .*model\.max_positions=6"):
        search([model], random_sources([7], words=12), DecodeConfig(beam_size=beam))


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize(
    "settings",
    [{}, {"no_repeat_ngram_size": 1}, {"no_repeat_ngram_size": 2, "min_length": 4}],
    ids=str,
)
def test_prefixes_do_not_affect_other_sentences_of_the_batch(settings, beam):
    models = [tiny_model(words=9)]
    sources = random_sources([3, 2, 6, 3, 5], words=9)
    prefixes = [[], [A], [A, A, B, A, A], [C, B], [B] * 9]
    config = DecodeConfig(beam_size=beam, n_best=beam, max_extra_length=4, **settings)
    together = search(models, sources, config, prefixes)
    for source, prefix, hyps in zip(sources, prefixes, together, strict=True):
        [alone] = search(models, [source], config, [prefix])
        assert_same(hyps, [(h.score, h.tokens) for h in alone])
        assert all(h.tokens[: len(prefix)] == prefix for h in hyps)
        assert not any(repeats(h.tokens, config.no_repeat_ngram_size, prefix) for h in hyps)


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("sample", [False, True])
def test_a_minimum_length_yields_when_no_word_is_left(beam, sample):
    """Three words that may not repeat make no translation of five."""
    config = DecodeConfig(
        beam_size=beam,
        n_best=beam,
        min_length=5,
        no_repeat_ngram_size=1,
        do_sample=sample,
        max_extra_length=9,
    )
    for hyps in search([tiny_model()], random_sources([2, 4]), config):
        assert hyps
        assert {tuple(sorted(h.tokens)) for h in hyps} == {(A, B, C)}


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(
    ("settings", "prefix"), [({}, []), ({"no_repeat_ngram_size": 2}, [B])], ids=str
)
def test_an_ensemble_of_different_models_averages_their_probabilities(alpha, settings, prefix):
    models = [
        tiny_model(seed=1),
        tiny_model(seed=2, d_model=16, norm="pre"),
        tiny_model(seed=3, positions="learned"),
    ]
    for source in random_sources([2, 3]):
        wide = DecodeConfig(
            beam_size=130, n_best=9, length_penalty=alpha, max_extra_length=1, **settings
        )
        everything = enumerate_all(models, source, wide, prefix)
        assert_same(search(models, [source], wide, [prefix])[0], everything[:9])
        narrow = DecodeConfig(
            beam_size=3, n_best=2, length_penalty=alpha, max_extra_length=4, **settings
        )
        assert_same(
            search(models, [source], narrow, [prefix])[0],
            beam_reference(models, source, narrow, prefix)[0],
        )
        assert everything[:9] != enumerate_all(models[:1], source, wide, prefix)[:9]


@pytest.mark.parametrize("kind", ["random", "ties", "few finite", "the best at the end"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_largest_entries_are_those_of_a_sort_and_do_not_depend_on_other_rows(width, kind):
    generator = torch.Generator().manual_seed(width)
    x = torch.randn(9, width, generator=generator)
    if kind == "ties":
        x = x.round()
    if kind == "few finite":
        x = x.masked_fill(torch.rand(9, width, generator=generator) < 0.99, -torch.inf)
    if kind == "the best at the end":
        x[:, -min(width, 20) :] += 9
    for k in (1, 2, 8, 33):
        values, indices = largest(x, k)
        assert torch.equal(values, x.sort(dim=1, descending=True).values[:, :k])
        assert torch.equal(x.gather(1, indices), values)
        assert all(len(set(row)) == len(row) for row in indices.tolist())
        assert all(
            torch.equal(largest(x[row : row + 1], k)[1][0], indices[row]) for row in range(len(x))
        )
        assert torch.equal(largest(x.flip(0), k)[1].flip(0), indices)
