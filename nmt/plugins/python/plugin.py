"""The Python API: `import nmt`."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    for name in ("Model", "load", "prepare", "score", "train"):
        add("api", name, f"nmt.plugins.python.api:{name}")
    for name, module in (
        ("NMTError", "errors"),
        ("Score", "evaluation"),
        ("Translation", "translation"),
    ):
        add("api", name, f"nmt.{module}:{name}")
