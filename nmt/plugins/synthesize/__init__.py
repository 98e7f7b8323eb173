"""Translated text as training pairs: back-translation and distillation."""
