"""A page about a training run: its curves, what it translates, and what it was made of."""
