"""Document formats: which text is translated, and how its markup is put back."""

from nmt.extensions import Add, DocumentEntry, OptionsEntry


def register(add: Add) -> None:
    # Addresses instead of classes, so that a reader is imported only for a document of its format.
    here = "nmt.plugins.documents"
    add(DocumentEntry("html", f"{here}.html:Html", suffixes=(".html", ".htm", ".xhtml")))
    add(OptionsEntry("document.markdown", f"{here}.markdown:MarkdownConfig", is_inline=True))
    markdown = (".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".qmd", ".rmd")
    add(
        DocumentEntry(
            "markdown",
            f"{here}.markdown:Markdown",
            suffixes=markdown,
            options="markdown",
        )
    )
    add(DocumentEntry("mdx", f"{here}.markdown:Mdx", suffixes=(".mdx",), options="markdown"))
    add(DocumentEntry("ipynb", f"{here}.notebooks:Notebook", suffixes=(".ipynb",)))
    add(DocumentEntry("po", f"{here}.catalogs:Catalog", suffixes=(".po", ".pot")))
    add(DocumentEntry("srt", f"{here}.subtitles:Subtitles", suffixes=(".srt",)))
    add(DocumentEntry("vtt", f"{here}.subtitles:Subtitles", suffixes=(".vtt",)))
    add(DocumentEntry("xliff", f"{here}.xliff:Xliff", suffixes=(".xlf", ".xliff")))
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
