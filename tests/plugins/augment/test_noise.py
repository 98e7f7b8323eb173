"""Noise in pairs: what each kind changes, how often, and by which generator; the exact distribution of BPE-dropout."""

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
from nmt.plugins.augment import bpe_dropout, noise
from nmt.plugins.augment.bpe_dropout import BpeDropout
from nmt.plugins.augment.noise import KINDS, PLACES, TYPOS, noisy, sentence_generator, with_typos
from nmt.plugins.augment.plugin import NoiseConfig
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
def test_clean_lines_stay_clean_and_none_is_lost(source, target, kinds, number):
    assert noisy((source, target), NoiseConfig(), generator(number)) == (source, target)
    config = NoiseConfig(**dict.fromkeys(kinds, 1.0))
    changed = noisy((source, target), config, generator(number))
    assert changed == noisy((source, target), config, generator(number))
    assert [clean(side) for side in changed] == list(changed)
    assert [bool(side) for side in changed] == [bool(source), bool(target)]
    if not source or not target:
        assert changed == (source, target)


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_happens_as_often_as_asked_for(kind):
    size, share = 4000, 0.3
    happened = [
        noisy(PAIR, NoiseConfig(**{kind: share}), generator(n)) != PAIR for n in range(size)
    ]
    places = sum(bool(PLACES[name].search(PAIR[0])) for name in TYPOS)
    rate = share * (1 - 0.9**places if kind == "typos" else 1)
    assert abs(np.mean(happened) - rate) < 5 * math.sqrt(share / size)


def test_case_and_punctuation():
    for kind, pair, expected in (
        # OpusTrainer 0.5 gives the same by its UpperCase, TitleCase and RemoveEndPunctuation.
        ("upper", ("Ein Maß.", "a b"), ("EIN MASS.", "A B")),
        ("title", ("the iPhone of 2nd use", "das iPhone"), ("The IPhone Of 2nd Use", "Das IPhone")),
        ("end_punctuation", ("Who?", "Wer."), ("Who?", "Wer.")),
        ("end_punctuation", ("Well...", "Nun."), ("Well...", "Nun.")),
        ("end_punctuation", ("What;", "Who?"), ("What", "Who")),
        # OpusTrainer does not:
        ("title", ("¿qué «es»?", "(what) 'is'"), ("¿Qué «Es»?", "(What) 'Is'")),
    ):
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
def test_typos_have_no_letters_of_another_language(line, absent, monkeypatch):
    monkeypatch.setattr(noise, "TYPO_RATE", 1.0)
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
    monkeypatch.setattr(noise, "TYPOS", {"nearby_char": TYPOS["nearby_char"]})
    monkeypatch.setattr(noise, "TYPO_RATE", 1.0)
    typed = {with_typos(line, generator(n)) for n in range(200)}
    index = len(line) - 1 if line.endswith("ы") else 0
    assert {text[index] for text in typed} == results


def test_a_typo_happens_at_every_place_that_has_it(monkeypatch):
    for name, line, results in (
        ("char_swap", "Hu\u0131 7", {"Uh\u0131 7", "H\u0131u 7"}),
        ("missing_char", "ab 7", {"a 7", "b 7"}),
        ("extra_char", "1Q", {"1WQ", "1AQ"}),
        ("nearby_char", "Ю", {"Б", "Д", "Ж"}),
        ("nearby_char", "\u0131日7", {"\u0131日7"}),
        ("skipped_space", "a b c", {"ab c", "a bc"}),
        ("random_space", "abc 7d", {"a bc 7d", "ab c 7d"}),
        ("repeated_char", "日7é", {"日日7é", "日7éé"}),
        ("unichar", "aab 77 dd", {"ab 77 dd", "aab 77 d"}),
    ):
        monkeypatch.setattr(noise, "TYPOS", {name: TYPOS[name]})
        monkeypatch.setattr(noise, "TYPO_RATE", 1.0)
        assert {with_typos(line, generator(n)) for n in range(100)} == results
        assert always("typos", line, line)[1] == line


@some
@given(
    source=st.lists(st.sampled_from(["a", "b", "日本"]), min_size=1, max_size=9),
    target=st.lists(st.sampled_from("cd"), min_size=1, max_size=9),
    number=numbers,
)
def test_a_number_is_copied_to_the_same_share_of_both_sides(source, target, number):
    changed = [
        side.split() for side in always("numbers", " ".join(source), " ".join(target), number)
    ]
    shares, copied = [], set()
    for before, after in zip((source, target), changed, strict=True):
        [place] = [
            n
            for n in range(len(after))
            if after[:n] + after[n + 1 :] == before and after[n] not in before
        ]
        copied.add(after[place])
        shares.append((place / len(after), (place + 1) / len(after)))
    assert re.fullmatch(r"[1-9][0-9]{0,5}", *copied)
    # Some share lies within both.
    assert max(low for low, _ in shares) < min(high for _, high in shares) + 1e-9


def test_a_generator_is_a_function_of_its_numbers_and_no_two_share_draws():
    keys = list(itertools.product((0, 1, 2**63 - 1), (0, 1, 10**9), (0, 1, 7), (0, 1, 500)))
    draws = {key: tuple(sentence_generator(*key).random(4)) for key in keys}
    assert {key: tuple(sentence_generator(*key).random(4)) for key in reversed(keys)} == draws
    assert len({draw for four in draws.values() for draw in four}) == 4 * len(keys)


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
@given(line=spelled, dropout=st.sampled_from([0.1, 0.5, 0.9, 1.0]), number=numbers)
def test_draws_spell_the_line_and_equal_sentencepiece_without_dropout(
    tokenizer, line, dropout, number
):
    assert [BpeDropout(tokenizer, 0).encode(line, generator())] == tokenizer.encode([line])
    ids = BpeDropout(tokenizer, dropout).encode(line, generator(number))
    assert tokenizer.decode(ids) == line
    assert all(3 < id < tokenizer.vocabulary_size for id in ids)


def test_a_reserved_symbol_stays_whole_and_another_kind_of_vocabulary_is_refused():
    tokenizer = train_tokenizer(LINES, TokenizerConfig("bpe", 400), RESERVED)
    symbols = {tokenizer.encode([symbol])[0][0] for symbol in RESERVED}
    drawn = {
        tuple(BpeDropout(tokenizer, 0.9).encode("(NP newest ) (N (NPx banana", generator(n)))
        for n in range(30)
    }
    whole = ["\u2581(NP", "\u2581)", "\u2581(N", "\u2581(NP"]
    assert all(tokenizer.subwords([id for id in ids if id in symbols]) == whole for ids in drawn)
    assert len(drawn) > 10
    with pytest.raises(NMTError, match=r"bpe_dropout=0\.1: needs a bpe vocabulary, not unigram"):
        BpeDropout(train_tokenizer(LINES[:100], TokenizerConfig("unigram", 400)), 0.1)


def test_a_line_depends_on_its_generator_alone(tokenizer):
    ours = BpeDropout(tokenizer, 0.5)
    copied = pickle.loads(pickle.dumps(ours))
    drawn = [ours.encode(line, generator(n)) for n, line in enumerate(LINES[:200])]
    again = {
        n: copied.encode(LINES[n], generator(n)) for n in random.Random(1).sample(range(200), 200)
    }
    assert [again[n] for n in range(200)] == drawn
    assert drawn != [ours.encode(line, generator(n + 1)) for n, line in enumerate(LINES[:200])]


def merge_distribution(
    word: str, scores: dict[str, float], dropout: float
) -> dict[tuple[str, ...], float]:
    """Probability of each result of merging the best pair, the left one of equals, each once by 1 - dropout."""
    results: Counter[tuple[str, ...]] = Counter()

    def merge(
        parts: tuple[str, ...], dropped: frozenset[tuple[int, int]], probability: float
    ) -> None:
        starts = [sum(map(len, parts[:n])) for n in range(len(parts))]
        places = [
            (a + b, starts[n], n)
            for n, (a, b) in enumerate(itertools.pairwise(parts))
            if a + b in scores
        ]
        pairs = [
            (-scores[ab], start, n)
            for ab, start, n in places
            if (start, start + len(ab)) not in dropped
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


@pytest.mark.parametrize(("kept_letters", "size"), [(0, 4000), (40, 20_000)])
@pytest.mark.parametrize(("word", "dropout"), [("banana", 0.1), ("ananas", 0.8)])
def test_dropout_has_its_exact_distribution(bpe, word, dropout, kept_letters, size, monkeypatch):
    monkeypatch.setattr(bpe_dropout, "KEPT_LETTERS", kept_letters)
    ours, one, processor = BpeDropout(bpe, dropout), generator(), bpe.processor
    counts = Counter(tuple(map(bpe.symbol, ours.encode(word, one))) for _ in range(size))
    ids = [i for i in range(4, bpe.vocabulary_size) if not processor.is_byte(i)]
    scores = {processor.id_to_piece(i): processor.get_score(i) for i in ids}
    expected = merge_distribution("\u2581" + word, scores, dropout)
    assert sum(expected.values()) == pytest.approx(1)
    assert set(counts) <= set(expected)
    cells = [
        (counts[parts], size * share) for parts, share in expected.items() if size * share >= 5
    ]
    rest = size - sum(count for count, _ in cells), size - sum(mean for _, mean in cells)
    cells += [rest] if rest[1] >= 5 else []
    assert_small(sum((count - mean) ** 2 / mean for count, mean in cells), len(cells))


def test_sentencepiece_draws_as_often(bpe):
    """Its draws differ in each process, so this is a comparison of two samples."""
    ours, line, one, size = BpeDropout(bpe, 0.3), "newest banest", generator(), 20_000
    mine = Counter(tuple(map(bpe.symbol, ours.encode(line, one))) for _ in range(size))
    draws = (
        bpe.processor.encode(line, enable_sampling=True, alpha=0.3, nbest_size=-1)
        for _ in range(size)
    )
    theirs = Counter(tuple(map(bpe.symbol, draw)) for draw in draws)
    pairs = [
        (mine[parts], theirs[parts])
        for parts in {*mine, *theirs}
        if mine[parts] + theirs[parts] >= 10
    ]
    pairs.append((size - sum(a for a, _ in pairs), size - sum(b for _, b in pairs)))
    assert_small(sum((a - b) ** 2 / max(a + b, 1) for a, b in pairs), len(pairs))
