"""The model directory: all that translating needs, and nothing that runs."""
