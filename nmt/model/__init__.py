"""The Transformer; torch and ModelConfig are all it needs."""

from nmt.model.transformer import Transformer

__all__ = ["Transformer"]
