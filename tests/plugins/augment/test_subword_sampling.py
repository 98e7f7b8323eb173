"""Sampled segmentations: their exact distribution by enumeration, sentencepiece's own samples, and what they spell."""

import math
import pickle
import random
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nmt.config import TokenizerConfig
from nmt.errors import NMTError
from nmt.plugins.augment import subword_sampling
from nmt.plugins.augment.config import NoiseConfig
from nmt.plugins.augment.noise import sentence_generator
from nmt.plugins.augment.subword_sampling import BpeDropout, SubwordSampler, UnigramSampler, subword_sampler
from nmt.text import SentencePieceTokenizer, Tokenizer, train_tokenizer, vocabulary_kind

SYLLABLES = ["ba", "na", "an", "ana", "ban", "ni", "in", "es", "est", "ne", "new", "we", "wes", "t", "s", "öß", "日本"]


def sentence(number: int) -> str:
    draw = random.Random(number)
    return " ".join("".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(draw.randint(2, 9)))


LINES = [sentence(number) for number in range(600)]
RESERVED = ["(NP", "(N", ")"]
VOCABULARIES = {"bpe": [], "bpe with symbols": RESERVED, "unigram": [], "unigram with symbols": RESERVED}
some = settings(max_examples=150, deadline=None, derandomize=True, database=None)
fragments = st.sampled_from([*SYLLABLES, *RESERVED, " ", "  ", "\u2581", "\ue000", "<s>", "<0x41>", "\0", "é", "😀"])
lines = st.one_of(st.text(max_size=30), st.lists(fragments, max_size=12).map("".join)).map(
    lambda line: line.encode("utf-8", "ignore").decode()
)


@pytest.fixture(scope="module", params=VOCABULARIES)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    kind = request.param.split()[0]
    return train_tokenizer(LINES, TokenizerConfig(kind=kind, vocabulary_size=400), VOCABULARIES[request.param])


@pytest.fixture(scope="module")
def bpe() -> SentencePieceTokenizer:
    return train_tokenizer(LINES, TokenizerConfig(kind="bpe", vocabulary_size=400))


@pytest.fixture(scope="module")
def unigram() -> SentencePieceTokenizer:
    return train_tokenizer(LINES, TokenizerConfig(kind="unigram", vocabulary_size=400))


def sampler(tokenizer: Tokenizer, strength: float) -> SubwordSampler:
    """Strength 0 is the best segmentation, and 1 any."""
    if vocabulary_kind(tokenizer) == "bpe":
        return BpeDropout(tokenizer, strength)
    return UnigramSampler(tokenizer, 1e6 if strength == 0 else 1 - strength)


def generator(number: int = 0) -> np.random.Generator:
    return sentence_generator(1, 0, 0, number)


def unigram_score(tokenizer: SentencePieceTokenizer, ids: list[int]) -> float:
    return sum(tokenizer.processor.get_score(i) for i in ids)


@some
@given(line=lines)
def test_no_noise_is_the_segmentation_of_sentencepiece(tokenizer, line):
    [expected] = tokenizer.encode([line])
    ids = sampler(tokenizer, 0).encode(line, generator())
    if ids != expected:  # two segmentations of the same probability
        assert isinstance(sampler(tokenizer, 0), UnigramSampler)
        assert unigram_score(tokenizer, ids) == pytest.approx(unigram_score(tokenizer, expected), abs=1e-4)


@some
@given(line=lines, strength=st.sampled_from([0.1, 0.5, 0.9, 1.0]), number=st.integers(0, 2**32))
def test_what_is_drawn_spells_the_line(tokenizer, line, strength, number):
    ids = sampler(tokenizer, strength).encode(line, generator(number))
    assert tokenizer.decode(ids) == unicodedata.normalize("NFKC", line)
    assert all(3 < id < tokenizer.vocabulary_size for id in ids)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_reserved_symbol_stays_whole(kind):
    tokenizer = train_tokenizer(LINES, TokenizerConfig(kind=kind, vocabulary_size=400), RESERVED)
    symbols = {tokenizer.encode([symbol])[0][0] for symbol in RESERVED}
    ours, drawn = sampler(tokenizer, 0.9), set()
    for n in range(30):
        ids = ours.encode("(NP newest ) (N (NPx banana", generator(n))
        assert tokenizer.subwords([id for id in ids if id in symbols]) == [
            "\u2581(NP",
            "\u2581)",
            "\u2581(N",
            "\u2581(NP",
        ]
        drawn.add(tuple(ids))
    assert len(drawn) > 10


@pytest.mark.parametrize("strength", [0.5])
def test_a_line_depends_on_its_generator_alone(tokenizer, strength):
    first, second = sampler(tokenizer, strength), pickle.loads(pickle.dumps(sampler(tokenizer, strength)))
    drawn = [first.encode(line, generator(n)) for n, line in enumerate(LINES[:200])]
    order = random.Random(1).sample(range(200), 200)
    again = {n: second.encode(LINES[n], generator(n)) for n in order}
    assert [again[n] for n in range(200)] == drawn
    assert drawn != [first.encode(line, generator(n + 1)) for n, line in enumerate(LINES[:200])]


def merge_distribution(word: str, scores: dict[str, float], dropout: float) -> dict[tuple[str, ...], float]:
    """Probability of each result of merging the best pair, the left one of equals, each once by 1 - dropout."""
    results: Counter[tuple[str, ...]] = Counter()

    def go_on(parts: tuple[str, ...], dropped: frozenset[tuple[int, int]], probability: float) -> None:
        starts = [sum(map(len, parts[:n])) for n in range(len(parts))]
        pairs = [
            (-scores[a + b], starts[n], n)
            for n, (a, b) in enumerate(pairwise(parts))
            if a + b in scores and (starts[n], starts[n] + len(a + b)) not in dropped
        ]
        if not pairs:
            results[parts] += probability
            return
        _, start, n = min(pairs)
        merged = parts[n] + parts[n + 1]
        go_on(parts, dropped | {(start, start + len(merged))}, probability * dropout)
        go_on((*parts[:n], merged, *parts[n + 2 :]), dropped, probability * (1 - dropout))

    go_on(tuple(word), frozenset(), 1.0)
    return results


def segmentations(word: str, known: set[str]) -> Iterator[tuple[str, ...]]:
    if not word:
        yield ()
    for end in range(1, len(word) + 1):
        if word[:end] in known:
            yield from ((word[:end], *rest) for rest in segmentations(word[end:], known))


def unigram_distribution(word: str, scores: dict[str, float], alpha: float) -> dict[tuple[str, ...], float]:
    weights = {
        parts: math.exp(alpha * sum(scores[part] for part in parts)) for parts in segmentations(word, set(scores))
    }
    return {parts: weight / sum(weights.values()) for parts, weight in weights.items()}


def scores_of(tokenizer: SentencePieceTokenizer) -> dict[str, float]:
    """The entries that are no symbols and no bytes."""
    processor = tokenizer.processor
    ids = [i for i in range(4, tokenizer.vocabulary_size) if not processor.is_byte(i)]
    return {processor.id_to_piece(i): processor.get_score(i) for i in ids}


def chi_square_is_small(statistic: float, cells: int) -> None:
    """A right one fails once in 5e8: P(chi square > k + 2 sqrt(k x) + 2 x) < exp(-x) (Laurent and Massart 2000)."""
    freedom = cells - 1
    assert freedom > 2
    assert statistic < freedom + 2 * math.sqrt(20 * freedom) + 40


def check_counts(counts: Counter[tuple[str, ...]], expected: dict[tuple[str, ...], float]) -> None:
    size = sum(counts.values())
    assert sum(expected.values()) == pytest.approx(1)
    assert set(counts) <= set(expected)
    cells = [(counts[parts], size * share) for parts, share in expected.items() if size * share >= 5]
    cells.append((size - sum(found for found, _ in cells), max(size - sum(mean for _, mean in cells), 1e-9)))
    if cells[-1][1] < 5:
        cells.pop()
    chi_square_is_small(sum((found - mean) ** 2 / mean for found, mean in cells), len(cells))


LONG_OR_KEPT = [(0, 4000), (40, 20_000)]
"""From how many letters on a word is not kept, and how often it is drawn."""


def counted(draw: Callable[[int], list[int]], tokenizer: Tokenizer, size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokenizer.symbol(id) for id in draw(n)) for n in range(size))


@pytest.mark.parametrize(("letters", "size"), LONG_OR_KEPT)
@pytest.mark.parametrize(("word", "dropout"), [("banana", 0.1), ("ananas", 0.8)])
def test_bpe_dropout_has_its_exact_distribution(bpe, word, dropout, letters, size, monkeypatch):
    monkeypatch.setattr(subword_sampling, "KEPT_LETTERS", letters)
    ours, one = BpeDropout(bpe, dropout), generator()
    counts = counted(lambda n: ours.encode(word, one), bpe, size)
    check_counts(counts, merge_distribution("\u2581" + word, scores_of(bpe), dropout))


@pytest.mark.parametrize(("letters", "size"), LONG_OR_KEPT)
@pytest.mark.parametrize(("word", "alpha"), [("banana", 0.1), ("ananas", 0.0)])
def test_unigram_sampling_has_its_exact_distribution(unigram, word, alpha, letters, size, monkeypatch):
    monkeypatch.setattr(subword_sampling, "KEPT_LETTERS", letters)
    ours, one = UnigramSampler(unigram, alpha), generator()
    counts = counted(lambda n: ours.encode(word, one), unigram, size)
    check_counts(counts, unigram_distribution("\u2581" + word, scores_of(unigram), alpha))


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sentencepiece_draws_as_often(kind, bpe, unigram):
    """Its draws differ in each process, so this is a comparison of two samples."""
    tokenizer, value = (bpe, 0.3) if kind == "bpe" else (unigram, 0.2)
    ours = BpeDropout(bpe, value) if kind == "bpe" else UnigramSampler(unigram, value)
    line, one = "newest banest", generator()
    mine = counted(lambda n: ours.encode(line, one), tokenizer, 20_000)
    draw = tokenizer.processor.encode
    theirs = counted(lambda n: draw(line, enable_sampling=True, alpha=value, nbest_size=-1), tokenizer, 20_000)
    common = [parts for parts in {*mine, *theirs} if mine[parts] + theirs[parts] >= 10]
    pairs = [(mine[parts], theirs[parts]) for parts in common]
    pairs.append((mine.total() - sum(a for a, _ in pairs), theirs.total() - sum(b for _, b in pairs)))
    chi_square_is_small(sum((a - b) ** 2 / max(a + b, 1) for a, b in pairs), len(pairs))


@pytest.mark.parametrize(
    ("kind", "noise", "named"),
    [
        ("wordpiece", {"bpe_dropout": 0.1}, "data.noise.bpe_dropout=0.1 with a vocabulary of kind wordpiece"),
        ("unigram", {"bpe_dropout": 0.1}, "data.noise.bpe_dropout=0.1 .* unigram: use data.noise.sampling_alpha"),
        ("bpe", {"sampling_alpha": 0.0}, "data.noise.sampling_alpha=0.0 .* bpe: use data.noise.bpe_dropout"),
    ],
)
def test_a_vocabulary_of_another_kind_is_refused(kind, noise, named):
    tokenizer = train_tokenizer(LINES[:100], TokenizerConfig(kind=kind, vocabulary_size=600))
    with pytest.raises(NMTError, match=f"^{named}") as error:
        subword_sampler(tokenizer, NoiseConfig(**noise))
    assert "\n" not in str(error.value)
    assert subword_sampler(tokenizer, NoiseConfig()) is None
