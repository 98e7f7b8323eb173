"""Model directories in the formats of other programs."""
