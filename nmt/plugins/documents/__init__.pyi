from .document import (
    Document as Document,
    Translated as Translated,
    plain_text as plain_text,
    read_document as read_document,
)
