"""Preparation of corpora of any kind for training."""
