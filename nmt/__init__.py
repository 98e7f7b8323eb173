"""Neural machine translation with the Transformer of "Attention Is All You Need".

    import nmt

    nmt.load("runs/mine").translate(["Hello world."])

The public functions are `nmt.load`, `nmt.prepare` and `nmt.train`; see docs/python.md.
"""

from typing import TYPE_CHECKING, Any

from nmt.version import __version__ as __version__

if TYPE_CHECKING:
    from nmt.api import load, prepare, train

__all__ = ["load", "prepare", "train"]


def __getattr__(name: str) -> Any:
    # Their imports take seconds, and the command line imports this file too.
    if name not in __all__:
        raise AttributeError(f"module 'nmt' has no attribute {name!r}")
    from nmt import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return __all__
