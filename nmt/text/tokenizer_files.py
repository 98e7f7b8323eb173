"""Load tokenizers from files, which may come from anyone."""

from pathlib import Path

from nmt.config import ModelConfig, NMTError, one_line
from nmt.files import parse_json, read_bytes, read_description, sha256
from nmt.text.marian import MARIAN_KEY, MarianTokenizer
from nmt.text.multilingual import MULTILINGUAL_KEY, MultilingualTokenizer
from nmt.text.normalization import SOURCE
from nmt.text.sentencepieces import SentencePieceTokenizer
from nmt.text.tokenizers import SYMBOLS, Tokenizer
from nmt.text.wordpieces import WordPieceTokenizer

VOCABULARY_ENTRIES = 2**20
"""The maximum size of a vocabulary."""


def load_tokenizer(path: Path) -> Tokenizer:
    """Read an untrusted tokenizer file; NMTError if it is missing or not a tokenizer of nmt."""
    content = read_bytes(path)
    if not content:
        raise NMTError(f"{path}: not a tokenizer (an empty file)")
    try:
        # Not by the file's name, which is always tokenizer.model.
        tokenizer = kind_of_tokenizer(content)(content)
        # This raises an error if an entry is invalid UTF-8.
        vocabularies = [tokenizer.vocabulary(), tokenizer.vocabulary(SOURCE)]
    except Exception as error:  # the libraries raise bare RuntimeError and Exception
        raise NMTError(f"{path}: not a tokenizer ({one_line(error)})") from error
    problem = f"{path}: not a tokenizer for nmt"
    entries = vocabularies[0]
    if entries[: len(SYMBOLS)] != SYMBOLS:
        raise NMTError(f"{problem} (its first entries are not {' '.join(SYMBOLS)})")
    for vocabulary in vocabularies:
        # The limit keeps a hostile file from asking for a huge embedding matrix.
        if not len(SYMBOLS) < len(vocabulary) <= VOCABULARY_ENTRIES:
            raise NMTError(f"{problem} (it has {len(entries):,} entries)")
    return tokenizer


def kind_of_tokenizer(content: bytes) -> type[Tokenizer]:
    """The class that reads a tokenizer file."""
    tree = parse_json(content) if content.startswith(b"{") else {}
    if MARIAN_KEY in tree:
        return MarianTokenizer
    if MULTILINGUAL_KEY in tree:
        return MultilingualTokenizer
    return WordPieceTokenizer if tree else SentencePieceTokenizer


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a model directory.

    Raises NMTError if it is not the one that the model was trained with.
    """
    path = folder / "tokenizer.model"
    tokenizer = load_tokenizer(path)
    description = read_description(folder)
    config = ModelConfig(**description.model)
    size = description.vocabulary_size
    source_size = config.source_vocabulary_size or size
    is_same = (
        # Another vocabulary of the same size would give wrong translations without an error.
        sha256(path) == description.tokenizer
        and tokenizer.vocabulary_size == size
        and (tokenizer.source_vocabulary_size or tokenizer.vocabulary_size) == source_size
    )
    if not is_same:
        raise NMTError(
            f"{path} is not the tokenizer that {folder} was trained with: copy the directory again"
        )
    return tokenizer
