"""Neural machine translation with the Transformer of "Attention Is All You Need".

    import nmt

    nmt.load("runs/mine").translate("Hello world.")

See docs/reference/python.md.
"""

from typing import TYPE_CHECKING

import lazy_loader

__version__ = "0.1.0"
if TYPE_CHECKING:
    from nmt.api import (
        Model as Model,
        Stream as Stream,
        compare as compare,
        load as load,
        prepare as prepare,
        score as score,
        train as train,
    )
    from nmt.errors import NMTError as NMTError
    from nmt.evaluation import Score as Score
    from nmt.translation import Translation as Translation
else:  # importing the Python API takes seconds, and the command line imports this file too
    names = {"api": ["Model", "compare", "load", "prepare", "score", "train"], "errors": ["NMTError"]}
    names |= {"evaluation": ["Score"], "translation": ["Translation"]}
    __getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submod_attrs=names)
