"""A step of a search waits for a GPU at most once, with the same result as on a CPU."""

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
SOURCE_LENGTHS = [2, 9, 4, 4, 7, 3, 12, 5, 2, 8, 6, 3] * 3


def new_search(
    model: Transformer, config: DecodeConfig, prefixes: list[list[int]], count: int = 7
) -> Search:
    """A search for the translations of some random sources."""
    sources = random_sources(SOURCE_LENGTHS, words=8)[:count]
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
def test_each_kind_of_wait_is_counted_once(wait, inference):
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


def waits_of_steps(search: Search) -> list[int]:
    """Run a search, and return how often each step would wait."""
    waits_of_steps = []
    while len(search.sentences):
        with counted_waits() as waits:
            search.advance()
        waits_of_steps.append(waits.count)
    return waits_of_steps


def results(search: Search) -> list[list[dict[str, Any]]]:
    return [list(map(vars, row)) for row in search.finished.hypotheses()]


@pytest.mark.slow
@pytest.mark.parametrize("prefixes", [[], PREFIXES], ids=["", "prefixes"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_step_on_a_gpu_waits_once_with_the_same_result(model, no_gradients, settings, prefixes):
    config = DecodeConfig(max_extra_length=9, **settings)
    count = 7 if prefixes else 36
    on_cpu = new_search(model, config, prefixes, count)
    assert on_cpu.reads_freely
    as_on_gpu = new_search(model, config, prefixes, count)
    as_on_gpu.reads_freely = False
    waits_on_cpu = waits_of_steps(on_cpu)
    assert len(waits_on_cpu) > 4
    assert set(waits_on_cpu) == {2}
    assert set(waits_of_steps(as_on_gpu)) == {1}
    assert results(as_on_gpu) == results(on_cpu)


def moved(item: Any, device: str) -> Any:
    """A copy of the tensors in a record or list on a device."""
    if isinstance(item, Tensor | torch.nn.Module):
        return deepcopy(item).to(device)
    if isinstance(item, list | tuple):
        return type(item)(moved(part, device) for part in item)
    if is_dataclass(item):
        values = [getattr(item, field.name) for field in fields(item)]
        return type(item)(*(moved(value, device) for value in values))
    return item


def move(owner: Search | FinishedHypotheses, device: str) -> None:
    for name, item in vars(owner).items():
        if name not in ("config", "finished"):
            setattr(owner, name, moved(item, device))


VARIANTS = [(settings, {}) for settings in SETTINGS]
VARIANTS += [
    ({"beam_size": 2}, {"decoder": "ssru"}),
    ({"beam_size": 2}, {"attention_window": 3}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("settings", "variant"), VARIANTS, ids=str)
def test_a_step_copies_nothing_between_the_cpu_and_the_device(no_gradients, settings, variant):
    """The device is meta, whose tensors have no values.

    The search takes more steps than the cache has space for at first.
    """
    config = DecodeConfig(max_extra_length=9, **settings)
    search = new_search(tiny_model(words=WORDS, **variant), config, PREFIXES)
    assert search.max_lengths.max() > 17
    move(search, "meta")
    move(search.finished, "meta")
    search.reads_freely = False
    search.prune_finished = lambda unfinished_B: None
    with OneDevice("meta"):
        for _ in range(20):
            search.advance()
    assert search.tokens.shape[2] == 21


@pytest.mark.parametrize("n_best", [1, 3])
def test_adding_unfinished_candidates_changes_nothing_even_with_ties(n_best):
    generator = torch.Generator().manual_seed(1)
    config = DecodeConfig(beam_size=4, n_best=n_best, length_penalty=0)
    finished_only = FinishedHypotheses(6, n_best, 9, torch.device("cpu"))
    with_unfinished = FinishedHypotheses(6, n_best, 9, torch.device("cpu"))
    for length in range(9):
        scores = -torch.randint(0, 3, (6, 4), generator=generator).float()
        scores[torch.rand(6, 4, generator=generator) < 0.7] = -torch.inf
        tokens = torch.randint(EOS + 1, 99, (6, 4, length), generator=generator)
        rows = scores.isfinite().any(dim=1).nonzero()[:, 0]
        finished_only.add(rows, scores[rows], tokens[rows], config)
        with_unfinished.add(torch.arange(6), scores, tokens, config)
        for name in ("scores", "log_probabilities", "tokens"):
            assert torch.equal(getattr(finished_only, name), getattr(with_unfinished, name))
    assert finished_only.scores.isfinite().all()
