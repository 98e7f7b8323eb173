"""Options of the vocabulary and its tokenizer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nmt.config.fields import MISSING, choice, number
from nmt.errors import SettingError

# Sentencepiece would choose other ids by default, and have no padding.
PAD = 0
BOS = 1
EOS = 2
UNK = 3
"""Ids of the special symbols, the same in every vocabulary: padding, start, end, unknown."""
IMPORTED_KINDS = ("marian", "multilingual", "extended")
"""Kinds of vocabularies that are not learned by `nmt preprocess`: of imported models, and of models
that `nmt extend` wrote."""
LEAST_ENTRIES = 300
"""The smallest vocabulary that contains every byte."""
LEAST_WORDPIECES = 600
"""A wordpiece vocabulary contains every byte twice: for the start of a word and for the rest."""


def normalization_before(tokenizer: Mapping[str, Any]) -> str:
    """How text was normalized before `tokenizer.normalization` existed."""
    # Models of earlier versions were trained on NFKC text; imported models bring their own rules.
    return "none" if tokenizer.get("kind") in IMPORTED_KINDS else "nfkc"


@dataclass
class TokenizerConfig:
    """The joint subword vocabulary of both languages (section 5.1)."""

    kind: str = choice(MISSING, "bpe", "unigram", "wordpiece", *IMPORTED_KINDS)
    """bpe or unigram (sentencepiece), wordpiece (tokenizers), or the kind of an existing model,
    with init=MODEL: marian, multilingual (M2M-100, NLLB, mBART-50), extended (`nmt extend`)."""
    vocabulary_size: int = number(MISSING, 5, 1_000_000)
    """Number of entries, including special symbols; reduced, with a notice, if the corpus is too
    small."""
    sample: int = number(1_000_000, 1, 10**9)
    """Maximum number of training pairs to learn from (a random sample); unigram needs 2 GB of RAM
    for 200,000 pairs."""
    normalization: str = choice(
        "canonical",
        "canonical",
        "nfkc",
        "none",
        before=normalization_before,
    )
    """How text is normalized: canonical (Unicode's NFC; in sources, ligatures and presentation
    forms are folded, too), nfkc (compatibility forms, which change signs such as \u00bd and
    \u00b2), or none."""

    def __post_init__(self) -> None:
        # Every byte has an entry, so that any character can be written.
        least = LEAST_WORDPIECES if self.kind == "wordpiece" else LEAST_ENTRIES
        # The vocabulary of an imported model is as large as it is.
        if self.kind not in IMPORTED_KINDS and self.vocabulary_size < least:
            raise SettingError(
                f"must be at least {least} to contain every byte",
                key="tokenizer.vocabulary_size",
                value=str(self.vocabulary_size),
            )
