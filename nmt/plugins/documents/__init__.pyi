from .document import Document as Document, Translated as Translated, read_document as read_document
