"""Our normalization as sentencepiece and tokenizers compute it in exported models."""

import random
import unicodedata

import pytest
from sentencepiece import SentencePieceNormalizer
from tokenizers import normalizers

from nmt.plugins.exchange.normalization import (
    quiet_sentencepiece,
    sentencepiece_normalizer,
    tokenizers_steps,
)
from nmt.text import NORMALIZATIONS

BLOCKS = [
    (0x20, 0x24F),
    (0x300, 0x36F),
    (0x5D0, 0x6FF),
    (0x1100, 0x1112),
    (0xAC00, 0xAC40),
    (0x30A0, 0x30FF),
    (0xFB00, 0xFB50),
    (0xFE70, 0xFEFC),
    (0xFF00, 0xFFDC),
    (0x1F300, 0x1F5FF),
]
"""The first code of ranges of letters and signs, and the code after the last one."""


def assigned_characters() -> list[str]:
    """The characters in BLOCKS that Unicode defines."""
    characters = []
    for first, last in BLOCKS:
        characters += map(chr, range(first, last))
    return [character for character in characters if unicodedata.category(character) != "Cn"]


POOL = assigned_characters()


def random_lines() -> list[str]:
    draw = random.Random(3)
    return ["".join(draw.choices(POOL, k=draw.randrange(1, 8))) for _ in range(3000)]


def test_sentencepiece_reports_again_after_an_error(capfd):
    """The level of its log is global to the process."""
    with pytest.raises(KeyError), quiet_sentencepiece():
        raise KeyError
    SentencePieceNormalizer(norm_map=[("a", "b")])
    assert "normalizer" in capfd.readouterr().err


@pytest.mark.parametrize("name", ["canonical", "nfkc", "none"])
def test_steps_for_tokenizers_normalize_sources_as_nmt(name):
    ours = NORMALIZATIONS[name]
    steps = normalizers.Sequence(tokenizers_steps(ours))
    for line in random_lines():
        assert steps.normalize_str(line) == ours.source(line)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["canonical", "nfkc", "none"])
def test_table_for_sentencepiece_normalizes_sources_as_nmt(name):
    """Except for letters with several marks in an unusual order, which a table cannot sort."""
    ours = NORMALIZATIONS[name]
    table = sentencepiece_normalizer(ours)
    if name != "none":
        assert table.normalize("a\u00a0\u3000b") == "\u2581a\u2581b"
    different = 0
    for line in random_lines():
        normalized = table.normalize(line).replace("\u2581", " ")
        different += normalized.split() != ours.source(line).split()
    assert different <= 15
