"""Prepared corpora, the planning of updates, and their way into Lightning."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
