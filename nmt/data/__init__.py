"""Prepared corpora, the planning of updates, and their way into Lightning."""
