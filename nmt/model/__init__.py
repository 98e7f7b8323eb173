"""The Transformer, of torch and ModelConfig alone."""

from nmt.model.transformer import Transformer

__all__ = ["Transformer"]
