"""Typed configuration: what every key means, its unit, and the rules between keys.

The values are in the YAML groups under `conf/`; the defaults there are the paper's. The text under a field is its help.
Sections and tables are those of "Attention Is All You Need" (arXiv:1706.03762).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
