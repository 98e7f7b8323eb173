from .document import plain_text as plain_text
