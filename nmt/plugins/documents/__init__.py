"""Document formats: which parts of a file are translated, and how their markup is put back."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
