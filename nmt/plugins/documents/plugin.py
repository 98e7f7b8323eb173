"""Document formats: which text is translated, and how its markup is put back."""

from nmt.extensions import Add, DocumentEntry, OptionsEntry

SUBTITLES = (
    ("srt", "subtitles:Subtitles", (".srt",)),
    ("vtt", "subtitles:Subtitles", (".vtt",)),
    ("ass", "substation:SubStation", (".ass", ".ssa")),
    ("sub", "timed_lines:Frames", (".sub",)),
    ("sbv", "timed_lines:Captions", (".sbv",)),
    ("ttml", "timed_text:TimedText", (".ttml", ".dfxp")),
    ("lrc", "timed_lines:Lyrics", (".lrc",)),
)
"""The formats of subtitles, with their readers and suffixes."""

XLIFF = (".xlf", ".xliff", ".mqxliff", ".mxliff", ".sdlxliff")
MARKDOWN = (".md", ".markdown", ".mdown", ".mkd", ".mkdn", ".qmd", ".rmd")


def register(add: Add) -> None:
    # Addresses instead of classes, so that a reader is imported only for a document of its format.
    here = "nmt.plugins.documents"
    add(DocumentEntry("html", f"{here}.html:Html", suffixes=(".html", ".htm", ".xhtml")))
    add(OptionsEntry("document.markdown", f"{here}.markdown:MarkdownConfig", is_inline=True))
    markdown = DocumentEntry(
        "markdown", f"{here}.markdown:Markdown", suffixes=MARKDOWN, options="markdown"
    )
    add(markdown)
    add(DocumentEntry("mdx", f"{here}.markdown:Mdx", suffixes=(".mdx",), options="markdown"))
    add(DocumentEntry("ipynb", f"{here}.notebooks:Notebook", suffixes=(".ipynb",)))
    add(DocumentEntry("po", f"{here}.catalogs:Catalog", suffixes=(".po", ".pot")))
    options = OptionsEntry(
        "document.subtitles",
        f"{here}.subtitle_options:SubtitlesConfig",
        is_inline=True,
    )
    add(options)
    for name, reader, suffixes in SUBTITLES:
        path = f"{here}.{reader}"
        add(DocumentEntry(name, path, suffixes=suffixes, options="subtitles"))
    add(DocumentEntry("xliff", f"{here}.xliff:Xliff", suffixes=XLIFF))
    add(DocumentEntry("tmx", f"{here}.tmx_document:Tmx", suffixes=(".tmx",)))
    # Files of TypeScript and texts in Tsonga have this suffix, too.
    add(DocumentEntry("qt", f"{here}.qt:Linguist", suffixes=(), shared_suffixes=(".ts",)))
    add(DocumentEntry("json", f"{here}.json_strings:Strings", suffixes=(".json",)))
    for name in ("docx", "pptx", "xlsx", "odt", "odp", "ods", "epub"):
        add(DocumentEntry(name, f"{here}.archives:Archive", suffixes=(f".{name}",)))
    add(DocumentEntry("wrapped", f"{here}.wrapped:WrappedText", suffixes=()))
    plain_text = DocumentEntry(
        "text",
        f"{here}.document:PlainText",
        suffixes=(".txt",),
        is_by_line=True,
    )
    add(plain_text)
