"""Our normalization for programs that cannot call it: as a table for sentencepiece, as steps for tokenizers."""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from typing import Any

from tokenizers import Regex, normalizers

from nmt.text import FOLDINGS, INVISIBLE, Normalization

# The white space that str.split splits at.
BLANKS = Regex("[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
HALF_WIDTH_MARKS = "\uff9e\uff9f"
APART = "\uf8fe"
"""A private-use character that separates a mark from its letter while both are folded."""
RULES = {"nfkc": "nfkc", "none": "identity"}
"""The names by which sentencepiece knows a normalization."""


def spellings(character: str) -> Iterator[str]:
    """The sequences of characters that NFC composes into a character."""
    decomposed = unicodedata.normalize("NFD", character)
    first, marks = decomposed[0], decomposed[1:]
    for order in permutations(marks):
        for length in range(len(marks) + 1):
            begin = unicodedata.normalize("NFC", first + "".join(order[:length]))
            sequence = begin + "".join(order[length:])
            if sequence != character and unicodedata.normalize("NFC", sequence) == character:
                yield sequence


def folding_table(normalization: Normalization) -> dict[str, str]:
    """Maps sequences of characters to what a model reads instead, for sentencepiece's longest match."""
    table = dict[str, str]()
    characters = (chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF)
    for character in characters:
        read = " " if character.isspace() else normalization.source(character)
        if read != character:
            table[character] = read
        elif unicodedata.normalize("NFD", character) != character:
            table |= dict.fromkeys(spellings(character), character)
    return table


@contextmanager
def quiet_sentencepiece() -> Iterator[None]:
    """sentencepiece without its report on each table that it compiles."""
    import sentencepiece

    sentencepiece.set_min_log_level(1)
    yield
    sentencepiece.set_min_log_level(0)


def sentencepiece_normalizer(normalization: Normalization) -> Any:
    """sentencepiece's description of a normalization."""
    from sentencepiece import SentencePieceNormalizer

    rule_name = RULES.get(normalization.name)
    with quiet_sentencepiece():
        return SentencePieceNormalizer(
            rule_name=rule_name,
            norm_map=None if rule_name else list(folding_table(normalization).items()),
            add_dummy_prefix=True,
            remove_extra_whitespaces=True,
        )


def tokenizers_steps(normalization: Normalization) -> list[normalizers.Normalizer]:
    """The steps that normalize a source as we do."""
    blanks = [normalizers.Replace(BLANKS, " "), normalizers.Strip()]
    if normalization.name == "none":
        return blanks
    if normalization.name == "nfkc":
        return [normalizers.NFKC(), *blanks]
    singles = {chr(code): form for code, form in FOLDINGS.items()}
    before_mark = Regex(rf"(?<=[{''.join(singles)}])(?=[\p{{M}}{HALF_WIDTH_MARKS}])")
    return [
        normalizers.Replace(Regex(f"[{INVISIBLE}]+"), ""),
        normalizers.NFC(),
        # The table's step would replace a character together with the marks that follow it.
        normalizers.Replace(before_mark, APART),
        normalizers.Precompiled(charsmap(singles)),
        normalizers.Replace(APART, ""),
        normalizers.NFC(),
        *blanks,
    ]


def charsmap(table: dict[str, str]) -> bytes:
    """A table as sentencepiece compiles it."""
    from sentencepiece import SentencePieceNormalizer, sentencepiece_model_pb2

    with quiet_sentencepiece():
        normalizer = SentencePieceNormalizer(norm_map=list(table.items()))
    content = normalizer.serialized_normalizer_spec()
    spec = sentencepiece_model_pb2.NormalizerSpec.FromString(content)  # type: ignore[attr-defined]
    return bytes(spec.precompiled_charsmap)
