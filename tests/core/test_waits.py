"""A step of a search waits for a GPU at most once, and finds what it finds on a CPU."""

from copy import deepcopy
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config import EOS, PAD, DecodeConfig
from nmt.model import Transformer
from nmt.search import Search
from nmt.search.beam_search import FinishedHypotheses
from tests.core.test_search import A, B, C, random_sources, stutterer, tiny_model
from tests.helpers.waits import OneDevice, counted_waits

WORDS = 12
SETTINGS = [
    {"beam_size": 1},
    {"beam_size": 4, "n_best": 3},
    {"beam_size": 4, "length_penalty_kind": "marian", "length_penalty": 1.5},
    {"beam_size": 3, "no_repeat_ngram_size": 2, "min_length": 3},
    {"do_sample": True, "n_best": 3},
    {"do_sample": True, "n_best": 2, "top_k": 5, "top_p": 0.8},
]
PREFIXES = [[A], [], [B, A], [], [], [C, C, A], []]


def new_search(model, config: DecodeConfig, prefixes: list[list[int]], count: int = 7) -> Search:
    sources = random_sources([2, 9, 4, 4, 7, 3, 12, 5, 2, 8, 6, 3] * 3, words=8)[:count]
    longest = max(map(len, sources))
    rows = [source + [PAD] * (longest - len(source)) for source in sources]
    return Search([model], torch.tensor(rows), config, prefixes)


@pytest.mark.parametrize(
    "wait",
    [
        lambda x: x.tolist(),
        lambda x: int(x.sum()),
        lambda x: bool(x.any()),
        lambda x: x.max().item(),
        lambda x: float(x.max()),
        lambda x: "abc"[x[0]],
        lambda x: x.cpu(),
        lambda x: x.numpy(),
        lambda x: x.nonzero(),
        lambda x: x.unique(),
        lambda x: x[x > 0],
        lambda x: x.masked_select(x > 0),
        lambda x: torch.equal(x, x),
        lambda x: torch.tensor([1, 2]),
    ],
)
@pytest.mark.parametrize("inference", [False, True])
def test_each_kind_of_wait_is_seen_once(wait, inference):
    with torch.inference_mode(inference):
        x = torch.arange(3)
        with counted_waits() as waits:
            x[x] + x.gather(0, x)
            x[:2] = 1
        assert waits.count == 0
        with counted_waits() as waits:
            wait(x)
        assert waits.count == 1


@pytest.fixture
def no_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture(scope="module")
def model() -> Transformer:
    return stutterer("paper")


@pytest.mark.parametrize("prefixes", [[], PREFIXES], ids=["", "prefixes"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_step_waits_once_and_finds_what_a_cpu_finds(model, no_gradients, settings, prefixes):
    config = DecodeConfig(max_extra_length=9, **settings)
    counts: dict[bool, list[int]] = {}
    results = {}
    for reads_freely in (True, False):
        search = new_search(model, config, prefixes, 7 if prefixes else 36)
        assert search.reads_freely  # on a CPU
        search.reads_freely = reads_freely
        counts[reads_freely] = []
        while len(search.sentences):
            with counted_waits() as waits:
                search.advance()
            counts[reads_freely].append(waits.count)
        results[reads_freely] = [list(map(vars, row)) for row in search.finished.hypotheses()]
    assert results[False] == results[True]
    assert len(counts[True]) > 4
    assert set(counts[False]) == {1}
    assert set(counts[True]) == {2}


def moved(item: Any, device: str) -> Any:
    """A copy of the tensors in a record or list, on this device."""
    if isinstance(item, Tensor | torch.nn.Module):
        return deepcopy(item).to(device)
    if isinstance(item, list | tuple):
        return type(item)(moved(part, device) for part in item)
    if is_dataclass(item):
        return type(item)(*(moved(getattr(item, field.name), device) for field in fields(item)))
    return item


@pytest.mark.parametrize(
    ("settings", "variant"),
    [
        *((settings, {}) for settings in SETTINGS),
        ({"beam_size": 2}, {"decoder": "ssru"}),
        ({"beam_size": 2}, {"attention_window": 3}),
    ],
    ids=str,
)
def test_a_step_copies_nothing_between_the_cpu_and_the_device(no_gradients, settings, variant):
    """On meta, whose tensors have no values; for more steps than the cache has space for."""
    config = DecodeConfig(max_extra_length=9, **settings)
    search = new_search(tiny_model(words=WORDS, **variant), config, PREFIXES)
    assert search.max_lengths.max() > 17
    for owner in (search, search.finished):
        for name, item in vars(owner).items():
            keeps = name in ("config", "finished")
            setattr(owner, name, item if keeps else moved(item, "meta"))
    search.reads_freely = False
    search.prune_finished = lambda unfinished_B: None
    with OneDevice("meta"):
        for _ in range(20):
            search.advance()
    assert search.tokens.shape[2] == 21


@pytest.mark.parametrize("n_best", [1, 3])
def test_candidates_that_have_not_ended_change_nothing_even_among_ties(n_best):
    generator = torch.Generator().manual_seed(1)
    config = DecodeConfig(beam_size=4, n_best=n_best, length_penalty=0)
    some, all_rows = (FinishedHypotheses(6, n_best, 9, torch.device("cpu")) for _ in range(2))
    for length in range(9):
        scores = -torch.randint(0, 3, (6, 4), generator=generator).float()
        scores[torch.rand(6, 4, generator=generator) < 0.7] = -torch.inf
        tokens = torch.randint(EOS + 1, 99, (6, 4, length), generator=generator)
        rows = scores.isfinite().any(dim=1).nonzero()[:, 0]
        some.add(rows, scores[rows], tokens[rows], config)
        all_rows.add(torch.arange(6), scores, tokens, config)
        for name in ("scores", "log_probabilities", "tokens"):
            assert torch.equal(getattr(some, name), getattr(all_rows, name))
    assert some.scores.isfinite().all()
