"""Complexity per layer type (section 4, Table 1): measured, counted and drawn."""
