"""Translation by several GPUs."""
