"""Noise, typos and subword sampling of training pairs."""
