"""Formats of books and manuals."""

from nmt.extensions import Add, DocumentEntry


def register(add: Add) -> None:
    here = "nmt.plugins.prose"
    add(DocumentEntry("docbook", f"{here}.docbook:DocBook", suffixes=(".dbk", ".docbook")))
    add(DocumentEntry("dita", f"{here}.dita:Dita", suffixes=(".dita", ".ditamap")))
    add(DocumentEntry("usfm", f"{here}.usfm:Usfm", suffixes=(".usfm", ".sfm")))
