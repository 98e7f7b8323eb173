"""A translator of models that are in memory."""

from collections.abc import Sequence

from nmt.config import DecodeConfig
from nmt.model import Transformer
from nmt.search.torch_engine import TorchEngine
from nmt.text.tokenizers import Tokenizer
from nmt.translation.translator import Options, Translator


def torch_translator(models: Sequence[Transformer], tokenizer: Tokenizer, config: DecodeConfig) -> Translator:
    """A translator of models that are in memory."""
    return Translator(TorchEngine(models, config), tokenizer, Options(config.length_penalty))
