"""Translation memories in TMX as parallel text."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    here = "nmt.plugins.tmx.tmx"
    add("pairs", ".tmx", f"{here}:read_pairs", languages=f"{here}:languages")
