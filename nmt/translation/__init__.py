"""Translate lines, including long ones, in jobs that resume after being killed."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
