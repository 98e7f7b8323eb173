"""Translation on several devices, and on a Ray cluster."""
