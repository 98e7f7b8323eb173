"""The model that an importer returns."""

from dataclasses import dataclass, field
from typing import Any

from nmt.model import Transformer
from nmt.text import Tokenizer


@dataclass(frozen=True)
class ImportedModel:
    """An imported model."""

    model: Transformer
    trained_by: str
    """The program that trained it, such as marian or transformers."""
    tokenizer: Tokenizer
    length_penalty: float
    """alpha for length_penalty_kind=marian."""
    languages: tuple[str, str] = ("und", "und")
    """The codes of the source and target language; MULTIPLE if lines name them."""
    record: dict[str, Any] = field(default_factory=dict)
    """Further entries of the training record in the model's description."""
