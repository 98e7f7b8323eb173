"""Composition: YAML groups in `conf/` and `KEY=VALUE` overrides become plain dataclasses.

Only this folder imports Hydra, when words need it, and no other one handles a DictConfig.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
