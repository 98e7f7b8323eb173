"""Faster forms of what the model says plainly, for CPUs and GPUs, and the settings that they need."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
