"""Document formats: the parts of a file to translate, and the placement of their markup."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
