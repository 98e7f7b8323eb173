"""Phrases: the token sequences with which a vocabulary spells a text in a translation."""

from functools import lru_cache
from typing import NamedTuple

from nmt.config import UNK
from nmt.text import META, TARGET, WITHOUT_BLANKS, WORD_CHARACTER, Tokenizer

# Where a phrase counts.
BEGINS = 0
"""At the beginning of the translation."""
FOLLOWS = 1
"""Anywhere but at the beginning of the translation."""
GLUED = 2
"""Only right after an `EDGE` token."""

# Bits of a token's kind.
CONTINUES = 1
"""The token continues a word."""
EDGE = 2
"""A word can follow without a blank, as after a hyphen."""

CLOSING = ".,;:!?)]}%\u2026"
"""Punctuation that is followed by a blank."""
CONTEXTS = {BEGINS: [""], FOLLOWS: ["x "], GLUED: ["x-", "x ("]}
"""Place of a phrase -> texts that may precede it."""
IDEOGRAPHIC_FULL_STOP = "\u3002"
"""Precedes phrases in scripts without blanks."""


class Phrase(NamedTuple):
    """Consecutive tokens that meet a constraint."""

    tokens: tuple[int, ...]
    where: int = FOLLOWS
    closed: bool = True
    """Whether it ends with a whole word: no token that continues the word may follow."""


Constraint = tuple[Phrase, ...]
"""Phrases, any of which meets the constraint."""


def is_letter(character: str) -> bool:
    """Whether a character forms words with its neighbors, as in scripts with blanks."""
    return WORD_CHARACTER.match(character) is not None and not WITHOUT_BLANKS.match(character)


@lru_cache
def kinds_of_tokens(tokenizer: Tokenizer) -> bytes:
    """The kind of each vocabulary entry, made up of the bits `CONTINUES` and `EDGE`."""
    return bytes(kind_of_token(tokenizer, id) for id in range(tokenizer.vocabulary_size))


def kind_of_token(tokenizer: Tokenizer, id: int) -> int:
    symbol = tokenizer.subwords([id])[0]
    text = tokenizer.decode([id])
    has_blank = symbol.startswith(META) or text.startswith(" ")
    # A token of byte fallback is a part of a character, which may belong to a letter of the word.
    if not text or "\ufffd" in text:  # a blank, or part of a character
        if symbol == META:
            return EDGE
        return 0 if has_blank else CONTINUES
    kind = 0
    if is_letter(text[0]) and not has_blank:
        kind |= CONTINUES
    if not is_letter(text[-1]) and text[-1] not in CLOSING:
        kind |= EDGE
    return kind


@lru_cache(100_000)
def phrases_of(tokenizer: Tokenizer, text: str, where: int) -> list[Phrase]:
    """The tokens of a text in each context; empty if the vocabulary cannot spell it."""
    # The same text may have other tokens in each context, because subwords cross the borders of
    # words.
    contexts = list(CONTEXTS[where])
    # There, text follows without a blank, so the tokens after "x " alone do not suffice.
    if where == FOLLOWS and WITHOUT_BLANKS.match(text):
        contexts.append(IDEOGRAPHIC_FULL_STOP)
    phrases = list[Phrase]()
    for context in contexts:
        in_context = tokenizer.clean(context + text, TARGET)
        # The vocabulary decides how the text is spelled after the context; what remains after the
        # tokens of the context is the phrase.
        before, both = tokenizer.encode([context.strip(), in_context], TARGET)
        tokens = tuple(both[len(before) :])
        # In some vocabularies, a token covers the end of the context and the beginning of the text.
        is_separate = both[: len(before)] == before
        if is_separate and tokens and UNK not in tokens:
            phrases.append(Phrase(tokens, where, closed=is_letter(text[-1])))
    return phrases
