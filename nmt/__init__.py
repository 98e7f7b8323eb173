"""Neural machine translation with the Transformer of "Attention Is All You Need".

    import nmt

    nmt.load("runs/mine").translate(["Hello world."])

`nmt.load`, `nmt.prepare` and `nmt.train` are all that is public: docs/python.md.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nmt.api import load, prepare, train

__version__ = "0.1.0"
__all__ = ["load", "prepare", "train"]


def __getattr__(name: str) -> Any:
    # What they need takes seconds to load, and the command line begins here too.
    if name not in __all__:
        raise AttributeError(f"module 'nmt' has no attribute {name!r}")
    from nmt import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return __all__
