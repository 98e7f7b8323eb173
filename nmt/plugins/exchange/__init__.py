"""Models for and from other programs."""
