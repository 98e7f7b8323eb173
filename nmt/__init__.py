"""Neural machine translation with the Transformer of "Attention Is All You Need".

    import nmt

    nmt.load("runs/mine").translate(["Hello world."])

The public functions are `nmt.load`, `nmt.prepare` and `nmt.train`; see docs/reference/python.md.
"""

from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    from nmt.api import load as load, prepare as prepare, train as train

__version__ = "0.1.0"
# Importing the Python API takes seconds, and the command line imports this file too.
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs={"api": ["load", "prepare", "train"]})
