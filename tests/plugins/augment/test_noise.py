"""Noise in training pairs, and the distribution of BPE-dropout."""

import itertools
import math
import pickle
import random
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from nmt.config import NMTError, TokenizerConfig
from nmt.plugins.augment import bpe_dropout, typos
from nmt.plugins.augment.bpe_dropout import BpeDropout
from nmt.plugins.augment.noise import KINDS, noisy, sentence_generator
from nmt.plugins.augment.plugin import NoiseConfig
from nmt.plugins.augment.typos import TYPOS, with_typos
from nmt.text import SentencePieceTokenizer, clean, train_tokenizer

PAIR = ("The 3 old men didn't see her in Rome.", "Die 3 alten Männer sahen sie nicht in Rom.")
some = settings(max_examples=100, deadline=None, derandomize=True, database=None)
fragments = st.sampled_from(
    [
        *"aAéßǆ\u0131.,?!¿¡;。、।؟…'\"(7",
        "ŉ",
        "ﬁ",
        "e\u0301",
        "\u0301",
        "क्ष",
        "日本",
        "한",
        "😀",
        " ",
        "don't",
    ]
)
texts = st.one_of(st.text(max_size=20), st.lists(fragments, max_size=10).map("".join)).map(clean)
numbers = st.integers(0, 2**32)


def generator(number: int = 0) -> np.random.Generator:
    return sentence_generator(1, 0, 0, number)


def always(kind: str, source: str, target: str, number: int = 0) -> tuple[str, str]:
    return noisy((source, target), NoiseConfig(**{kind: 1.0}), generator(number))


@some
@given(
    source=texts,
    target=texts,
    kinds=st.sets(st.sampled_from(list(KINDS)), min_size=1),
    number=numbers,
)
def test_noise_keeps_lines_clean_and_never_empties_one(source, target, kinds, number):
    assert noisy((source, target), NoiseConfig(), generator(number)) == (source, target)
    config = NoiseConfig(**dict.fromkeys(kinds, 1.0))
    changed = noisy((source, target), config, generator(number))
    assert changed == noisy((source, target), config, generator(number))
    assert [clean(side) for side in changed] == list(changed)
    assert [bool(side) for side in changed] == [bool(source), bool(target)]
    if not source or not target:
        assert changed == (source, target)


@pytest.mark.parametrize("kind", KINDS)
def test_noise_occurs_with_its_probability(kind):
    size = 4000
    share = 0.3
    config = NoiseConfig(**{kind: share})
    is_changed = [noisy(PAIR, config, generator(n)) != PAIR for n in range(size)]
    # Typos are made with probability 0.1 for each kind that is possible in the line.
    places = sum(bool(typo.places.search(PAIR[0])) for typo in TYPOS.values())
    rate = share * (1 - 0.9**places if kind == "typos" else 1)
    assert abs(np.mean(is_changed) - rate) < 5 * math.sqrt(share / size)


@pytest.mark.parametrize(
    ("kind", "pair", "expected"),
    [
        # OpusTrainer 0.5 gives the same by its UpperCase, TitleCase and RemoveEndPunctuation.
        ("upper", ("Ein Maß.", "a b"), ("EIN MASS.", "A B")),
        ("title", ("the iPhone of 2nd use", "das iPhone"), ("The IPhone Of 2nd Use", "Das IPhone")),
        ("end_punctuation", ("Who?", "Wer."), ("Who?", "Wer.")),
        ("end_punctuation", ("Well...", "Nun."), ("Well...", "Nun.")),
        ("end_punctuation", ("What;", "Who?"), ("What", "Who")),
        # OpusTrainer does not:
        ("title", ("¿qué «es»?", "(what) 'is'"), ("¿Qué «Es»?", "(What) 'Is'")),
    ],
)
def test_case_and_punctuation(kind, pair, expected):
    assert always(kind, *pair) == expected


@pytest.mark.parametrize(
    ("line", "absent"),
    [
        ("Київ — столиця України, її ґанки гарні.", "ыэъё"),
        ("Это новый адрес электронной почты, объявлено ещё вчера.", "іїєґ"),
        ("Това е книга, хубава и голяма.", "ыэъёіїєґ"),
        ("Гэта новы дом, які мы будавалі.", "ъїєґ"),
    ],
)
def test_typos_add_no_letters_of_another_language(line, absent, monkeypatch):
    monkeypatch.setattr(typos, "TYPO_RATE", 1.0)
    typed = "".join(with_typos(line, generator(n)) for n in range(300)).lower()
    assert not set(absent) & set(typed)


@pytest.mark.parametrize(
    ("line", "results"),
    [
        ("ї", {"х", "є"}),
        ("і 7", {"у", "ц", "ф", "в", "ч", "я"}),
        ("ё ы", {"у", "ц", "ф", "в", "ч", "я"}),
    ],
)
def test_neighbors_on_the_ukrainian_and_russian_keyboards(line, results, monkeypatch):
    monkeypatch.setattr(typos, "TYPOS", {"nearby_char": TYPOS["nearby_char"]})
    monkeypatch.setattr(typos, "TYPO_RATE", 1.0)
    typed = {with_typos(line, generator(n)) for n in range(200)}
    index = len(line) - 1 if line.endswith("ы") else 0
    assert {text[index] for text in typed} == results


@pytest.mark.parametrize(
    ("name", "line", "results"),
    [
        ("char_swap", "Hu\u0131 7", {"Uh\u0131 7", "H\u0131u 7"}),
        ("missing_char", "ab 7", {"a 7", "b 7"}),
        ("extra_char", "1Q", {"1WQ", "1AQ"}),
        ("nearby_char", "Ю", {"Б", "Д", "Ж"}),
        ("nearby_char", "\u0131日7", {"\u0131日7"}),
        ("skipped_space", "a b c", {"ab c", "a bc"}),
        ("random_space", "abc 7d", {"a bc 7d", "ab c 7d"}),
        ("repeated_char", "日7é", {"日日7é", "日7éé"}),
        ("unichar", "aab 77 dd", {"ab 77 dd", "aab 77 d"}),
    ],
)
def test_a_typo_can_occur_at_each_place(name, line, results, monkeypatch):
    monkeypatch.setattr(typos, "TYPOS", {name: TYPOS[name]})
    monkeypatch.setattr(typos, "TYPO_RATE", 1.0)
    assert {with_typos(line, generator(n)) for n in range(100)} == results
    _, target = always("typos", line, line)
    assert target == line


@some
@given(
    source=st.lists(st.sampled_from(["a", "b", "日本"]), min_size=1, max_size=9),
    target=st.lists(st.sampled_from("cd"), min_size=1, max_size=9),
    number=numbers,
)
def test_a_number_is_inserted_at_the_same_relative_position(source, target, number):
    changed = always("numbers", " ".join(source), " ".join(target), number)
    copied = set()
    lowest_shares = []
    highest_shares = []
    for before, text in zip((source, target), changed, strict=True):
        after = text.split()
        [place] = [n for n, word in enumerate(after) if word not in before]
        assert after[:place] + after[place + 1 :] == before
        copied.add(after[place])
        lowest_shares.append(place / len(after))
        highest_shares.append((place + 1) / len(after))
    assert re.fullmatch(r"[1-9][0-9]{0,5}", *copied)
    # Some share lies within both.
    assert max(lowest_shares) < min(highest_shares) + 1e-9


ARGUMENTS = list(itertools.product((0, 1, 2**63 - 1), (0, 1, 10**9), (0, 1, 7), (0, 1, 500)))


def test_a_generator_depends_only_on_its_arguments():
    draws = {key: tuple(sentence_generator(*key).random(4)) for key in ARGUMENTS}
    again = {key: tuple(sentence_generator(*key).random(4)) for key in reversed(ARGUMENTS)}
    assert again == draws


def test_generators_do_not_share_draws():
    draws = set()
    for key in ARGUMENTS:
        draws.update(sentence_generator(*key).random(4))
    assert len(draws) == 4 * len(ARGUMENTS)


# BPE-dropout.

SYLLABLES = [
    "ba",
    "na",
    "an",
    "ana",
    "ban",
    "ni",
    "in",
    "es",
    "est",
    "ne",
    "new",
    "we",
    "wes",
    "t",
    "s",
    "öß",
    "日本",
]
DRAW = random.Random(1)
WORDS = ["".join(DRAW.choices(SYLLABLES, k=DRAW.randint(1, 4))) for _ in range(3000)]
LINES = [" ".join(WORDS[start : start + 5]) for start in range(0, 3000, 5)]
RESERVED = ["(NP", "(N", ")"]
spellings = st.sampled_from(
    [*SYLLABLES, *RESERVED, " ", "  ", "\u2581", "\ue000", "<s>", "<0x41>", "\0", "é", "😀"]
)
spelled = st.one_of(st.text(max_size=30), st.lists(spellings, max_size=12).map("".join))


@pytest.fixture(scope="module")
def bpe() -> SentencePieceTokenizer:
    return train_tokenizer(LINES, TokenizerConfig("bpe", 400))


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "symbols"])
def tokenizer(request, bpe) -> SentencePieceTokenizer:
    return train_tokenizer(LINES, TokenizerConfig("bpe", 400), RESERVED) if request.param else bpe


@some
@given(line=spelled)
def test_without_dropout_ids_equal_those_of_sentencepiece(tokenizer, line):
    assert [BpeDropout(tokenizer, 0).encode(line, generator())] == tokenizer.encode([line])


@some
@given(line=spelled, dropout=st.sampled_from([0.1, 0.5, 0.9, 1.0]), number=numbers)
def test_random_ids_spell_the_line(tokenizer, line, dropout, number):
    ids = BpeDropout(tokenizer, dropout).encode(line, generator(number))
    assert tokenizer.decode(ids) == line
    assert all(3 < id < tokenizer.vocabulary_size for id in ids)


def test_dropout_never_splits_a_reserved_symbol():
    tokenizer = train_tokenizer(LINES, TokenizerConfig("bpe", 400), RESERVED)
    symbols = {tokenizer.encode([symbol])[0][0] for symbol in RESERVED}
    sampler = BpeDropout(tokenizer, 0.9)
    segmentations = set()
    for number in range(30):
        ids = sampler.encode("(NP newest ) (N (NPx banana", generator(number))
        segmentations.add(tuple(ids))
        reserved = [id for id in ids if id in symbols]
        assert tokenizer.subwords(reserved) == ["\u2581(NP", "\u2581)", "\u2581(N", "\u2581(NP"]
    assert len(segmentations) > 10


def test_dropout_needs_a_bpe_vocabulary():
    unigram = train_tokenizer(LINES[:100], TokenizerConfig("unigram", 400))
    with pytest.raises(NMTError, match=r"bpe_dropout=0\.1: needs a bpe vocabulary, not unigram"):
        BpeDropout(unigram, 0.1)


def test_ids_depend_only_on_the_line_and_its_generator(tokenizer):
    sampler = BpeDropout(tokenizer, 0.5)
    copied = pickle.loads(pickle.dumps(sampler))
    lines = LINES[:200]
    ids = [sampler.encode(line, generator(n)) for n, line in enumerate(lines)]
    again = {}
    for n in random.Random(1).sample(range(200), 200):
        again[n] = copied.encode(lines[n], generator(n))
    assert [again[n] for n in range(200)] == ids
    assert ids != [sampler.encode(line, generator(n + 1)) for n, line in enumerate(lines)]


Parts = tuple[str, ...]
Span = tuple[int, int]


def merge_distribution(word: str, scores: dict[str, float], dropout: float) -> dict[Parts, float]:
    """The probability of each result of merging.

    Each step tries to merge the best pair, the left one of equals. A pair is tried only once.
    """
    results: Counter[Parts] = Counter()

    def merge(parts: Parts, dropped: frozenset[Span], probability: float) -> None:
        pairs = []
        begin = 0
        for n, (left, right) in enumerate(itertools.pairwise(parts)):
            merged = left + right
            span = (begin, begin + len(merged))
            if merged in scores and span not in dropped:
                pairs.append((-scores[merged], n, span))
            begin += len(left)
        if not pairs:
            results[parts] += probability
            return
        _, n, span = min(pairs)
        merged_parts = (*parts[:n], parts[n] + parts[n + 1], *parts[n + 2 :])
        merge(parts, dropped | {span}, probability * dropout)
        merge(merged_parts, dropped, probability * (1 - dropout))

    merge(tuple(word), frozenset(), 1.0)
    return results


def assert_small(chi_square: float, cells: int) -> None:
    """Fails by chance once in 5e8.

    P(chi square > k + 2 sqrt(k x) + 2 x) < exp(-x) (Laurent and Massart 2000).
    """
    freedom = cells - 1
    assert freedom > 2
    assert chi_square < freedom + 2 * math.sqrt(20 * freedom) + 40


@pytest.mark.parametrize(("kept_letters", "size"), [(0, 4000), (40, 20_000)])
@pytest.mark.parametrize(("word", "dropout"), [("banana", 0.1), ("ananas", 0.8)])
def test_dropout_has_its_exact_distribution(bpe, word, dropout, kept_letters, size, monkeypatch):
    monkeypatch.setattr(bpe_dropout, "KEPT_LETTERS", kept_letters)
    sampler = BpeDropout(bpe, dropout)
    draws = generator()
    counts = Counter(tuple(map(bpe.symbol, sampler.encode(word, draws))) for _ in range(size))
    processor = bpe.processor
    ids = [id for id in range(4, bpe.vocabulary_size) if not processor.is_byte(id)]
    scores = {processor.id_to_piece(id): processor.get_score(id) for id in ids}
    expected = merge_distribution("\u2581" + word, scores, dropout)
    assert sum(expected.values()) == pytest.approx(1)
    assert set(counts) <= set(expected)
    # The test needs at least 5 expected draws per cell; the last cell holds all rare results.
    cells = []
    rest_count = size
    rest_mean = float(size)
    for parts, share in expected.items():
        mean = size * share
        if mean >= 5:
            cells.append((counts[parts], mean))
            rest_count -= counts[parts]
            rest_mean -= mean
    if rest_mean >= 5:
        cells.append((rest_count, rest_mean))
    assert_small(sum((count - mean) ** 2 / mean for count, mean in cells), len(cells))


def test_dropout_has_the_distribution_of_sentencepiece(bpe):
    """Compares two samples, because the draws of sentencepiece differ in each process."""
    line = "newest banest"
    size = 20_000
    sampler = BpeDropout(bpe, 0.3)
    draws = generator()
    ours = Counter(tuple(map(bpe.symbol, sampler.encode(line, draws))) for _ in range(size))
    theirs = Counter[tuple[str, ...]]()
    for _ in range(size):
        ids = bpe.processor.encode(line, enable_sampling=True, alpha=0.3, nbest_size=-1)
        theirs[tuple(map(bpe.symbol, ids))] += 1
    frequent = [parts for parts in {*ours, *theirs} if ours[parts] + theirs[parts] >= 10]
    cells = [(ours[parts], theirs[parts]) for parts in frequent]
    our_rest = size - sum(count for count, _ in cells)
    their_rest = size - sum(count for _, count in cells)
    cells.append((our_rest, their_rest))
    assert_small(sum((a - b) ** 2 / max(a + b, 1) for a, b in cells), len(cells))
