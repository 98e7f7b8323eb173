"""Neural machine translation with the Transformer of "Attention Is All You Need".

    import nmt

    nmt.load("runs/mine").translate("Hello world.")

See docs/reference/python.md.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from nmt.api import Model, Stream as Stream, load, prepare, score, train
    from nmt.errors import NMTError as NMTError
    from nmt.evaluation import Score as Score
    from nmt.plugins.exchange.exporting import export as export
    from nmt.plugins.results.comparison import compare as compare
    from nmt.translation import Translation as Translation


__all__ = [
    "Model",
    "NMTError",
    "Score",
    "Translation",
    "compare",
    "export",
    "load",
    "prepare",
    "score",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a name of the Python API on first use.

    The command line also imports this file.
    """
    if name in __all__:
        from nmt.extensions import PythonEntry
        from nmt.registry import entries_of

        if name in entries_of(PythonEntry):
            return entries_of(PythonEntry)[name].load()
    raise AttributeError(f"module nmt has no attribute {name}")


def __dir__() -> list[str]:
    return __all__
