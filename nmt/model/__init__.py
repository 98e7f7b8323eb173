"""The Transformer, which depends only on torch, ModelConfig and the kernels."""

from nmt.model.transformer import Transformer

__all__ = ["Transformer"]
