"""Document formats: which text is translated, and how its markup is put back."""

from nmt.extensions import Add, DocumentEntry

XLIFF = (".xlf", ".xliff", ".mqxliff", ".mxliff", ".sdlxliff", ".txlf")
QT = r"\s*(?:<\?xml[^<>]*>\s*)?(?:<!--(?:[^-]|-(?!->)){0,2000}-->\s*)*<(?:!DOCTYPE\s+)?TS[\s>\[]"
"""How a catalog of Qt begins."""


def register(add: Add) -> None:
    # Addresses instead of classes, so that a reader is imported only for a document of its format.
    here = "nmt.plugins.documents"
    add(DocumentEntry("html", f"{here}.html:Html", suffixes=(".html", ".htm", ".xhtml")))
    add(DocumentEntry("markdown", f"{here}.markdown:Markdown", suffixes=(".md", ".markdown")))
    add(DocumentEntry("po", f"{here}.catalogs:Catalog", suffixes=(".po", ".pot")))
    add(DocumentEntry("srt", f"{here}.subtitles:Subtitles", suffixes=(".srt",)))
    add(DocumentEntry("vtt", f"{here}.subtitles:Subtitles", suffixes=(".vtt",)))
    add(DocumentEntry("xliff", f"{here}.xliff:Xliff", suffixes=XLIFF))
    add(DocumentEntry("tmx", f"{here}.tmx_document:Tmx", suffixes=(".tmx",)))
    # Files of TypeScript and texts in Tsonga have this suffix, too.
    add(DocumentEntry("qt", f"{here}.qt:Linguist", suffixes=(".ts",), content=QT))
    add(DocumentEntry("json", f"{here}.json_strings:Strings", suffixes=(".json",)))
    for name in ("docx", "pptx", "xlsx", "odt", "odp", "ods", "epub"):
        add(DocumentEntry(name, f"{here}.archives:Archive", suffixes=(f".{name}",)))
    plain_text = DocumentEntry(
        "text",
        f"{here}.document:PlainText",
        suffixes=(".txt",),
        is_by_line=True,
    )
    add(plain_text)
