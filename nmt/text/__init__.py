"""Parallel corpora as pairs of lines, tokenizers, and their preparation for training."""
