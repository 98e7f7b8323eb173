"""Atomic writes, locks, readers for untrusted files, and the model directory."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
