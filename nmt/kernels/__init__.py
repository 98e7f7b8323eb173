"""Fast training and search on a CPU: linear maps with oneDNN, dropout, and memory settings."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
