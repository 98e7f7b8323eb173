"""Faster forms of the model's operations on CPUs and GPUs, and the settings that they need."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
