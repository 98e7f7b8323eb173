"""Formats of books and manuals."""

from nmt.extensions import Add, DocumentEntry


def register(add: Add) -> None:
    # Addresses instead of classes, so that a reader is imported only for a document of its format.
    here = "nmt.plugins.prose"
    add(DocumentEntry("rst", f"{here}.rst:Rst", suffixes=(".rst", ".rest")))
    add(DocumentEntry("asciidoc", f"{here}.asciidoc:AsciiDoc", suffixes=(".adoc", ".asciidoc")))
    docbook = DocumentEntry(
        "docbook",
        f"{here}.docbook:DocBook",
        suffixes=(".dbk", ".docbook"),
        shared_suffixes=(".xml",),
    )
    add(docbook)
    dita = DocumentEntry(
        "dita",
        f"{here}.dita:Dita",
        suffixes=(".dita", ".ditamap"),
        shared_suffixes=(".xml",),
    )
    add(dita)
    add(DocumentEntry("usx", f"{here}.usx:Usx", suffixes=(".usx",)))
    add(DocumentEntry("usfm", f"{here}.usfm:Usfm", suffixes=(".usfm", ".sfm")))
