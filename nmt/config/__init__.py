"""Typed configuration: what every key means, its unit, and the rules between keys.

The YAML groups under `conf/` contain the values; their defaults are the paper's. The string under a
field is its help. Section and table numbers refer to "Attention Is All You Need"
(arXiv:1706.03762).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
