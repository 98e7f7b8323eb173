"""Our normalization as sentencepiece and tokenizers compute it in exported models."""

import random
import unicodedata

import pytest
from tokenizers import normalizers

from nmt.plugins.exchange.normalization import sentencepiece_normalizer, tokenizers_steps
from nmt.text import NORMALIZATIONS

BLOCKS = [
    (0x20, 0x24F),
    (0x300, 0x36F),
    (0x5D0, 0x6FF),
    (0x1100, 0x1112),
    (0xAC00, 0xAC40),
    (0x30A0, 0x30FF),
]
BLOCKS += [(0xFB00, 0xFB50), (0xFE70, 0xFEFC), (0xFF00, 0xFFDC), (0x1F300, 0x1F5FF)]
POOL = [
    chr(code)
    for first, last in BLOCKS
    for code in range(first, last)
    if unicodedata.category(chr(code)) != "Cn"
]


def lines(number: int) -> list[str]:
    chosen = random.Random(3)
    return ["".join(chosen.choices(POOL, k=chosen.randrange(1, 8))) for _ in range(number)]


@pytest.mark.parametrize("name", ["canonical", "nfkc", "none"])
def test_the_steps_for_tokenizers_normalize_sources_as_we_do(name):
    way = NORMALIZATIONS[name]
    steps = normalizers.Sequence(tokenizers_steps(way))
    assert [line for line in lines(3000) if steps.normalize_str(line) != way.source(line)] == []


@pytest.mark.parametrize("name", ["canonical", "nfkc", "none"])
def test_the_table_for_sentencepiece_normalizes_sources_as_we_do(name):
    """Except for letters with several marks in an unusual order, which a table cannot sort."""
    way = NORMALIZATIONS[name]
    table = sentencepiece_normalizer(way)
    if name != "none":
        assert table.normalize("a\u00a0\u3000b") == "\u2581a\u2581b"
    different = 0
    for line in lines(3000):
        read = table.normalize(line).replace("\u2581", " ").split()
        different += read != way.source(line).split()
    assert different <= 15
