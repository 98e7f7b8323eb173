"""Beam search against plain-Python searches that know no cache, and against exhaustive enumeration.

The references were written from Wu et al. (2016), section 7 and equation 14, and from the paper's section 6.1. They ask
the model for whole sentences with `forward`, never for single steps.
"""

import random
from functools import cache
from itertools import pairwise, product
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from nmt.config import BOS, EOS, PAD, UNK, DecodeConfig, ModelConfig
from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.search import Hypothesis, beam_search, penalty

MODELS = {
    "paper": {},
    "pre-norm": {"norm": "pre"},
    "learned positions": {"positions": "learned"},
    "untied, d_k != d_v": {"tied_embeddings": False, "d_k": 3, "d_v": 5},
    "additive, restricted": {"attention": "additive", "attention_window": 3},
}
ALPHAS = [0.0, 0.6, 1.0]


def tiny_model(words: int, seed: int = 2, bias: dict[int, float] | None = None, **settings) -> Transformer:
    """A random Transformer over `words` words; `bias` is added to its logits."""
    torch.manual_seed(seed)
    base = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 32, "d_ff": 32, "heads": 2, "dropout": 0.0}
    model = Transformer(ModelConfig(name="tiny", **{**base, **settings}), UNK + 1 + words).eval()
    model.output.bias = nn.Parameter(torch.zeros(model.vocabulary_size))
    with torch.no_grad():
        for token, value in (bias or {}).items():
            model.output.bias[token] = value
    return model


@cache
def stutterer(variant: str) -> Transformer:
    """A Transformer over eight words that has learnt to write each source word none, one or two times.

    It never knows when to end, so that the translations of a search differ in words and in length.
    """
    model, draw = tiny_model(words=8, **MODELS[variant]), random.Random(1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(100):
        length = draw.randint(2, 8)
        sources = [[draw.randint(UNK + 1, UNK + 8) for _ in range(length)] for _ in range(32)]
        targets = [
            [BOS, *(word for word in source for _ in range(draw.choice((0, 1, 1, 2)))), EOS] for source in sources
        ]
        longest = max(map(len, targets))
        rows = torch.tensor([target + [PAD] * (longest - len(target)) for target in targets])
        logits = model(torch.tensor([[*source, EOS] for source in sources]), rows[:, :-1])
        optimizer.zero_grad()
        cross_entropy(logits.flatten(0, 1), rows[:, 1:].flatten(), ignore_index=PAD).backward()
        optimizer.step()
    return model


def random_sources(model: Transformer, lengths: list[int], seed: int = 7) -> list[list[int]]:
    """Sentences of the given lengths; the end symbol, which closes each, is counted."""
    draw = random.Random(seed)
    return [[draw.randrange(UNK + 1, model.vocabulary_size) for _ in range(n - 1)] + [EOS] for n in lengths]


def search(model: Transformer, sources: list[list[int]], **settings) -> list[list[Hypothesis]]:
    longest = max(map(len, sources))
    source_BS = torch.tensor([s + [PAD] * (longest - len(s)) for s in sources])
    return beam_search([model], source_BS, DecodeConfig(**settings))


@torch.no_grad()
def log_probabilities(model: Transformer, source: list[int], targets: list[list[int]]) -> Tensor:
    """log P of every token after each prefix of targets of one length: [targets, length + 1, vocabulary]."""
    rows = torch.tensor([[BOS, *target] for target in targets])
    return model(torch.tensor([source]).expand(len(rows), -1), rows).log_softmax(dim=-1)


def forced_log_probability(model: Transformer, source: list[int], target: list[int]) -> float:
    steps = log_probabilities(model, source, [target])[0]
    return sum(steps[position, token].item() for position, token in enumerate([*target, EOS]))


def penalised(log_probability: float, target: list[int], alpha: float) -> float:
    return log_probability / ((5 + len(target) + 1) / 6) ** alpha


def enumerate_all(model: Transformer, source: list[int], limit: int, alpha: float) -> list[tuple[float, list[int]]]:
    """Every translation of at most `limit` tokens, the end symbol counted, with its score; best first."""
    words = range(UNK + 1, model.vocabulary_size)
    found = [list(target) for length in range(limit) for target in product(words, repeat=length)]
    scored = [(penalised(forced_log_probability(model, source, target), target, alpha), target) for target in found]
    return sorted(scored, reverse=True)


def reference_search(
    model: Transformer, source: list[int], config: DecodeConfig, early: bool
) -> tuple[list[tuple[float, list[int]]], int]:
    """n_best (score, tokens) and the number of steps; with `early` it stops when no living hypothesis can beat them."""
    limit = len(source) + config.max_extra_length
    living: list[tuple[float, list[int]]] = [(0.0, [])]
    ended: list[tuple[float, list[int]]] = []
    for length in range(1, limit + 1):
        choices = [EOS] if length == limit else [EOS, *range(UNK + 1, model.vocabulary_size)]
        steps = log_probabilities(model, source, [tokens for _, tokens in living])[:, -1].tolist()
        grown = sorted(
            (
                (logp + step[token], [*tokens, token])
                for (logp, tokens), step in zip(living, steps, strict=True)
                for token in choices
            ),
            reverse=True,
        )
        ended += [(logp, tokens[:-1]) for logp, tokens in grown[: config.beam_size] if tokens[-1] == EOS]
        living = [candidate for candidate in grown if candidate[1][-1] != EOS][: config.beam_size]
        best = sorted(((penalised(p, tokens, config.length_penalty), tokens) for p, tokens in ended), reverse=True)
        best = best[: config.n_best]
        full = len(best) == config.n_best
        hope = max((p / ((5 + limit) / 6) ** config.length_penalty for p, _ in living), default=-float("inf"))
        if not living or (early and full and hope <= best[-1][0]):
            break
    return best, length


def assert_same(found: list[Hypothesis], expected: list[tuple[float, list[int]]]) -> None:
    assert [h.tokens for h in found] == [tokens for _, tokens in expected]
    assert [h.score for h in found] == pytest.approx([score for score, _ in expected], abs=1e-4)


@pytest.mark.parametrize(
    ("length", "alpha", "expected"),
    [(1, 0.6, 1.0), (7, 1.0, 2.0), (7, 0.0, 1.0), (19, 0.5, 2.0), (13, 0.6, 1.9331820449317627), (2, 2.0, 49 / 36)],
)
def test_length_penalty_by_hand(length, alpha, expected):
    gnmt, marian = DecodeConfig(length_penalty=alpha), DecodeConfig(length_penalty=alpha, length_penalty_kind="marian")
    assert penalty(length, gnmt) == pytest.approx(expected)
    assert penalty(length, marian) == pytest.approx(length**alpha)


@pytest.mark.parametrize("alpha", [0.6, 1.0, 2.0])
def test_by_marians_length_penalty_too(alpha):
    """Early termination loses nothing: the last hypotheses of a full beam are those of an exhaustive search."""
    model = tiny_model(words=3)
    for source in random_sources(model, [2, 3]):
        everything = [
            (score * penalty(len(tokens) + 1, DecodeConfig(length_penalty=alpha)) / (len(tokens) + 1) ** alpha, tokens)
            for score, tokens in enumerate_all(model, source, limit=len(source) + 2, alpha=alpha)
        ]
        kind = {"length_penalty": alpha, "length_penalty_kind": "marian"}
        for n_best in (1, 4 * 3**3):
            [found] = search(model, [source], beam_size=4 * 3**3, n_best=n_best, max_extra_length=2, **kind)
            assert_same(found, sorted(everything, reverse=True)[:n_best])


@pytest.mark.parametrize("settings", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_a_beam_that_holds_all_candidates_finds_every_translation_in_order(settings, alpha):
    model = tiny_model(words=3, **settings)
    for source in random_sources(model, [2, 3]):
        everything = enumerate_all(model, source, limit=len(source) + 2, alpha=alpha)
        beam = 4 * 3**3
        [found] = search(model, [source], beam_size=beam, n_best=beam, length_penalty=alpha, max_extra_length=2)
        assert_same(found, everything[:beam])


@pytest.mark.parametrize("variant", MODELS)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize(("beam", "n_best"), [(2, 1), (4, 1), (4, 4), (5, 2)])
def test_search_agrees_with_a_reference_that_stops_early_and_with_one_that_never_does(variant, alpha, beam, n_best):
    model = stutterer(variant)
    config = DecodeConfig(beam_size=beam, n_best=n_best, length_penalty=alpha, max_extra_length=4)
    for source in random_sources(model, [2, 5, 4]):
        [found] = search(model, [source], **vars(config))
        assert_same(found, reference_search(model, source, config, early=True)[0])
        assert_same(found, reference_search(model, source, config, early=False)[0])


@pytest.mark.parametrize("alpha", ALPHAS)
def test_search_stops_at_the_step_after_which_nothing_can_beat_the_finished(alpha, monkeypatch):
    model = stutterer("paper")
    config = DecodeConfig(beam_size=3, length_penalty=alpha, max_extra_length=25)
    steps = []
    step = model.step
    monkeypatch.setattr(model, "step", lambda *arguments: steps.append(1) or step(*arguments))
    counts = []
    for source in random_sources(model, [2, 5, 4, 8]):
        steps.clear()
        search(model, [source], **vars(config))
        counts.append((len(steps), reference_search(model, source, config, early=True)[1], len(source) + 25))
    assert [took for took, _, _ in counts] == [needed for _, needed, _ in counts]
    assert any(took < limit for took, _, limit in counts)


@pytest.mark.parametrize("variant", MODELS)
def test_a_beam_of_one_takes_the_most_probable_token_at_every_step(variant):
    model = stutterer(variant)
    sources = random_sources(model, [3, 6, 2, 4, 5])
    results = search(model, sources, beam_size=1, max_extra_length=5)
    for source, [hypothesis] in zip(sources, results, strict=True):
        tokens: list[int] = []
        while len(tokens) + 1 < len(source) + 5:
            scores = log_probabilities(model, source, [tokens])[0, -1]
            scores[[PAD, BOS, UNK]] = -torch.inf
            if scores.argmax() == EOS:
                break
            tokens.append(int(scores.argmax()))
        assert hypothesis.tokens == tokens
    assert any(len(h.tokens) + 1 < len(source) + 5 for source, [h] in zip(sources, results, strict=True))


@pytest.mark.parametrize("variant", MODELS)
@pytest.mark.parametrize(("beam", "n_best"), [(1, 1), (4, 3)])
def test_order_and_batching_do_not_change_a_hypothesis(variant, beam, n_best):
    model = stutterer(variant)
    sources = random_sources(model, [1, 9, 2, 4, 4, 7, 3, 12, 1, 5])
    alone = [search(model, [source], beam_size=beam, n_best=n_best, max_extra_length=6)[0] for source in sources]
    for seed in range(3):
        order = random.Random(seed).sample(range(len(sources)), len(sources))
        together = search(model, [sources[i] for i in order], beam_size=beam, n_best=n_best, max_extra_length=6)
        for place, found in zip(order, together, strict=True):
            assert_same(found, [(h.score, h.tokens) for h in alone[place]])
    assert len({tuple(found[0].tokens) for found in alone}) > 5


@pytest.mark.parametrize("variant", MODELS)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_n_best_are_distinct_sorted_and_scored_as_forced_decoding_scores_them(variant, alpha):
    model = stutterer(variant)
    sources = random_sources(model, [3, 8, 5])
    results = search(model, sources, beam_size=5, n_best=5, length_penalty=alpha, max_extra_length=6)
    for source, found in zip(sources, results, strict=True):
        assert len(found) == len({tuple(h.tokens) for h in found}) == 5
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
        for h in found:
            forced = forced_log_probability(model, source, h.tokens)
            assert h.log_probability == pytest.approx(forced, abs=1e-4)
            assert h.score == pytest.approx(penalised(forced, h.tokens, alpha), abs=1e-4)


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("max_extra_length", [0, 1, 7])
def test_a_model_that_never_wants_to_end_ends_at_the_limit(beam, max_extra_length):
    model = tiny_model(words=12, bias={EOS: -20.0})
    sources = random_sources(model, [1, 3, 6, 2])
    results = search(model, sources, beam_size=beam, n_best=beam, max_extra_length=max_extra_length)
    for source, found in zip(sources, results, strict=True):
        assert found
        assert {len(h.tokens) + 1 for h in found} == {len(source) + max_extra_length}


@pytest.mark.parametrize("beam", [1, 4])
def test_special_symbols_are_never_written_however_probable(beam):
    model = tiny_model(words=12, bias={PAD: 9.0, BOS: 9.0, UNK: 9.0})
    for found in search(model, random_sources(model, [3, 5]), beam_size=beam, n_best=beam, max_extra_length=3):
        for hypothesis in found:
            assert not {PAD, BOS, EOS, UNK} & set(hypothesis.tokens)


@pytest.mark.parametrize("seed", range(3))
def test_with_exact_search_a_higher_alpha_never_shortens_a_translation(seed):
    model = tiny_model(words=3, seed=seed, bias={EOS: 0.5})
    sources = random_sources(model, [2, 3, 3, 2])
    by_alpha = [
        [
            len(found[0].tokens)
            for found in search(model, sources, beam_size=110, length_penalty=alpha, max_extra_length=2)
        ]
        for alpha in (0.0, 0.5, 1.0, 2.0, 4.0)
    ]
    for low, high in pairwise(by_alpha):
        assert all(a <= b for a, b in zip(low, high, strict=True))
    assert by_alpha[0] < by_alpha[-1], "lengths that alpha never moves would not show a wrong sign"


@pytest.mark.parametrize("beam", [1, 3])
def test_learned_positions_end_a_translation_before_the_limit_does(beam):
    model = tiny_model(words=12, bias={EOS: -20.0}, positions="learned", max_positions=6)
    sources = random_sources(model, [2, 6, 4])
    for found in search(model, sources, beam_size=beam, max_extra_length=50):
        assert len(found[0].tokens) + 1 == 6


def test_a_source_longer_than_the_learned_positions_is_an_error_that_names_their_number():
    model = tiny_model(words=12, positions="learned", max_positions=6)
    with pytest.raises(NMTError, match=r"7 tokens .*model\.max_positions=6"):
        search(model, random_sources(model, [7]))


class Chain:
    """A model whose next token depends on the last one alone, so that scores can be worked out by hand."""

    config = SimpleNamespace(positions="sinusoidal")

    def __init__(self, transitions: dict[int, dict[int, float]]) -> None:
        self.vocabulary_size = 7
        self.log_probabilities = torch.full((7, 7), -torch.inf)
        for last, following in transitions.items():
            for token, probability in following.items():
                self.log_probabilities[last, token] = torch.tensor(probability).log()

    def start(self, source_BS: Tensor, hypotheses: int) -> "Chain":
        return self

    def select(self, sentences: Tensor) -> "Chain":
        return self

    def reorder(self, parents_BK: Tensor) -> None:
        pass

    def step(self, tokens_BK: Tensor, cache: "Chain", wanted: int | None = None) -> Tensor:
        return self.log_probabilities[tokens_BK[:, :wanted]]


@pytest.mark.parametrize(
    ("beam", "alpha", "tokens", "probability"),
    [
        (1, 0.6, [4, 5], 0.6 * 0.5 * 0.7),  # greedy follows the better first word
        (2, 0.0, [6], 0.4 * 0.9),  # the worse first word leads to the better translation
        (2, 4.0, [4, 5], 0.6 * 0.5 * 0.7),  # (8 / 7)^4 = 1.71 > log 0.21 / log 0.36 = 1.53
        (1, 3.0, [4, 5], 0.6 * 0.5 * 0.7),
    ],
)
def test_searches_worked_out_by_hand(beam, alpha, tokens, probability):
    model = Chain({BOS: {4: 0.6, 6: 0.4}, 4: {5: 0.5, EOS: 0.3, 6: 0.2}, 5: {EOS: 0.7, 4: 0.3}, 6: {EOS: 0.9, 4: 0.1}})
    [[found]] = search(model, [[4, EOS]], beam_size=beam, length_penalty=alpha, max_extra_length=1)
    log_probability = torch.tensor(probability).log().item()
    assert found.tokens == tokens
    assert found.log_probability == pytest.approx(log_probability, abs=1e-5)
    assert found.score == pytest.approx(log_probability / ((5 + len(tokens) + 1) / 6) ** alpha, abs=1e-5)
