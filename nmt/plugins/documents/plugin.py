"""Document formats: which text is translated, and how its markup is put back."""

from collections.abc import Callable


def register(add: Callable[..., None]) -> None:
    here = "nmt.plugins.documents"
    add("document", "html", f"{here}.html:Html", suffixes=(".html", ".htm", ".xhtml"))
    add("document", "markdown", f"{here}.markdown:Markdown", suffixes=(".md", ".markdown"))
    add("document", "po", f"{here}.catalogs:Catalog", suffixes=(".po", ".pot"))
    for name in ("srt", "vtt"):
        add("document", name, f"{here}.subtitles:Subtitles", suffixes=(f".{name}",))
    add("document", "xliff", f"{here}.xliff:Xliff", suffixes=(".xlf", ".xliff"))
    add("document", "json", f"{here}.json_strings:Strings", suffixes=(".json",))
    for name in ("docx", "pptx", "xlsx", "odt", "odp", "ods", "epub"):
        add("document", name, f"{here}.archives:Archive", suffixes=(f".{name}",))
    add("document", "text", f"{here}.document:PlainText", suffixes=(".txt",), by_line=True)
