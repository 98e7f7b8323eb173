"""Which terms a translation has after each token. Oracle: its whole text."""

import random
from itertools import chain

import pytest

from nmt.config import UNK, TokenizerConfig
from nmt.plugins.protection.occurrences import which_are_used
from nmt.plugins.protection.phrases import kinds_of_tokens
from nmt.plugins.protection.terms import Term
from nmt.plugins.protection.written_terms import Written, WrittenTerms
from nmt.text import Tokenizer, train_tokenizer

WORDS = [
    "ab",
    "abc",
    "bc",
    "Straße",
    "STRASSE",
    "café",
    "C++",
    "e-mail",
    "a",
    "user name",
    "ſs",
    "x",
]
TARGETS = [
    ["ab"],
    ["Straße"],
    ["café"],
    ["C++"],
    ["e-mail"],
    ["user name"],
    ["abc", "bc"],
    ["ß"],
    ["ab ab"],
]
SIGNS = [" ", "  ", "-", ".", "\u0301", "\u00ad", "\ufeff", "ü", "u\u0308", "\u200d"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    """A vocabulary of pieces that are shorter than words; other characters are spelled in bytes."""
    draw = random.Random(1)
    lines = [" ".join(draw.choices(WORDS, k=5)) + draw.choice(SIGNS) for _ in range(300)]
    return train_tokenizer(lines, TokenizerConfig(kind="bpe", vocabulary_size=330))


@pytest.mark.parametrize("language", ["", "de", "tr"])
@pytest.mark.parametrize("seed", range(3))
def test_terms_after_each_token_are_those_of_the_whole_text(tokenizer, language, seed) -> None:
    draw = random.Random(seed)
    targets = draw.sample(TARGETS, 3)
    row = [Term("x", tuple(forms)).acceptable(language, False) for forms in targets]
    terms = WrittenTerms([row], tokenizer)
    continues = kinds_of_tokens(tokenizer)
    changes = 0
    for _ in range(60):
        text = ""
        for _ in range(4):
            text += draw.choice([*WORDS, *chain(*targets)]) + draw.choice([*SIGNS, "", ""])
        tokens = tokenizer.encode([text], 1)[0]
        # Also pieces that no encoder would write in this order.
        tokens += draw.choices(range(UNK + 1, tokenizer.vocabulary_size), k=3)
        written = Written()
        for at, token in enumerate(tokens, 1):
            before = written.met
            written = terms.after(0, written, token, continues[token] != 0)
            text = tokenizer.decode(tokens[:at])
            assert [bool(written.met >> n & 1) for n in range(3)] == which_are_used(row, text), text
            changes += written.met != before
    assert changes > 60


def test_most_tokens_are_decided_without_reading_the_text(tokenizer, monkeypatch) -> None:
    row = [Term("x", ("Straße",)).acceptable("de", False)]
    terms = WrittenTerms([row], tokenizer)
    texts_read = []
    monkeypatch.setattr(WrittenTerms, "met", lambda self, index, tokens: texts_read.append(tokens))
    tokens = tokenizer.encode(["abc café ab e-mail, user name. C++ abc"], 1)[0]
    continues = kinds_of_tokens(tokenizer)
    written = Written()
    for token in tokens:
        written = terms.after(0, written, token, continues[token] != 0)
    assert not texts_read
