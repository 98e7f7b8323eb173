"""Items that a translation must keep unchanged, such as placeholders and numbers with units."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
