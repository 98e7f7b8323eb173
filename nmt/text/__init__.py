"""Parallel corpora as pairs of lines, filters, tokenizers."""
