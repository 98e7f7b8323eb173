"""Similar texts: the index finds what a comparison with all texts finds."""

import pytest
from hypothesis import given, strategies as st

from nmt.plugins.memory import index
from nmt.plugins.memory.index import WordIndex, words_of
from nmt.plugins.memory.memory import SAME_WORDS, Memory

WORDS = st.sampled_from(["the", "a", "file", "open", "device", "ice", "é", "電", "x1"])
TEXTS = st.lists(WORDS, max_size=9).map(" ".join)


def distance(first: list[str], second: list[str]) -> int:
    """Levenshtein's distance, from its definition."""
    row = list(range(len(second) + 1))
    for number, word in enumerate(first, 1):
        diagonal = row[0]
        row[0] = number
        for place, other in enumerate(second, 1):
            cost = diagonal + int(word != other)
            diagonal = row[place]
            row[place] = min(cost, row[place] + 1, row[place - 1] + 1)
    return row[-1]


def similar_by_definition(texts: list[str], query: str, minimum: float) -> dict[int, float]:
    words = words_of(query)
    scores = dict[int, float]()
    for number, text in enumerate(texts):
        others = words_of(text)
        most = max(len(words), len(others))
        score = 1 - distance(words, others) / most if words and others else 0.0
        if score >= minimum - 1e-9:
            scores[number] = score
    return scores


@pytest.mark.parametrize("few", [1, 50])
@given(st.lists(TEXTS, max_size=20), TEXTS, st.sampled_from([0.5, 0.6, 0.7, 0.75, 0.9, 1.0]))
def test_the_index_finds_what_a_comparison_with_all_texts_finds(few, texts, query, minimum):
    index.FEW = few  # 1: always counts shared words first
    expected = similar_by_definition(texts, query, minimum)
    similar = WordIndex(texts, minimum).similar(query)
    rounded = {number: round(score, 9) for number, score in similar}
    assert rounded == {number: round(score, 9) for number, score in expected.items()}


def test_words_have_no_case_and_no_punctuation():
    assert words_of("Öffne die “Datei”, (x86_64)!") == ["öffne", "die", "datei", "x86_64"]
    # Scripts without blanks: each character, with its marks, is a word.
    assert words_of("打开Wi-Fi設定") == ["打", "开", "wi", "fi", "設", "定"]
    assert words_of("हिन्दी में") == ["हिन्दी", "में"]


def test_the_most_similar_entries_come_first():
    pairs = [
        ("Close the big old door", "1"),
        ("Open the big old door", "2"),
        ("open the big old door!", "3"),
        ("Open the big old doors", "4"),
        ("Open the big old window", "5"),
        ("Something else", "6"),
    ]
    entries = Memory(pairs, 0.75).similar("Open the big old door.")
    # The same words with fewer other letters first; then the letters decide between equal words.
    assert [entry.target for entry in entries] == ["2", "3", "4"]
    assert [entry.score for entry in entries] == [SAME_WORDS, SAME_WORDS, 0.8]
    assert Memory(pairs, 1.0).similar("Open the big old door.") == []


def test_an_exact_entry_is_the_last_one_in_canonical_form():
    memory = Memory([("e\u0301t\u00e9  x ", " a\tb "), ("\u00e9te\u0301 x", "c"), ("", "d")], 0.75)
    assert len(memory) == 1
    assert memory.empty == 1
    entry = memory.exact("\u00e9t\u00e9 x")
    assert entry
    assert entry.target == "c"
    # Case and punctuation count.
    assert memory.exact("\u00c9t\u00e9 x") is None
    assert memory.exact("\u00e9t\u00e9 x.") is None


def test_a_text_at_exactly_the_minimum_is_similar():
    # 2 edits in 5 words.
    texts = WordIndex(["one two three four five"], 0.6)
    [entry] = texts.similar("one two three x y")
    assert entry.score == pytest.approx(0.6)
