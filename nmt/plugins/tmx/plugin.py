"""Translation memories in TMX as parallel text."""

from nmt.extensions import Add, PairsEntry


def register(add: Add) -> None:
    here = "nmt.plugins.tmx.tmx"
    add(
        PairsEntry(
            ".tmx",
            f"{here}:read_pairs",
            languages=f"{here}:languages",
            dated=f"{here}:read_dated_pairs",
            names_languages=True,
        )
    )
