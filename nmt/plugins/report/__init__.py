"""HTML pages about a training run, and about the attention of a model."""
