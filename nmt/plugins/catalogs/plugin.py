"""Catalogs of programs: files with the strings of apps, in the formats of their platforms."""

from nmt.extensions import Add


def register(add: Add) -> None:
    pass
