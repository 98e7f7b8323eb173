"""Our normalization for programs that cannot call it.

sentencepiece gets a table, the tokenizers library a list of steps.
"""

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from typing import Any

from tokenizers import Regex, normalizers

from nmt.text import FOLDINGS, INVISIBLE, Normalization

BLANKS = Regex("[\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+")
"""The white space that str.split splits at."""
# Unicode classes them as letters, so \p{M} does not match them.
HALF_WIDTH_MARKS = "\uff9e\uff9f"
"""The voicing marks of half-width katakana."""
APART = "\uf8fe"
"""A private-use character that separates a mark from its letter while both are folded."""
RULES = {"nfkc": "nfkc", "none": "identity"}
"""Normalization -> its name in sentencepiece."""


def spellings(character: str) -> Iterator[str]:
    """The sequences of characters that NFC composes into a character: e + ́ for é."""
    decomposed = unicodedata.normalize("NFD", character)
    letter = decomposed[0]
    marks = decomposed[1:]
    # A file may have the marks in any order, and sentencepiece can only compare sequences.
    for order in map("".join, permutations(marks)):
        for composed in range(len(marks) + 1):
            # The first marks are part of the letter already, the others follow it.
            begin = unicodedata.normalize("NFC", letter + order[:composed])
            sequence = begin + order[composed:]
            if sequence != character and unicodedata.normalize("NFC", sequence) == character:
                yield sequence


def folding_table(normalization: Normalization) -> dict[str, str]:
    """Sequences of characters, and what a model reads instead.

    sentencepiece replaces the longest sequence that matches.
    """
    table = dict[str, str]()
    # sentencepiece accepts a custom normalization only as a table.
    for code in (*range(0xD800), *range(0xE000, 0x110000)):  # all but surrogates
        character = chr(code)
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

    # The level is global to the process.
    sentencepiece.set_min_log_level(1)
    try:
        yield
    finally:
        sentencepiece.set_min_log_level(0)


def sentencepiece_normalizer(normalization: Normalization) -> Any:
    """sentencepiece's description of a normalization."""
    from sentencepiece import SentencePieceNormalizer

    rule_name = RULES.get(normalization.name)
    table = None
    if rule_name is None:
        table = list(folding_table(normalization).items())
    with quiet_sentencepiece():
        return SentencePieceNormalizer(
            rule_name=rule_name,
            norm_map=table,
            # As in nmt's own vocabularies: a blank before the first word, and none in excess.
            add_dummy_prefix=True,
            remove_extra_whitespaces=True,
        )


def tokenizers_steps(normalization: Normalization) -> list[normalizers.Normalizer]:
    """The steps by which the tokenizers library normalizes a source as `normalization` does."""
    single_blanks = [normalizers.Replace(BLANKS, " "), normalizers.Strip()]
    if normalization.name == "none":
        return single_blanks
    if normalization.name == "nfkc":
        return [normalizers.NFKC(), *single_blanks]
    # The canonical normalization, as in nmt.text.normalization: without invisible characters, in
    # NFC, with some characters folded, and in NFC again.
    folded = {chr(code): form for code, form in FOLDINGS.items()}
    # An empty match: the position between a character to fold and the mark after it.
    before_mark = Regex(rf"(?<=[{''.join(folded)}])(?=[\p{{M}}{HALF_WIDTH_MARKS}])")
    return [
        normalizers.Replace(Regex(f"[{INVISIBLE}]+"), ""),
        normalizers.NFC(),
        # `Precompiled` folds all characters in one step. Without APART, it would take a character
        # and the marks that follow it for one entry of its table.
        normalizers.Replace(before_mark, APART),
        normalizers.Precompiled(compiled_table(folded)),
        normalizers.Replace(APART, ""),
        # Folding may leave a letter beside a mark that NFC composes with it.
        normalizers.NFC(),
        *single_blanks,
    ]


def compiled_table(table: dict[str, str]) -> bytes:
    """A table of replacements as sentencepiece compiles it, which `Precompiled` reads."""
    from sentencepiece import SentencePieceNormalizer, sentencepiece_model_pb2

    with quiet_sentencepiece():
        normalizer = SentencePieceNormalizer(norm_map=list(table.items()))
    content = normalizer.serialized_normalizer_spec()
    spec = sentencepiece_model_pb2.NormalizerSpec.FromString(content)  # type: ignore[attr-defined]
    return bytes(spec.precompiled_charsmap)
