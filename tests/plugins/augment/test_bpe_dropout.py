"""BPE-dropout: its exact distribution by enumeration, sentencepiece's own samples, and what it spells."""

import math
import pickle
import random
import unicodedata
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nmt.config import TokenizerConfig
from nmt.errors import NMTError
from nmt.plugins.augment import bpe_dropout
from nmt.plugins.augment.bpe_dropout import BpeDropout
from nmt.plugins.augment.noise import sentence_generator
from nmt.text import SentencePieceTokenizer, train_tokenizer

SYLLABLES = ["ba", "na", "an", "ana", "ban", "ni", "in", "es", "est", "ne", "new", "we", "wes", "t", "s", "öß", "日本"]
DRAW = random.Random(1)
WORDS = ["".join(DRAW.choices(SYLLABLES, k=DRAW.randint(1, 4))) for _ in range(3000)]
LINES = [" ".join(WORDS[start : start + 5]) for start in range(0, 3000, 5)]
RESERVED = ["(NP", "(N", ")"]
some = settings(max_examples=100, deadline=None, derandomize=True, database=None)
fragments = st.sampled_from([*SYLLABLES, *RESERVED, " ", "  ", "\u2581", "\ue000", "<s>", "<0x41>", "\0", "é", "😀"])
lines = st.one_of(st.text(max_size=30), st.lists(fragments, max_size=12).map("".join)).map(
    lambda line: line.encode("utf-8", "ignore").decode()
)


@pytest.fixture(scope="module")
def bpe() -> SentencePieceTokenizer:
    return train_tokenizer(LINES, TokenizerConfig("bpe", 400))


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "symbols"])
def tokenizer(request, bpe) -> SentencePieceTokenizer:
    return train_tokenizer(LINES, TokenizerConfig("bpe", 400), RESERVED) if request.param else bpe


@pytest.fixture(scope="module")
def samplers(tokenizer) -> dict[float, BpeDropout]:
    return {dropout: BpeDropout(tokenizer, dropout) for dropout in (0, 0.1, 0.5, 0.9, 1.0)}


def generator(number: int = 0) -> np.random.Generator:
    return sentence_generator(1, 0, 0, number)


@some
@given(line=lines, dropout=st.sampled_from([0.1, 0.5, 0.9, 1.0]), number=st.integers(0, 2**32))
def test_draws_spell_the_line_and_equal_sentencepiece_without_dropout(samplers, tokenizer, line, dropout, number):
    assert [samplers[0].encode(line, generator())] == tokenizer.encode([line])
    ids = samplers[dropout].encode(line, generator(number))
    assert tokenizer.decode(ids) == unicodedata.normalize("NFKC", line)
    assert all(3 < id < tokenizer.vocabulary_size for id in ids)


def test_a_reserved_symbol_stays_whole():
    tokenizer = train_tokenizer(LINES, TokenizerConfig("bpe", 400), RESERVED)
    symbols = {tokenizer.encode([symbol])[0][0] for symbol in RESERVED}
    drawn = {tuple(BpeDropout(tokenizer, 0.9).encode("(NP newest ) (N (NPx banana", generator(n))) for n in range(30)}
    whole = ["\u2581(NP", "\u2581)", "\u2581(N", "\u2581(NP"]
    assert all(tokenizer.subwords([id for id in ids if id in symbols]) == whole for ids in drawn)
    assert len(drawn) > 10


def test_a_line_depends_on_its_generator_alone(tokenizer):
    ours = BpeDropout(tokenizer, 0.5)
    copied = pickle.loads(pickle.dumps(ours))
    drawn = [ours.encode(line, generator(n)) for n, line in enumerate(LINES[:200])]
    again = {n: copied.encode(LINES[n], generator(n)) for n in random.Random(1).sample(range(200), 200)}
    assert [again[n] for n in range(200)] == drawn
    assert drawn != [ours.encode(line, generator(n + 1)) for n, line in enumerate(LINES[:200])]


def merge_distribution(word: str, scores: dict[str, float], dropout: float) -> dict[tuple[str, ...], float]:
    """Probability of each result of merging the best pair, the left one of equals, each once by 1 - dropout."""
    results: Counter[tuple[str, ...]] = Counter()

    def merge(parts: tuple[str, ...], dropped: frozenset[tuple[int, int]], probability: float) -> None:
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
        merge(parts, dropped | {(start, start + len(merged))}, probability * dropout)
        merge((*parts[:n], merged, *parts[n + 2 :]), dropped, probability * (1 - dropout))

    merge(tuple(word), frozenset(), 1.0)
    return results


def assert_small(chi_square: float, cells: int) -> None:
    """Fails by chance once in 5e8: P(chi square > k + 2 sqrt(k x) + 2 x) < exp(-x) (Laurent and Massart 2000)."""
    freedom = cells - 1
    assert freedom > 2
    assert chi_square < freedom + 2 * math.sqrt(20 * freedom) + 40


def counted(draw: Callable[[], list[int]], tokenizer: SentencePieceTokenizer, size: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(map(tokenizer.symbol, draw())) for _ in range(size))


@pytest.mark.parametrize(("kept_letters", "size"), [(0, 4000), (40, 20_000)])
@pytest.mark.parametrize(("word", "dropout"), [("banana", 0.1), ("ananas", 0.8)])
def test_dropout_has_its_exact_distribution(bpe, word, dropout, kept_letters, size, monkeypatch):
    monkeypatch.setattr(bpe_dropout, "KEPT_LETTERS", kept_letters)
    ours, one, processor = BpeDropout(bpe, dropout), generator(), bpe.processor
    counts = counted(lambda: ours.encode(word, one), bpe, size)
    ids = [i for i in range(4, bpe.vocabulary_size) if not processor.is_byte(i)]
    scores = {processor.id_to_piece(i): processor.get_score(i) for i in ids}
    expected = merge_distribution("\u2581" + word, scores, dropout)
    assert sum(expected.values()) == pytest.approx(1)
    assert set(counts) <= set(expected)
    cells = [(counts[parts], size * share) for parts, share in expected.items() if size * share >= 5]
    rest = size - sum(count for count, _ in cells), size - sum(mean for _, mean in cells)
    cells += [rest] if rest[1] >= 5 else []
    assert_small(sum((count - mean) ** 2 / mean for count, mean in cells), len(cells))


def test_sentencepiece_draws_as_often(bpe):
    """Its draws differ in each process, so this is a comparison of two samples."""
    ours, line, one, draw = BpeDropout(bpe, 0.3), "newest banest", generator(), bpe.processor.encode
    mine = counted(lambda: ours.encode(line, one), bpe, 20_000)
    theirs = counted(lambda: draw(line, enable_sampling=True, alpha=0.3, nbest_size=-1), bpe, 20_000)
    pairs = [(mine[parts], theirs[parts]) for parts in {*mine, *theirs} if mine[parts] + theirs[parts] >= 10]
    pairs.append((20_000 - sum(a for a, _ in pairs), 20_000 - sum(b for _, b in pairs)))
    assert_small(sum((a - b) ** 2 / max(a + b, 1) for a, b in pairs), len(pairs))


def test_another_vocabulary_is_refused():
    tokenizer = train_tokenizer(LINES[:100], TokenizerConfig("unigram", 400))
    with pytest.raises(NMTError, match=r"^data\.noise\.bpe_dropout=0\.1: needs a bpe vocabulary, not unigram$"):
        BpeDropout(tokenizer, 0.1)
