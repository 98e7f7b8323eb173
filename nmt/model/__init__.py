"""The Transformer, which depends only on torch, ModelConfig and the kernels."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
