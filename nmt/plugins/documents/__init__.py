"""Documents: which stretches of a file are translated, and how their markup goes around the translation."""

from nmt.plugins.documents.document import Document, Translated, read_document

__all__ = ["Document", "Translated", "read_document"]
