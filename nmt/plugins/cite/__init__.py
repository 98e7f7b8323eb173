"""Bundles of a model's translations and scores that readers of a paper can verify."""
