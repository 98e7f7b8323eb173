"""Neural machine translation with the Transformer of "Attention Is All You Need"."""

__version__ = "0.1.0"
