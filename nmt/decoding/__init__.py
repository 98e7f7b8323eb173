"""Beam search, and translators that turn lines into lines."""
